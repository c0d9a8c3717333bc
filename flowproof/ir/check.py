"""What is wrong with a policy as a whole: shadowed allows, empty complements, what packs open."""

from __future__ import annotations

from itertools import islice

from flowproof.ir import ports as port_sets
from flowproof.ir.places import Places
from flowproof.ir.regions import union_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report
    from flowproof.ir.model import Policy, Rule, Symbol

__all__ = ["check_policy", "judged"]

_SHOWN = 10
"""Of many rules that shadow one, the first ones tell enough."""


def check_policy(policy: Policy, report: Report) -> None:
    """Report errors that only the rules together show."""
    _complements(policy, report)
    for action in ("connect", "listen"):
        _shadowed(policy, action, report)
    _shadowed_places(policy, report)


def judged(policy: Policy) -> tuple[Rule, ...]:
    """Return the rules that a run can judge: those with a claim, implied ones left out."""
    return tuple(
        rule for rule in policy.rules if rule.kind != "implied" and (rule.refuses or rule.asserts)
    )


def _complements(policy: Policy, report: Report) -> None:
    for rule in policy.rules:
        targets = rule.targets
        if rule.places is not None and rule.places.otherwise:
            _place_complement(policy, rule, report)
        if not targets.otherwise or targets.region or targets.symbols or targets.unix:
            continue
        if rule.kind == "default":
            continue  # the compiler's own: where the allows name everything it refuses nothing
        if rule.action == "connect" and targets.bare_otherwise:
            continue  # families, foreign ABI and outside unix sockets are never allowed by it
        if not rule.otherwise - policy.allowed(rule.action):
            _covers_nothing("anything else", rule, report)


def _place_complement(policy: Policy, rule: Rule, report: Report) -> None:
    everywhere = [
        allow
        for allow in policy.rules
        if allow.verb == "allow"
        and allow.places is not None
        and allow.places.kind == "anywhere"
        and allow.excepted_places is None
    ]
    left = [
        operation
        for operation in rule.operations or (rule.action,)
        if not any(
            allow.action == rule.action and operation in (allow.operations or (allow.action,))
            for allow in everywhere
        )
    ]
    if not left and rule.kind != "default":
        _covers_nothing("anywhere else", rule, report)


def _covers_nothing(words: str, rule: Rule, report: Report) -> None:
    report.error(
        "FP514",
        f"`{words}` of `{rule.id}` covers nothing: the allows name everything",
        rule.origin.span if rule.origin else None,
        "narrow an `allow`, or take the rule out",
    )


def _shadowed(policy: Policy, action: str, report: Report) -> None:
    refusals = [
        rule
        for rule in policy.rules
        if rule.action == action and rule.refuses and rule.kind != "default"
    ]
    refused = union_all(rule.named for rule in refusals)
    by_symbol: dict[tuple[str, str], list[Rule]] = {}
    wide = [rule for rule in refusals if rule.targets.anything]
    for rule in refusals:
        for symbol in rule.targets.symbols:
            by_symbol.setdefault((symbol.kind, symbol.value), []).append(rule)
    reaches = [(rule, _reach(rule)) for rule in refusals]
    for rule in policy.rules:
        if rule.action != action or rule.verb != "allow":
            continue
        if (rule.named and not refused) or not refused.covers(rule.named):
            continue
        if not all(
            _symbol_refused(symbol, wide + by_symbol.get((symbol.kind, symbol.value), []))
            for symbol in rule.targets.symbols
        ):
            continue
        if not all(_unix_refused(path, refusals) for path in rule.targets.unix):
            continue
        own = _reach(rule)
        blocking = (other for other, reach in reaches if _meet(own, reach) and _blocks(other, rule))
        _report_shadowed(rule, list(islice(blocking, _SHOWN + 1)), report)


def _reach(rule: Rule) -> Reach:
    """Return the first and last address of a rule in each family, and whether it holds more than those."""
    reach: dict[int, tuple[int, int]] = {}
    for _, family, first, last, _ in rule.named:
        low, high = reach.get(family, (first, last))
        reach[family] = min(low, first), max(high, last)
    return reach, bool(rule.targets.symbols or rule.targets.unix)


Reach = tuple[dict[int, tuple[int, int]], bool]


def _meet(left: Reach, right: Reach) -> bool:
    """Tell whether two rules may have something in common: cheap, and asked of every pair."""
    return left[1] or any(
        family in right[0] and low <= right[0][family][1] and right[0][family][0] <= high
        for family, (low, high) in left[0].items()
    )


def _report_shadowed(rule: Rule, blocking: list[Rule], report: Report) -> None:
    names = ", ".join(f"`{other.id}`" for other in blocking[:_SHOWN])
    if len(blocking) > _SHOWN:
        names += " and others"
    report.error(
        "FP515",
        f"`{rule.id}` allows nothing: {names} refuse{'s' if len(blocking) == 1 else ''} all of it",
        rule.origin.span if rule.origin else None,
        "a named refusal is never opened by an `allow`: except it there, or take the `allow` out",
        related=tuple(
            (other.origin.span, f"`{other.id}`")
            for other in blocking[:_SHOWN]
            if other.origin and other.origin.span
        ),
    )


Spelt = tuple[frozenset[str], ...]


def _shadowed_places(policy: Policy, report: Report) -> None:
    """Report an ``allow`` about places whose every path, for every operation, a refusal covers."""
    refusals = [
        (rule, rule.places.spelt())
        for rule in policy.rules
        if rule.refuses and rule.places is not None and not rule.places.otherwise
    ]
    for rule in policy.rules:
        if rule.verb != "allow" or rule.places is None:
            continue
        blocking: dict[str, Rule] = {}
        each = [(one, one.spelt()) for one in _each(rule.places)]
        for operation in rule.operations or (rule.action,):
            for one, own in each:
                found = next(
                    (
                        r
                        for r, spelt in refusals
                        if _may_refuse(spelt, own) and _refuses_place(r, rule, operation, one)
                    ),
                    None,
                )
                if found is None:
                    break
                blocking[found.id] = found
            else:
                continue
            break
        else:
            shown = [blocking[key] for key in sorted(blocking)]
            _report_shadowed(rule, shown[: _SHOWN + 1], report)


def _may_refuse(spelt: Spelt, own: Spelt) -> bool:
    """Tell whether a refusal's paths may hold a place: cheap, and asked of every pair."""
    return not spelt or not own or any(parts <= own[0] for parts in spelt)


def _each(places: Places) -> list[Places]:
    return [Places(places.kind, (path,)) for path in places.paths] or [places]


def _refuses_place(refusal: Rule, rule: Rule, operation: str, one: Places) -> bool:
    assert refusal.places is not None
    return (
        refusal.action == rule.action
        and operation in (refusal.operations or (refusal.action,))
        and refusal.places.covers(one)
        and (refusal.excepted_places is None or not refusal.excepted_places.overlaps(one))
    )


def _symbol_refused(symbol: Symbol, refusals: list[Rule]) -> bool:
    left = dict.fromkeys(symbol.protocols, symbol.ports)
    for rule in refusals:
        excepted = any(
            (other.kind, other.value) == (symbol.kind, symbol.value)
            for other in rule.exceptions.symbols
        )
        if excepted or rule.exceptions.anything:
            continue
        for protocol in left:
            for scope in rule.targets.anything:
                if not scope.protocols or protocol in scope.protocols:
                    left[protocol] = port_sets.subtract(left[protocol], scope.ports)
            for other in rule.targets.symbols:
                if (other.kind, other.value) == (symbol.kind, symbol.value) and (
                    protocol in other.protocols
                ):
                    left[protocol] = port_sets.subtract(left[protocol], other.ports)
    return not any(left.values())


def _unix_refused(path: str, refusals: list[Rule]) -> bool:
    return any(
        path not in rule.exceptions.unix
        and (path in rule.targets.unix or rule.targets.bare_anything)
        for rule in refusals
    )


def _blocks(refusal: Rule, allow: Rule) -> bool:
    return (
        refusal.named.touches(allow.named)
        or bool(allow.targets.symbols and refusal.targets.anything)
        or any(symbol in refusal.targets.symbols for symbol in allow.targets.symbols)
        or any(_unix_refused(path, [refusal]) for path in allow.targets.unix)
    )
