"""What is valid and should still be said: a control that asserts nothing, and what packs open."""

from __future__ import annotations

from flowproof.ir.check import judged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report
    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.resolve import Resolved

__all__ = ["lint", "note_packs"]


def lint(resolved: Resolved, report: Report) -> None:
    """Report warnings (lint) and notes of one control."""
    policy = resolved.policy
    if not judged(policy):
        # Whoever only observes wants a report and no verdict; whoever wrote no rule forgot it.
        observes = any(rule.verb == "observe" for rule in policy.rules)
        tell = report.note if observes else report.warning
        tell(
            "FP101",
            f"control `{policy.control}` asserts nothing"
            f"{', it only observes' if observes else ''}: a run of it can never pass",
            resolved.place,
            "add a rule that can be judged, such as `never connect to anything else`",
        )
    note_packs(policy, report)


def note_packs(policy: Policy, report: Report) -> None:
    """Report what the packs of a flow open: their allows, and their catch-alls that shrink."""
    for rule in policy.rules:
        if rule.origin is None or rule.origin.pack is None:
            continue
        span = rule.origin.span
        if rule.verb == "allow":
            report.note(
                "FP102",
                f"pack `{rule.origin.pack}` widens control `{policy.control}`: {rule.sentence}",
                span,
                f"it is rule `{rule.id}`; every flow that uses the pack gets it",
            )
        elif rule.targets.otherwise:
            opened = [other for other in policy.rules if _opens(other, rule)]
            if opened:
                names = ", ".join(f"`{other.id}`" for other in opened)
                report.note(
                    "FP103",
                    f"`anything else` of pack `{rule.origin.pack}` shrinks in control"
                    f" `{policy.control}`: {names} allow{'s' if len(opened) == 1 else ''} some of it",
                    span,
                    "a refusal that no flow opens names its targets: `anything`",
                )


def _opens(allow: Rule, catch_all: Rule) -> bool:
    """Whether *allow* takes something out of a pack's catch-all that the pack itself does not."""
    assert catch_all.origin is not None
    return (
        allow.verb == "allow"
        and allow.action == catch_all.action
        and (allow.origin is None or allow.origin.pack != catch_all.origin.pack)
    )
