"""How well a target carries a control, as diagnostics: what stops a compile, and what is only noted."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flowproof.artifact.model import Artifact, Fidelity
    from flowproof.diagnostics import Report, Span
    from flowproof.ir.model import Policy

__all__ = ["STOPPING", "note_uncarried", "report_fidelity"]

STOPPING = {"over-permits": "FP110", "unsupported": "FP111"}
"""Fidelity classes that stop a compile, and the code of each."""

_NOTED = {"over-blocks": "FP112", "not-applicable": "FP113"}

_WAY_OUT = (
    "rewrite the rule, or compile with `--fidelity report`: what is not carried is then capability-error"
    " in any run"
)


def report_fidelity(
    artifact: Artifact, policy: Policy, report: Report, *, strict: bool, stopping_only: bool = False
) -> None:
    """Report what *artifact* does not carry exactly: errors (exit 3) where *strict*, else notes.

    With *stopping_only* without what stops no compile: for an answer that tells it anyway.
    """
    spans = _spans(policy)
    for row in artifact.fidelity:
        span = spans.get(row.subject)
        for half, fidelity in _halves(row):
            if fidelity not in STOPPING and fidelity not in _NOTED:
                continue
            subject = f"{artifact.target}: {_subject(row)}"
            message = f"{subject} is {fidelity} ({half}){_reason(row, span)}"
            if fidelity in STOPPING:
                if strict:
                    report.error(STOPPING[fidelity], message, span, _WAY_OUT, exit=3)
                else:
                    report.note(
                        STOPPING[fidelity], message, span, "a run of it is capability-error"
                    )
            elif not stopping_only:
                report.note(_NOTED[fidelity], message, span)


def note_uncarried(artifacts: Iterable[Artifact], policy: Policy, report: Report) -> None:
    """Report the rules that none of *artifacts*, one per platform, carries."""
    spans = _spans(policy)
    reasons: dict[str, list[str]] = {}
    targets = 0
    for artifact in artifacts:
        targets += 1
        for row in artifact.fidelity:
            stopping = [fidelity for _, fidelity in _halves(row) if fidelity in STOPPING]
            if stopping:
                reason = f"{artifact.target}: {stopping[0]}{_reason(row, spans.get(row.subject))}"
                reasons.setdefault(row.subject, []).append(reason)
    for subject, found in reasons.items():
        if len(found) == targets:
            report.note(
                "FP114",
                f"no target carries `{subject}` ({'; '.join(found)})",
                spans.get(subject),
                "`compile` stops at it; a run cannot judge it",
            )


def _halves(row: Fidelity) -> list[tuple[str, str]]:
    """Return the halves of a rule with the class of each, both in one where they agree."""
    if row.refusing is not None and row.refusing == row.counting:
        return [("refusing and counting", row.refusing)]
    halves = (("refusing", row.refusing), ("counting", row.counting))
    return [(half, fidelity) for half, fidelity in halves if fidelity is not None]


def _subject(row: Fidelity) -> str:
    meaning = row.subject.removeprefix("meaning:")
    return f"rule `{row.subject}`" if meaning == row.subject else f"the fixed meaning `{meaning}`"


def _reason(row: Fidelity, span: Span | None) -> str:
    """Return the reason, without the place at its end: the diagnostic has it in front."""
    return f": {row.reason.removesuffix(f' ({span})')}" if row.reason else ""


def _spans(policy: Policy) -> Mapping[str, Span]:
    return {
        rule.id: rule.origin.span
        for rule in policy.rules
        if rule.origin is not None and rule.origin.span is not None
    }
