"""The runs that left a record, in the order in which they happened, and which of them count."""

from __future__ import annotations

import os

from flowproof.record.evidence import run_folders, verify_record
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flowproof.record.evidence import Stored

__all__ = ["Run", "Runs", "choose", "find_runs"]


class Run(Value):
    """One run's folder as found; ids sort by when their run began."""

    id: str
    folder: str


class Runs(Value):
    """*latest*: control id → the run to judge it by. *unreadable*: runs newer than some of these whose
    record does not even say which control it is about.
    """

    latest: Mapping[str, Stored]
    unreadable: tuple[Stored, ...]


def find_runs(roots: Iterable[str]) -> tuple[Run, ...]:
    """Return every run below the ``.flowproof/runs`` of *roots*, newest first."""
    found: dict[str, Run] = {}
    for root in roots:
        for folder in run_folders(root):
            name = os.path.basename(folder)
            found[os.path.realpath(folder)] = Run(name, folder)
    return tuple(sorted(found.values(), key=lambda run: run.id, reverse=True))


def choose(runs: Iterable[Run], wanted: frozenset[str] | None) -> Runs:
    """Return the newest run of each control, reading no more records than needed.

    *wanted* are the controls that a folder declares; None: every control that a record speaks of. A
    record of another control is kept as well, it is only not looked for.
    """
    latest: dict[str, Stored] = {}
    unreadable: list[Stored] = []
    for run in runs:
        if wanted and wanted <= set(latest):
            break
        stored = verify_record(run.folder)
        if stored.record is None:
            unreadable.append(stored)
        else:
            latest.setdefault(stored.record.policy.control, stored)
    return Runs(latest, tuple(unreadable))
