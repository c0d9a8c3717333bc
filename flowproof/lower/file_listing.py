"""What a reviewer reads of the attempts at files that a run counts."""

from __future__ import annotations

from flowproof.lower.listing import columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.files import PathSet
    from flowproof.artifact.model import Artifact

__all__ = ["file_lines"]


def file_lines(artifact: Artifact) -> Iterator[str]:
    """Yield what a run counts of attempts at files, row by row."""
    if not artifact.tables.files:
        return
    yield "Attempts at files, let through"
    rows = []
    for row in artifact.tables.files:
        rule = artifact.rules[row.rule]
        told = {"allow": "left out by `anywhere else`", "observe": f"told by {rule.id}"}
        where = _where(row.inside) + (" else" if row.otherwise else "")
        if row.excepted is not None:
            where += f" except {_where(row.excepted)}"
        rows.append(
            (", ".join(row.operations), told.get(rule.verb, f"counted by {rule.id}"), where)
        )
    yield from columns(rows)


def _where(paths: PathSet) -> str:
    return " ".join((paths.kind, *paths.paths[:1])) + "".join(
        f", {path}" for path in paths.paths[1:]
    )
