"""What the filter and its supervisor carry of a policy on Linux, rule by rule and meaning by meaning."""

from __future__ import annotations

from flowproof.artifact.model import Fidelity
from flowproof.lower.fidelity import (
    FidelityClass,
    Finding,
    action_findings,
    row,
    symbol_findings,
)
from flowproof.lower.files import observed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.ir.model import Policy, Rule
    from flowproof.lower.seccomp.plan import Plan

__all__ = ["fidelity"]

_EXACT = FidelityClass.EXACT.value


def fidelity(policy: Policy, plan: Plan) -> tuple[Fidelity, ...]:
    """Return a row for each rule, in order, and one for each fixed meaning that is in force."""
    rules = (row(rule, (*_carriage(rule), *symbol_findings(rule))) for rule in policy.rules)
    return (*rules, *_meanings(policy, plan))


def _carriage(rule: Rule) -> Iterator[Finding]:
    """Yield how well the action of *rule* is carried, where that is not exactly."""
    if observed(rule):
        yield Finding(
            FidelityClass.OBSERVED,
            "attempts by path are seen and not prevented: a path is read before the kernel reads it"
            " again, and a file that is open already is written to unseen",
        )
    elif rule.action == "files":
        yield Finding(
            FidelityClass.UNSUPPORTED,
            "file operations are not refused by this version: `expect no` and `observe` see them",
        )
    else:
        yield from action_findings(rule)


def _meanings(policy: Policy, plan: Plan) -> Iterator[Fidelity]:
    if plan.traps:
        yield Fidelity("meaning:foreign-abi", _EXACT, _EXACT, None)
        yield Fidelity("meaning:io-uring", _EXACT, None, "refused by the kernel and not counted")
    if plan.connect or plan.listen:
        yield Fidelity("meaning:loopback", _EXACT, _EXACT, None)
    if plan.connect:
        yield Fidelity("meaning:metadata", _EXACT, _EXACT, None)
        yield Fidelity("meaning:unix", _EXACT, _EXACT, None)
        yield Fidelity("meaning:unreadable", _EXACT, _EXACT, None)
    if policy.connect_denies:
        yield Fidelity("meaning:families", _EXACT, _EXACT, None)
    elif plan.families:
        yield Fidelity("meaning:families", None, _EXACT, "let through and recorded")
    elif plan.connect:
        yield Fidelity(
            "meaning:families",
            None,
            None,
            "no `connect` rule denies: a socket of another family is let be and not counted by itself;"
            " its connects and its sends to an address are",
        )
    if plan.listen:
        yield Fidelity("meaning:listen", _EXACT, _EXACT, None)
