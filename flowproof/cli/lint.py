"""What is valid and should still be said: a control that asserts nothing, what packs open, and an `allow`
that leaves open what its author may take for shut.
"""

from __future__ import annotations

from flowproof.addresses import LOOPBACK
from flowproof.ir.check import judged
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.regions import Region

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
    _note_loopback(policy, report)
    note_packs(policy, report)


def _note_loopback(policy: Policy, report: Report) -> None:
    """Report an ``allow`` of some of loopback where nothing refuses the rest of it."""
    loopback = Region.of(LOOPBACK)
    connects = [rule for rule in policy.rules if rule.action == "connect"]
    if any(rule.refuses and rule.named.touches(loopback) for rule in connects):
        return
    for rule in connects:
        if rule.verb != "allow" or rule.origin is None:
            continue
        within = rule.named & loopback
        if within and loopback - within:
            report.note(
                "FP104",
                f"`{rule.id}` allows some of loopback, and the rest of it is open as well",
                rule.origin.span,
                "to shut the rest, add `deny connect to loopback except` what this rule names there",
            )


def note_packs(policy: Policy, report: Report) -> None:
    """Report what the packs of a flow open: their allows, their catch-alls that shrink, and what their
    refusals except where a fixed meaning would refuse it.
    """
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
        if rule.refuses and (meaning := _lifted(rule, policy)) is not None:
            excepted = rule.sentence.partition(" because ")[0].partition(" except ")[2]
            report.note(
                "FP102",
                f"pack `{rule.origin.pack}` widens control `{policy.control}`: what `{rule.id}` excepts is"
                f" let through: {excepted}",
                span,
                f"`{policy.control}.implied.{meaning}` or the default would refuse it; a catch-all of the"
                " flow's own still does",
            )


def _opens(allow: Rule, catch_all: Rule) -> bool:
    """Whether *allow* takes something out of a pack's catch-all that the pack itself does not."""
    assert catch_all.origin is not None
    return (
        allow.verb == "allow"
        and allow.action == catch_all.action
        and (allow.origin is None or allow.origin.pack != catch_all.origin.pack)
    )


def _lifted(rule: Rule, policy: Policy) -> str | None:
    """Return the fixed meaning that does not refuse something because *rule* excepts it, or None."""
    excepted = rule.exceptions
    if rule.action == "connect" and excepted.unix:
        from flowproof.ir.evaluate import evaluate
        from flowproof.ir.events import Unix

        found = (evaluate(policy, Unix(path)) for path in excepted.unix)
        if any((one.handling, one.by) == ("let-through", rule.id) for one in found):
            return "unix"
    if rule.action == "listen" and policy.connect_denies and excepted:
        return "listen" if _listens(rule, policy) else None
    return None


def _listens(rule: Rule, policy: Policy) -> bool:
    """Tell whether something off loopback that *rule* excepts is listened on by no rule's leave: it is what
    the exception lifts. A variable may stand for any address.
    """
    from flowproof.ir.evaluate import evaluate
    from flowproof.ir.events import Listen

    if rule.exceptions.symbols:
        return any(other.meaning == "listen" for other in policy.rules)
    off_loopback = rule.exceptions.region & Region.of(OFF_LOOPBACK, ("tcp",))
    return any(
        (found.handling, found.by) == ("let-through", None)
        for _, family, first, last, ports in off_loopback
        if last  # `::` alone is every address, and not off loopback
        for found in (evaluate(policy, Listen(family, first or 1, ports[0][0])),)
    )
