"""Names bound at compile time: a policy whose names are addresses, for whoever wants to read those."""

from __future__ import annotations

from flowproof.addresses import UNBINDABLE, canonical, format_address, parse_address
from flowproof.diagnostics import Report
from flowproof.ir.regions import Region, union_all
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.ir.model import Destinations, Policy, Rule

__all__ = ["bound", "names_of"]


def names_of(policy: Policy) -> tuple[str, ...]:
    """Return the DNS names that *policy* writes, in order."""
    return tuple(sorted({name for rule in policy.rules for name in _names(rule)}))


def _names(rule: Rule) -> Iterator[str]:
    for symbol in (*rule.targets.symbols, *rule.exceptions.symbols):
        if symbol.kind == "name":
            yield symbol.value


def bound(
    policy: Policy, hosts: Mapping[str, tuple[str, ...]]
) -> tuple[Policy, dict[str, tuple[str, ...]]]:
    """Return *policy* with its names turned into the addresses of *hosts*, and which those are.

    Wildcards and variables stay. A name that *hosts* does not bind, or binds to an address that no name
    may have, is an error: `DiagnosticsError` with all of them, exit 3.
    """
    report = Report()
    found: dict[str, list[tuple[int, int]]] = {}
    for rule in policy.rules:
        for name in _names(rule):
            found[name] = [_address(text) for text in hosts.get(name, ())]
            _judge(name, found[name], rule, report)
    report.raise_errors()
    rules = tuple(
        replace(
            rule,
            targets=_bound(rule.targets, found),
            exceptions=_bound(rule.exceptions, found),
        )
        if any(True for _ in _names(rule))
        else rule
        for rule in policy.rules
    )
    used = {
        name: tuple(dict.fromkeys(format_address(*address) for address in found[name]))
        for name in sorted(found)
    }
    return replace(policy, rules=rules), used


def _address(text: str) -> tuple[int, int]:
    parsed = parse_address(text)
    if parsed is None:
        raise ValueError(f"`{text}` is no address")
    return canonical(*parsed)


def _judge(name: str, addresses: list[tuple[int, int]], rule: Rule, report: Report) -> None:
    span = rule.origin.span if rule.origin else None
    if not addresses:
        report.error(
            "FP115",
            f"`{name}` is bound to no address by the hosts given",
            span,
            f"add a line with an address and `{name}`, or compile without hosts: a run binds it",
            exit=3,
        )
    for family, value in addresses:
        space = _space(family, value)
        if space is not None:
            report.error(
                "FP116",
                f"`{name}` is bound to {format_address(family, value)}, and no name may stand for"
                f" {space} space",
                span,
                f"take the line out, or write the address or the word `{space}` in the rule",
                exit=3,
            )


def _space(family: int, value: int) -> str | None:
    if value == 0:  # Linux connects 0.0.0.0 and :: to the loopback address
        return "loopback"
    for space, intervals in UNBINDABLE:
        if any(family == kin and first <= value <= last for kin, first, last in intervals):
            return space
    return None


def _bound(destinations: Destinations, found: Mapping[str, list[tuple[int, int]]]) -> Destinations:
    regions = [destinations.region]
    for symbol in destinations.symbols:
        if symbol.kind == "name":
            points = ((family, value, value) for family, value in found[symbol.value])
            regions.append(Region.of(points, symbol.protocols, symbol.ports))
    left = tuple(symbol for symbol in destinations.symbols if symbol.kind != "name")
    return replace(destinations, region=union_all(regions), symbols=left)
