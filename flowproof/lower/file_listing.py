"""What a reviewer reads of the attempts at files that a run counts."""

from __future__ import annotations

from flowproof.lower.listing import row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.files import PathSet
    from flowproof.artifact.model import Artifact

__all__ = ["file_lines"]

_OPERATIONS = len("delete, rename, truncate, write")


def file_lines(artifact: Artifact) -> Iterator[str]:
    """Yield what a run counts of attempts at files, rule by rule."""
    if not artifact.tables.files:
        return
    yield "Attempts at files, let through"
    for held in artifact.tables.files:
        rule = artifact.rules[held.rule]
        told = {"allow": "left out by `anywhere else`", "observe": f"told by {rule.id}"}
        where = _where(held.inside) + (" else" if held.otherwise else "")
        if held.excepted is not None:
            where += f" except {_where(held.excepted)}"
        operations = ", ".join(held.operations)
        said = f"{where}: {told.get(rule.verb, f'counted by {rule.id}')}"
        yield f"  {row(operations, said, widths=(_OPERATIONS,))}"


def _where(paths: PathSet) -> str:
    return " ".join((paths.kind, *paths.paths[:1])) + "".join(
        f", {path}" for path in paths.paths[1:]
    )
