"""A control in the map: what is declared, what its record shows, and whether that is evidence."""

from __future__ import annotations

from flowproof.audit.coverage import coverage
from flowproof.exit_codes import ExitCode
from flowproof.record.evidence import rejudge
from flowproof.record.model import Verdict
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.audit.coverage import Coverage
    from flowproof.audit.declared import Declaration
    from flowproof.record.evidence import Stored
    from flowproof.record.model import RunRecord

__all__ = ["STATES", "AuditedControl", "audit_control"]

STATES = ("sound", "missing", "torn", "altered", "malformed", "differs", "stale")
"""What the evidence of a control is worth; only `sound` is any."""


class AuditedControl(Value):
    """One row of the control map.

    *verdict* is the one computed anew; without sound evidence it is capability-error, but for a stale
    record, which shows what was true of an older policy. *reasons* are (exit code, what was found).
    """

    id: str
    title: str | None
    declaration: Declaration | None
    verdict: Verdict
    explanation: str
    evidence: str
    details: tuple[str, ...]
    record: RunRecord | None
    folder: str | None
    coverage: Coverage | None
    reasons: tuple[tuple[ExitCode, str], ...]

    def __post_init__(self) -> None:
        if self.evidence not in STATES:
            raise ValueError(f"`{self.evidence}` is no state of evidence")


def audit_control(
    control: str, declaration: Declaration | None, stored: Stored | None
) -> AuditedControl:
    """Return the row of *control*: declared as *declaration*, its newest run as *stored*."""
    if stored is None or stored.record is None:
        return _without_record(control, declaration)
    record = stored.record
    title = declaration.title if declaration else record.policy.title
    if stored.problems:
        details = tuple(f"{found.path}: {found.detail}" for found in stored.problems)
        state = stored.problems[0].kind
        explanation = f"the record is no evidence ({state})"
        verdict = Verdict.CAPABILITY_ERROR
        reasons = tuple((ExitCode.EVIDENCE, f"`{control}`: {state}: {text}") for text in details)
        return AuditedControl(
            control, title, declaration, verdict, explanation, state, details,
            record, stored.folder, None, reasons,
        )  # fmt: skip
    judgement = rejudge(record, stored.lanes)
    assert judgement.control.verdict is not None
    shown = judgement.exit
    texts = (shown.reason, *shown.because) if shown.code else shown.because
    reasons = tuple(
        (shown.code, text if text.startswith("`") else f"`{control}`: {text}")
        for text in dict.fromkeys(texts)
    )
    details = ()
    state = "sound"
    if declaration is not None and declaration.ir != record.policy.ir:
        state = "stale"
        details = (f"{declaration.file} means something else now than when it ran: run it again",)
        reasons = ((ExitCode.EVIDENCE, f"`{control}`: stale: {details[0]}"), *reasons)
    return AuditedControl(
        control, title, declaration, judgement.control.verdict, judgement.control.explanation,
        state, details, record, stored.folder, coverage(record.rules), reasons,
    )  # fmt: skip


def _without_record(control: str, declaration: Declaration | None) -> AuditedControl:
    detail = "no run of it left a record: run it"
    return AuditedControl(
        control, declaration.title if declaration else None, declaration,
        Verdict.CAPABILITY_ERROR, detail, "missing", (detail,), None, None, None,
        ((ExitCode.EVIDENCE, f"`{control}`: missing: {detail}"),),
    )  # fmt: skip
