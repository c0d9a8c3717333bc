"""Destinations without set references → sets of addresses, names and paths, fixed meanings applied."""

from __future__ import annotations

from flowproof.addresses import CLASSES, LAST, LOOPBACK, METADATA
from flowproof.ir import ports as port_sets
from flowproof.ir.model import Destinations, Scope, Symbol
from flowproof.ir.regions import EMPTY, Region, union_all
from flowproof.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.addresses import Interval
    from flowproof.ir.ports import PortSet
    from flowproof.ir.sets import Part

__all__ = ["destinations", "raw_region", "raw_union"]

_EVERY: tuple[Interval, ...] = ((4, 0, LAST[4]), (6, 0, LAST[6]))


_NOTHING = Destinations()
_ADDRESSES = (tree.Address, tree.Cidr, tree.AddressClass)


def destinations(
    parts: list[Part], verb: str, action: str, protocols: tuple[str, ...]
) -> Destinations:
    """Return the set that *parts* are under *verb* of *action*; no *protocols* means both.

    What the fixed meanings say is in the result: a target wider than loopback does not cover it, and
    under ``allow connect`` only the word ``metadata`` or the exact address covers metadata.
    """
    if not parts:
        return _NOTHING
    without_metadata = verb == "allow" and action == "connect"
    narrow_parts: list[Part] = []
    wide_parts: list[Part] = []
    for part in parts:
        narrow = _is_narrow(part.host, action, metadata=not without_metadata)
        (narrow_parts if narrow else wide_parts).append(part)
    region = raw_union(narrow_parts, action, protocols)
    if wide_parts and (wide := raw_union(wide_parts, action, protocols)):
        out = LOOPBACK + (METADATA if without_metadata else ())
        region = union_all((region, wide - Region.of(out)))
    others = [part for part in parts if not isinstance(part.host, _ADDRESSES)]
    if not others:
        return Destinations(region)
    return Destinations(
        region=region,
        anything=_scopes(others, protocols, otherwise=False),
        otherwise=_scopes(others, protocols, otherwise=True),
        symbols=_symbols(others, _spelt(action, protocols)),
        unix=tuple(sorted({part.host.path for part in others if isinstance(part.host, tree.Unix)})),
    )


def _is_narrow(host: tree.Host, action: str, *, metadata: bool) -> bool:
    """Tell whether *host* covers loopback, and metadata where it would not, by naming no more than that."""
    if isinstance(host, tree.Address):
        return not _every(host, action)
    if isinstance(host, tree.AddressClass):
        return metadata or host.word in ("loopback", "metadata")
    return _inside_loopback(host)


def raw_region(part: Part, action: str, protocols: tuple[str, ...]) -> Region:
    """Return the addresses that *part* names by text, before any fixed meaning takes some out."""
    return Region.of(_intervals(part.host, action), _spelt(action, protocols), part.ports)


def raw_union(parts: list[Part], action: str, protocols: tuple[str, ...]) -> Region:
    """Return the union of what each of *parts* names by text, those of equal ports in one sweep."""
    if not parts:
        return EMPTY
    by_ports: dict[PortSet, list[Interval]] = {}
    for part in parts:
        by_ports.setdefault(part.ports, []).extend(_intervals(part.host, action))
    spelt = _spelt(action, protocols)
    return union_all([Region.of(held, spelt, ports) for ports, held in by_ports.items()])


def _spelt(action: str, protocols: tuple[str, ...]) -> tuple[str, ...]:
    return ("tcp",) if action == "listen" else protocols or ("tcp", "udp")


def _intervals(host: tree.Host, action: str) -> tuple[Interval, ...]:
    if isinstance(host, tree.Address):
        family, value = host.family, host.value
        if value:
            return ((family, value, value),)
        if action == "listen":
            return tuple(part for part in _EVERY if family == 6 or part[0] == 4)
        # Linux connects 0.0.0.0 and :: to the loopback address
        value = 0x7F000001 if family == 4 else 1
        return ((family, value, value),)
    match host:
        case tree.Cidr(family, base, prefix, _):
            return ((family, base, base | ((1 << ((32 if family == 4 else 128) - prefix)) - 1)),)
        case tree.AddressClass(word, _):
            return CLASSES[word]
        case tree.Anything(otherwise=False):
            return _EVERY
        case _:
            return ()


def _every(host: tree.Address, action: str) -> bool:
    return action == "listen" and host.value == 0


def _inside_loopback(host: tree.Host) -> bool:
    if not isinstance(host, tree.Cidr):
        return False
    ((family, first, last),) = _intervals(host, "connect")
    return any(family == f and a <= first and last <= b for f, a, b in LOOPBACK)


def _scopes(parts: list[Part], protocols: tuple[str, ...], *, otherwise: bool) -> tuple[Scope, ...]:
    scopes = {
        Scope(protocols, part.ports)
        for part in parts
        if isinstance(part.host, tree.Anything) and part.host.otherwise is otherwise
    }
    return tuple(sorted(scopes, key=lambda scope: scope.ports))


def _symbols(parts: list[Part], protocols: tuple[str, ...]) -> tuple[Symbol, ...]:
    ports: dict[tuple[str, str], PortSet] = {}
    for part in parts:
        match part.host:
            case tree.Name(name, _):
                key = ("name", name)
            case tree.Wildcard(name, _):
                key = ("wildcard", name)
            case tree.Variable(name, _):
                key = ("variable", name)
            case _:
                continue
        ports[key] = port_sets.union(ports.get(key, ()), part.ports)
    return tuple(Symbol(*key, protocols, ports[key]) for key in sorted(ports))
