"""How well a target carries a rule: the classes, and what is the same for every target about names."""

from __future__ import annotations

from enum import Enum

from flowproof.artifact.model import Fidelity
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flowproof.ir.model import Rule

__all__ = [
    "STOPPING",
    "FidelityClass",
    "Finding",
    "action_findings",
    "place",
    "row",
    "symbol_findings",
]


class FidelityClass(Enum):
    """What a target promises for one half of a rule; from best to worst, the last two stop a compile."""

    EXACT = "exact"  # refuses, lets through and counts what the IR says
    OBSERVED = "observed"  # sees every attempt and prevents none
    OVER_BLOCKS = "over-blocks"  # refuses more than asked
    NOT_APPLICABLE = "not-applicable"  # what the rule is about does not exist there
    OVER_PERMITS = "over-permits"  # lets through more than asked
    UNSUPPORTED = "unsupported"  # cannot be expressed, or could only be pretended


STOPPING = frozenset({FidelityClass.OVER_PERMITS, FidelityClass.UNSUPPORTED})
"""The classes that stop a compile unless the author asks for the report."""

_ORDER = tuple(FidelityClass)


class Finding(Value):
    """What is to be said of one part of a rule."""

    fidelity: FidelityClass
    reason: str


def place(rule: Rule) -> str:
    """Return where *rule* was written, as messages print it, or its id where the compiler added it."""
    origin = rule.origin
    return f"{origin.file}:{origin.line}:{origin.column}" if origin else f"`{rule.id}`"


def row(rule: Rule, findings: Iterable[Finding]) -> Fidelity:
    """Return the fidelity of *rule*: the worst that was found, with every reason.

    The refusing half is whether attempts are refused and let through as the rule says; `observe` and
    ``expect no`` have none. The counting half is whether attempts are told; `allow` and `deny` have none.
    """
    found = list(findings)
    if not found:
        exact = FidelityClass.EXACT.value
        return Fidelity(
            rule.id,
            exact if rule.refuses or rule.verb == "allow" else None,
            exact if rule.asserts or rule.verb == "observe" else None,
            None,
        )
    worst = max((finding.fidelity for finding in found), key=_ORDER.index, default=_ORDER[0])
    reasons = "; ".join(dict.fromkeys(finding.reason for finding in found))
    return Fidelity(
        rule.id,
        worst.value if rule.refuses or rule.verb == "allow" else None,
        worst.value if rule.asserts or rule.verb == "observe" else None,
        f"{reasons} ({place(rule)})" if reasons else None,
    )


_ACTIONS = {
    "files": "file operations are neither refused nor observed",
    "execute": "programs started are neither refused nor observed",
    "call": "tools called are neither refused nor observed",
}


def action_findings(rule: Rule) -> Iterator[Finding]:
    """Yield that no target of this version carries the action of *rule*, where that is so."""
    if rule.action in _ACTIONS:
        yield Finding(FidelityClass.UNSUPPORTED, f"{_ACTIONS[rule.action]} by this version")


def symbol_findings(rule: Rule) -> Iterator[Finding]:
    """Yield what is to be said of the names and variables of *rule*, on any target."""
    for symbol in (*rule.targets.symbols, *rule.exceptions.symbols):
        if symbol.kind == "wildcard":
            yield Finding(
                FidelityClass.UNSUPPORTED,
                f"`*.{symbol.value}` stands for names that only the run's own resolver would see, and"
                " this version has none: name the hosts one by one",
            )
        elif rule.action == "listen":
            yield Finding(
                FidelityClass.UNSUPPORTED,
                f"`${{{symbol.value}}}` is bound when a run starts, and whether a listen on every address"
                " is covered has to be known before: write the address",
            )
    for symbol in rule.targets.symbols:
        if symbol.kind == "name" and (rule.refuses or rule.asserts):
            yield Finding(
                FidelityClass.OVER_PERMITS,
                f"the addresses of `{symbol.value}` rotate and are shared, so that"
                f" `{rule.verb}` by name misses some: write addresses, or allow by name and refuse"
                " the rest",
            )
        elif symbol.kind == "name":
            yield Finding(
                FidelityClass.EXACT,
                f"`{symbol.value}` stands for the addresses bound in the run, shared ones included",
            )
    for symbol in rule.exceptions.symbols:
        if symbol.kind == "name" and rule.verb == "allow" and rule.targets.anything:
            yield Finding(
                FidelityClass.OVER_PERMITS,
                f"an `allow` that excepts `{symbol.value}` refuses by name, and the addresses of a name"
                " rotate and are shared: except addresses",
            )
