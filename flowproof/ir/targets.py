"""Destinations of sentences → sets: set references expanded, fixed meanings applied."""

from __future__ import annotations

from flowproof.addresses import CLASSES, LAST, LOOPBACK, METADATA
from flowproof.ir import ports as port_sets
from flowproof.ir.model import Destinations, Scope, Symbol
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region, union_all
from flowproof.near import near_miss
from flowproof.syntax import tree
from flowproof.syntax.parse import parse_destinations
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.addresses import Interval
    from flowproof.diagnostics import Report, Span
    from flowproof.ir.ports import PortSet
    from flowproof.source.documents import Text

__all__ = ["Part", "Sets", "destinations", "raw_region", "raw_union"]

LIMIT = 35_000
"""How many members the references to sets of one file may come to, all together."""
DEPTH = 64
"""How deep sets may name each other."""

_EVERY: tuple[Interval, ...] = ((4, 0, LAST[4]), (6, 0, LAST[6]))


class Part(Value):
    """One destination without set references: a host, its ports, and the place where it is used."""

    host: tree.Host
    ports: PortSet
    span: Span


class Sets:
    """The sets of one file. Every member is parsed and every error reported, used or not."""

    def __init__(self, entries: Iterable[tuple[Text, tuple[Text, ...]]], report: Report) -> None:
        self._report = report
        self._members: dict[str, list[tree.Destination] | None] = {}
        self._spans: dict[str, Span] = {}
        for key, texts in entries:
            # a set that was read without members was refused then, and its error says so
            members: list[tree.Destination] | None = [] if texts else None
            for text in texts:
                before = report.failures
                parsed = parse_destinations(text, report)
                if not parsed or report.failures > before:
                    members = None
                elif members is not None:
                    members.extend(parsed)
            self._members[key.value] = members
            self._spans[key.value] = key.span
        self._parts: dict[str, list[Part] | None] = {}
        self._spent = 0
        for name in self._members:
            self._resolve(name, ())

    def expand(self, found: Iterable[tree.Destination]) -> list[Part] | None:
        """Return *found* with set references replaced, or None where one of them is broken."""
        return self._expand(found, ())

    def _expand(
        self, found: Iterable[tree.Destination], within: tuple[str, ...]
    ) -> list[Part] | None:
        parts: list[Part] = []
        sound = True
        for destination in found:
            ports = (
                port_sets.normal((part.low, part.high) for part in destination.ports.ranges)
                if destination.ports
                else None
            )
            if not isinstance(destination.host, tree.SetReference):
                parts.append(Part(destination.host, ports or ANY_PORT, destination.span))
                continue
            members = self._reference(destination.host, within)
            if members is None:
                sound = False
                continue
            if ports is not None and any(part.ports != ANY_PORT for part in members):
                self._report.error(
                    "FP507",
                    f"the members of `@{destination.host.name}` carry ports already",
                    destination.ports.span if destination.ports else destination.span,
                    f"write `@{destination.host.name}` without ports, or take them out of the set",
                    related=((self._spans[destination.host.name], "the set"),),
                )
                sound = False
                continue
            if not self._afford(len(members), destination.host):
                return None
            parts.extend(Part(part.host, ports or part.ports, destination.span) for part in members)
        return parts if sound else None

    def _afford(self, count: int, host: tree.SetReference) -> bool:
        """Tell whether *count* more members may be written out, and say once that they may not."""
        before, self._spent = self._spent, self._spent + count
        if self._spent <= LIMIT:
            return True
        if before <= LIMIT:
            self._report.error(
                "FP509",
                f"with `@{host.name}` the sets of this file come to more than {LIMIT} destinations",
                host.span,
                "write networks instead of single addresses, or fewer rules that share the set",
            )
        return False

    def _reference(self, host: tree.SetReference, within: tuple[str, ...]) -> list[Part] | None:
        if host.name not in self._members:
            near = near_miss(host.name, self._members)
            known = ", ".join(f"`@{name}`" for name in self._members) or "none"
            self._report.error(
                "FP505",
                f"unknown set `@{host.name}`",
                host.span,
                f"did you mean `@{near}`?" if near else f"sets of this file: {known}",
            )
            return None
        if host.name in within:
            circle = " → ".join(f"`@{name}`" for name in (*within, host.name))
            self._report.error(
                "FP506",
                f"set `@{host.name}` contains itself: {circle}",
                host.span,
                "take one of the references out",
            )
            return None
        if len(within) >= DEPTH:
            self._report.error(
                "FP506",
                f"sets name each other more than {DEPTH} deep here",
                host.span,
                "name the destinations, or a set that does",
            )
            return None
        return self._resolve(host.name, within)

    def _resolve(self, name: str, within: tuple[str, ...]) -> list[Part] | None:
        if name not in self._parts:
            self._parts[name] = (
                None  # stands until the members are known: a circle is met only once
            )
            members = self._members[name]
            if members is not None:
                parts = self._expand(members, (*within, name))
                # what is named twice, by way of other sets too, is one member
                once = {(part.host, part.ports): part for part in parts or ()}
                self._parts[name] = None if parts is None else list(once.values())
        return self._parts[name]


def destinations(
    parts: Iterable[Part], verb: str, action: str, protocols: tuple[str, ...]
) -> Destinations:
    """Return the set that *parts* are under *verb* of *action*; no *protocols* means both.

    What the fixed meanings say is in the result: a target wider than loopback does not cover it, and
    under ``allow connect`` only the word ``metadata`` or the exact address covers metadata.
    """
    kept = list(parts)
    spelt = ("tcp",) if action == "listen" else protocols or ("tcp", "udp")
    without_metadata = verb == "allow" and action == "connect"
    narrow_parts: list[Part] = []
    wide_parts: list[Part] = []
    for part in kept:
        if isinstance(part.host, tree.AddressClass):
            narrow = part.host.word in ("loopback", "metadata") or not without_metadata
        else:
            narrow = isinstance(part.host, tree.Address) and not _every(part.host, action)
        (narrow_parts if narrow or _inside_loopback(part.host) else wide_parts).append(part)
    region = raw_union(narrow_parts, action, protocols)
    if wide := raw_union(wide_parts, action, protocols):
        out = LOOPBACK + (METADATA if without_metadata else ())
        region = union_all((region, wide - Region.of(out)))
    return Destinations(
        region=region,
        anything=_scopes(kept, protocols, otherwise=False),
        otherwise=_scopes(kept, protocols, otherwise=True),
        symbols=_symbols(kept, spelt),
        unix=tuple(sorted({part.host.path for part in kept if isinstance(part.host, tree.Unix)})),
    )


def raw_region(part: Part, action: str, protocols: tuple[str, ...]) -> Region:
    """Return the addresses that *part* names by text, before any fixed meaning takes some out."""
    spelt = ("tcp",) if action == "listen" else protocols or ("tcp", "udp")
    return Region.of(_intervals(part.host, action), spelt, part.ports)


def raw_union(parts: Iterable[Part], action: str, protocols: tuple[str, ...]) -> Region:
    """Return the union of what each of *parts* names by text, those of equal ports in one sweep."""
    spelt = ("tcp",) if action == "listen" else protocols or ("tcp", "udp")
    by_ports: dict[PortSet, list[Interval]] = {}
    for part in parts:
        by_ports.setdefault(part.ports, []).extend(_intervals(part.host, action))
    return union_all(Region.of(held, spelt, ports) for ports, held in by_ports.items())


def _intervals(host: tree.Host, action: str) -> tuple[Interval, ...]:
    match host:
        case tree.Address(family, 0, _) if action == "listen":
            return tuple(part for part in _EVERY if family == 6 or part[0] == 4)
        case tree.Address(family, 0, _):  # Linux connects 0.0.0.0 and :: to the loopback address
            value = 0x7F000001 if family == 4 else 1
            return ((family, value, value),)
        case tree.Address(family, value, _):
            return ((family, value, value),)
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
