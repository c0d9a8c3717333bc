"""The rows by which a run counts attempts at files, and their serialised form."""

from __future__ import annotations

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flowproof.artifact.reading import Node

__all__ = ["KINDS", "OPERATIONS", "FileRow", "PathSet", "file_rows_to_json", "read_file_rows"]

OPERATIONS = ("delete", "rename", "truncate", "write")
KINDS = ("under", "at", "anywhere")


class PathSet(Value):
    """Paths: those ``under`` some, ``at`` some globs, or ``anywhere``. They are sorted, and may begin with
    ``~``, ``${cwd}``, ``${tmp}`` or ``${NAME}``, which a run binds.
    """

    kind: str
    paths: tuple[str, ...] = ()


class FileRow(Value):
    """Where a rule about files applies: to *operations* *inside* and not *excepted*; with *otherwise*
    (``anywhere else``) not where the row of an `allow` of that operation applies either. A row of an
    `allow` is there for those alone.
    """

    rule: int
    operations: tuple[str, ...]
    inside: PathSet
    excepted: PathSet | None = None
    otherwise: bool = False


def file_rows_to_json(rows: tuple[FileRow, ...]) -> list[dict[str, Any]]:
    """Return *rows* as JSON-shaped data."""
    return [
        {
            "rule": row.rule,
            "operations": list(row.operations),
            "inside": _paths(row.inside),
            "excepted": None if row.excepted is None else _paths(row.excepted),
            "otherwise": row.otherwise,
        }
        for row in rows
    ]


def _paths(paths: PathSet) -> dict[str, Any]:
    return {"kind": paths.kind, "paths": list(paths.paths)}


def read_file_rows(node: Node, rules: int) -> tuple[FileRow, ...]:
    """Return the rows that *node* holds, about *rules* rules. Raises `ArtifactError`."""
    rows = node.each(lambda row: _read_row(row, rules))
    if not rows:
        raise node.wrong("an empty list is left out")
    numbers = [row.rule for row in rows]
    if numbers != sorted(set(numbers)):
        raise node.wrong("a rule has one row, and rows are in order of rule")
    return rows


def _read_row(node: Node, rules: int) -> FileRow:
    held = node.object(FileRow.__fields__)
    operations = held["operations"].each(lambda word: word.word(OPERATIONS))
    if not operations or list(operations) != [one for one in OPERATIONS if one in operations]:
        raise held["operations"].wrong("operations are in order, each once")
    if type(held["otherwise"].value) is not bool:
        raise held["otherwise"].wrong("true or false is expected")
    excepted = held["excepted"]
    return FileRow(
        rule=held["rule"].number(rules, "a rule"),
        operations=operations,
        inside=_read_paths(held["inside"]),
        excepted=None if excepted.value is None else _read_paths(excepted),
        otherwise=held["otherwise"].value,
    )


def _read_paths(node: Node) -> PathSet:
    held = node.object(PathSet.__fields__)
    kind = held["kind"].word(KINDS)
    paths = held["paths"].each(_read_path)
    if (kind == "anywhere") is bool(paths):
        raise node.wrong("`anywhere` has no paths, the others have some")
    if list(paths) != sorted(set(paths)):
        raise held["paths"].wrong("paths are sorted, each once")
    return PathSet(kind, paths)


def _read_path(node: Node) -> str:
    text = node.text()
    if not text.startswith(("/", "~", "${")) or "\0" in text:
        raise node.wrong(f"`{text}` is no path of a rule")
    return text
