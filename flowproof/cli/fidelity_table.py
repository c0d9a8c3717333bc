"""How well each target carries each rule and each fixed meaning: one table, in text and as JSON."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flowproof.artifact.model import Artifact, Difference, Fidelity

__all__ = ["as_data", "as_text"]


def as_text(artifacts: Sequence[Artifact]) -> str:
    """Return the table of *artifacts*, one for each target of one control, with the reasons below it, and
    where a target does otherwise than the others.
    """
    from flowproof.lower.listing import differences

    rows = [("", *(artifact.target for artifact in artifacts))]
    notes: list[str] = []
    for subject in _subjects(artifacts):
        cells = []
        for artifact in artifacts:
            row = _row(artifact, subject)
            cells.append(_cell(row))
            if row is not None and row.reason:
                notes.append(f"  {subject}, {artifact.target}: {row.reason}")
        rows.append((subject, *cells))
    text = [f"control  {artifacts[0].control}", "", *_columns(rows)]
    if notes:
        text += ["", "Reasons", *notes]
    for artifact in artifacts:
        told = list(differences(artifact))
        if told:
            text += ["", f"{told[0]}: {artifact.target}", *told[1:]]
    return "\n".join(text) + "\n"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield *rows* with every column but the last as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells[:-1], widths, strict=False)]
        yield f"  {'  '.join((*padded, cells[-1]))}".rstrip()


def as_data(artifacts: Sequence[Artifact]) -> dict[str, object]:
    """Return the table as JSON-shaped data: a row for each subject, with a member for each target; and the
    differences of each target, whole.
    """
    return {
        "control": artifacts[0].control,
        "targets": [artifact.target for artifact in artifacts],
        "fidelity": [
            {
                "subject": subject,
                **{artifact.target: _halves(_row(artifact, subject)) for artifact in artifacts},
            }
            for subject in _subjects(artifacts)
        ],
        "differences": {
            artifact.target: [_difference(one, artifact) for one in artifact.differences]
            for artifact in artifacts
        },
    }


def _difference(one: Difference, artifact: Artifact) -> dict[str, object]:
    """Return a difference with rules by id: the table has no list of rules to point into."""
    held = {name: getattr(one, name) for name in one.__fields__}
    rules = [artifact.rules[at].id for at in one.rules]
    return {**held, "rules": rules, "cells": list(one.cells)}


def _subjects(artifacts: Sequence[Artifact]) -> list[str]:
    """Return rules first, in order, then fixed meanings in the order of the targets."""
    found = [row.subject for artifact in artifacts for row in artifact.fidelity]
    once = list(dict.fromkeys(found))
    return sorted(once, key=lambda subject: subject.startswith("meaning:"))


def _row(artifact: Artifact, subject: str) -> Fidelity | None:
    return next((row for row in artifact.fidelity if row.subject == subject), None)


def _cell(row: Fidelity | None) -> str:
    """Return a class, or refusing and counting apart where they differ."""
    if row is None:
        return "not in force"
    halves = {half for half in (row.refusing, row.counting) if half is not None}
    if len(halves) == 1:
        return halves.pop()
    if not halves:
        return "not in force"
    return f"refusing {row.refusing}, counting {row.counting}"


def _halves(row: Fidelity | None) -> dict[str, str | None] | None:
    if row is None:
        return None
    return {"refusing": row.refusing, "counting": row.counting, "reason": row.reason}
