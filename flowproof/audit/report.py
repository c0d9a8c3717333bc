"""The audit of a folder: its control map, judged anew from the records that runs left behind."""

from __future__ import annotations

import os

from flowproof.audit.controls import audit_control
from flowproof.audit.declared import declared
from flowproof.audit.runs import choose, find_runs
from flowproof.exit_codes import ExitCode, worst
from flowproof.record.evidence import verify_record
from flowproof.record.model import Exit, Verdict
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.audit.controls import AuditedControl
    from flowproof.audit.declared import Declaration, Folder
    from flowproof.audit.runs import Run
    from flowproof.diagnostics import Report
    from flowproof.record.evidence import Stored

__all__ = ["Audit", "audit"]


class Audit(Value):
    """The control map of a folder. *retired*: controls that only old records know, listed and not judged.
    *unreadable*: (folder, what is wrong) of runs whose record does not say whose it is.
    """

    folder: str
    controls: tuple[AuditedControl, ...]
    retired: tuple[AuditedControl, ...]
    unreadable: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    exit: Exit

    def count(self, verdict: Verdict) -> int:
        """Return how many controls have *verdict*."""
        return sum(control.verdict is verdict for control in self.controls)


def audit(path: str, run: str | None, report: Report) -> Audit:
    """Return the control map of the folder *path*, of one *run* where its id is given.

    Mistakes in flows on disk are in *report*; with an error there the map is not to be trusted.
    """
    folder = declared(path, report)
    runs = find_runs(_roots(path, folder))
    return _audit_run(path, folder, runs, run) if run else _audit_all(path, folder, runs)


def _roots(path: str, folder: Folder) -> list[str]:
    """Return where runs may lie: the folder itself, and beside each of its flows and packs."""
    found = [*folder.flows.values(), *folder.packs.values()]
    beside = {os.path.dirname(declaration.file) or "." for declaration in found}
    return [path, *sorted(beside)]


def _audit_run(path: str, folder: Folder, runs: tuple[Run, ...], wanted: str) -> Audit:
    stored = next((verify_record(run.folder) for run in runs if run.id == wanted), None)
    if stored is None:
        return _map(path, (), (), (), (f"there is no record of run `{wanted}`",))
    if stored.record is None:
        return _map(path, (), (), (stored,), ())
    control = stored.record.policy.control
    return _map(path, (audit_control(control, _of(folder, control), stored),), (), (), ())


def _audit_all(path: str, folder: Folder, runs: tuple[Run, ...]) -> Audit:
    found = choose(runs, frozenset(folder.flows) or None)
    judged = dict(folder.flows) if folder.flows else dict.fromkeys(found.latest)
    judged |= {control: None for control in found.latest if control in folder.packs}
    controls = tuple(
        audit_control(control, _of(folder, control), found.latest.get(control))
        for control in sorted(judged)
    )
    retired = tuple(
        audit_control(control, None, found.latest[control])
        for control in sorted(set(found.latest) - set(judged))
    )
    missing = () if controls or found.unreadable else (f"no flow and no record in `{path}`",)
    return _map(path, controls, retired, found.unreadable, missing)


def _of(folder: Folder, control: str) -> Declaration | None:
    return folder.flows.get(control) or folder.packs.get(control)


def _map(
    path: str,
    controls: tuple[AuditedControl, ...],
    retired: tuple[AuditedControl, ...],
    unreadable: tuple[Stored, ...],
    missing: tuple[str, ...],
) -> Audit:
    broken = tuple(
        (stored.folder, f"{problem.kind}: {problem.detail}")
        for stored in unreadable
        for problem in stored.problems
    )
    reasons = [(ExitCode.EVIDENCE, text) for text in missing]
    reasons += [(ExitCode.EVIDENCE, f"{folder}: {text}") for folder, text in broken]
    reasons += [reason for control in controls for reason in control.reasons]
    notes = tuple(
        f"no flow here declares `{control.id}`, so whether it changed since the run cannot be told"
        for control in controls
        if control.declaration is None
    )
    code = worst(code for code, _ in reasons)
    first = next((text for found, text in reasons if found is code), "every control passed")
    because = tuple(dict.fromkeys(text for _, text in reasons))
    return Audit(path, controls, retired, broken, notes, Exit(code, first, because))
