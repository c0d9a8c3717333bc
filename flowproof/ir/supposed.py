"""What a policy would mean if a name or a variable stood for the address or path of an event.

Both are bound when a run starts, so an answer given before says what holds if none of them does.
"""

from __future__ import annotations

from flowproof.addresses import UNBINDABLE
from flowproof.ir.events import Connect, Unix
from flowproof.ir.regions import Region
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flowproof.ir.events import Event
    from flowproof.ir.model import Destinations, Policy, Symbol

__all__ = ["suppositions"]


def suppositions(policy: Policy, event: Event) -> Iterator[tuple[str, Policy]]:
    """Yield what may stand for the address or path of *event*, each with the policy that holds if it does.

    Names come without those that keep a run from starting when they stand for the event's address.
    ``~`` and ``${cwd}`` are left out: they are known where the question is asked.
    """
    if isinstance(event, Connect):
        yield from _hosts(policy, event)
    elif isinstance(event, Unix):
        yield from _paths(policy, event)


def _hosts(policy: Policy, event: Connect) -> Iterator[tuple[str, Policy]]:
    barred = any(
        family == event.family and first <= event.address <= last
        for _, intervals in UNBINDABLE
        for family, first, last in intervals
    )
    found = {
        (symbol.kind, symbol.value): symbol
        for rule in policy.rules
        for symbol in (*rule.targets.symbols, *rule.exceptions.symbols)
        if symbol.kind == "variable" or not barred
    }
    interval = (event.family, event.address, event.address)
    for symbol in found.values():

        def bound(destinations: Destinations, symbol: Symbol = symbol) -> Destinations:
            region = destinations.region
            for one in destinations.symbols:
                if (one.kind, one.value) == (symbol.kind, symbol.value):
                    region |= Region.of([interval], one.protocols, one.ports)
            return replace(destinations, region=region)

        yield _written(symbol), _changed(policy, bound)


def _written(symbol: Symbol) -> str:
    if symbol.kind == "variable":
        return f"${{{symbol.value}}}"
    return f"*.{symbol.value}" if symbol.kind == "wildcard" else symbol.value


def _paths(policy: Policy, event: Unix) -> Iterator[tuple[str, Policy]]:
    found = {
        path: None
        for rule in policy.rules
        for path in (*rule.targets.unix, *rule.exceptions.unix)
        if path.startswith("${") and not path.startswith("${cwd}")
    }
    for path in found:
        if not event.path.endswith(path.partition("}")[2]):
            continue

        def bound(destinations: Destinations, path: str = path) -> Destinations:
            unix = (event.path if one == path else one for one in destinations.unix)
            return replace(destinations, unix=tuple(unix))

        yield path, _changed(policy, bound)


def _changed(policy: Policy, bound: Callable[[Destinations], Destinations]) -> Policy:
    return replace(
        policy,
        rules=tuple(
            replace(rule, targets=bound(rule.targets), exceptions=bound(rule.exceptions))
            for rule in policy.rules
        ),
    )
