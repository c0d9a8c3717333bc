"""Symbolic parts of an artifact against the reference meaning, each bound to addresses of our choice.

`bindings` compares the lists of entries in a normal form, which is about every binding. This is another
opinion by another way, and has an address to show: what a run binds is put into the entries, as the model of
the artifact has it, and compared with `ir.evaluate` of the policy that has addresses in place of its symbols.

What a binding does to a point is told by who is bound there and by what tables and policy hold there. So the
addresses are: one of its own for each name and variable; one for all of them, as names share addresses;
addresses inside the cells of the tables, for each and for all; and one for every two.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import combinations

from flowproof.addresses import UNBINDABLE, format_address
from flowproof.ir.events import Connect, Listen
from flowproof.ir.regions import Region, union_all
from flowproof.values import Value, replace
from flowproof.verify.reading import decide
from flowproof.verify.reference import Reference
from flowproof.verify.telling import Telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from flowproof.ir.events import Event
    from flowproof.ir.model import Destinations, Policy, Rule, Symbol
    from flowproof.verify.found import Counterexample
    from flowproof.verify.reading import Read

    Key = tuple[str, str]  # kind and value of a symbol: what is bound as one

__all__ = ["compare_samples"]

_FEW = 600  # rules looked at, of all attempts together; the normal form is about the rest
_MANY = 20_000  # the same where an artifact comes from elsewhere, and nobody waits for a compile
_TOGETHER = 50  # names and variables that share an address, of more
_PAIRS = 12  # names and variables of which every two share an address
_CELLS = 6  # addresses inside cells of the tables, of each family


class _Sample(Value):
    """An address and who is bound to it."""

    family: int
    address: int
    keys: tuple[Key, ...]


def compare_samples(
    policy: Policy,
    read: Read,
    symbols: Sequence[Mapping[str, Any]],
    rules: Sequence[Mapping[str, Any]],
    *,
    thorough: bool,
) -> tuple[int, Counterexample | None]:
    """Return how many bound attempts were compared, and the first one that is decided otherwise.

    *symbols* and *rules* are those of the artifact (JSON), *read* its tables. Few attempts are compared
    unless it is *thorough*.
    """
    keys = sorted({(symbol.kind, symbol.value) for _, _, symbol in _of(policy)})
    left = max((_MANY if thorough else _FEW) // max(len(policy.rules), 1), 2)
    telling = Telling(policy, read)
    done = 0
    for sample in _samples(keys, read):
        meant = Reference(_with_bound(policy, sample))
        for plane, port in _points(policy, symbols, sample):
            if done >= left:
                return done, None
            done += 1
            event = _event(plane, sample, port)
            wanted = meant.event(event)
            entry, held, put = _entry(read, symbols, rules, sample, plane, port)
            has = decide(held, rules)
            if has != wanted:
                part = (
                    f"plane {plane} at {format_address(sample.family, sample.address)} port {port},"
                    f" entry {entry}{_put(put)}"
                )
                return done, telling.of_outcome(_bound(str(event), sample), has, wanted, part)
    return done, None


def _of(policy: Policy) -> Iterator[tuple[Rule, str, Symbol]]:
    for rule in policy.rules:
        for role, found in (("target", rule.targets), ("except", rule.exceptions)):
            for symbol in found.symbols:
                yield rule, role, symbol


# --- who is bound where


def _samples(keys: Sequence[Key], read: Read) -> Iterator[_Sample]:
    together = tuple(keys[:_TOGETHER])
    groups = [*((key,) for key in keys), *([together] if len(keys) > 1 else [])]
    for number, group in enumerate(groups):
        yield _fresh(number, group)
    yield _Sample(6, 0x20010002 << 96 | 1, together)  # RFC 5180: nobody's network
    for family in (4, 6):
        for address in _inside(read, family):
            for group in groups:
                yield _Sample(family, address, group)
    if 2 < len(keys) <= _PAIRS:
        for number, pair in enumerate(combinations(keys, 2), len(groups)):
            yield _fresh(number, pair)


def _fresh(number: int, group: tuple[Key, ...]) -> _Sample:
    """Return an address of its own for *group*, out of 198.18.0.0/15 (RFC 2544: nobody's network)."""
    return _Sample(4, (198 << 24 | 18 << 16) + (number + 1) % (1 << 17), group)


def _inside(read: Read, family: int) -> list[int]:
    """Return addresses of cells that differ, spread over the line, of those that a name may have."""
    line = read.planes[f"tcp{family}"]
    first: dict[int, int] = {}
    for start, value in zip(line.starts, line.values, strict=True):
        if start and _bindable(family, start):
            first.setdefault(value, start)
    found = sorted(first.values())
    return found[:: max(len(found) // _CELLS, 1)][:_CELLS]


def _bindable(family: int, address: int) -> bool:
    return not any(
        kin == family and low <= address <= high
        for _, intervals in UNBINDABLE
        for kin, low, high in intervals
    )


def _points(
    policy: Policy, symbols: Sequence[Mapping[str, Any]], sample: _Sample
) -> Iterator[tuple[str, int]]:
    """Yield planes and ports: both sides of each end of what is bound, by policy or by artifact."""
    ports = {0}
    actions = set()
    for rule, _, symbol in _of(policy):
        if (symbol.kind, symbol.value) in sample.keys:
            actions.add(rule.action)
            ports.update(_ends(symbol.ports))
    for one in symbols:
        if (one["kind"], one["value"]) in sample.keys:
            ports.update(_ends(one["ports"]))
    planes = [f"{protocol}{sample.family}" for protocol in ("tcp", "udp") if "connect" in actions]
    planes += [f"listen{sample.family}"] if "listen" in actions else []
    for plane in planes:
        for port in sorted(ports):
            yield plane, port


def _ends(ports: Iterable[Sequence[int]]) -> Iterator[int]:
    for low, high in ports:
        yield from (port for port in (low - 1, low, high, high + 1) if 0 <= port <= 65535)


def _event(plane: str, sample: _Sample, port: int) -> Event:
    if plane.startswith("listen"):
        return Listen(sample.family, sample.address, port)
    return Connect(plane[:-1], sample.family, sample.address, port)


# --- the policy in which they are bound


def _with_bound(policy: Policy, sample: _Sample) -> Policy:
    return replace(
        policy,
        rules=tuple(
            replace(
                rule,
                targets=_as_addresses(rule.targets, sample),
                exceptions=_as_addresses(rule.exceptions, sample),
            )
            if any(
                (symbol.kind, symbol.value) in sample.keys
                for symbol in (*rule.targets.symbols, *rule.exceptions.symbols)
            )
            else rule
            for rule in policy.rules
        ),
    )


def _as_addresses(held: Destinations, sample: _Sample) -> Destinations:
    """Return *held* with what is bound to the sample's address as that; the others are no address here."""
    point = ((sample.family, sample.address, sample.address),)
    regions = [
        Region.of(point, symbol.protocols, symbol.ports)
        for symbol in held.symbols
        if (symbol.kind, symbol.value) in sample.keys
    ]
    left = tuple(s for s in held.symbols if (s.kind, s.value) not in sample.keys)
    return replace(held, region=union_all([held.region, *regions]), symbols=left)


# --- the tables in which they are bound


def _entry(
    read: Read,
    symbols: Sequence[Mapping[str, Any]],
    rules: Sequence[Mapping[str, Any]],
    sample: _Sample,
    plane: str,
    port: int,
) -> tuple[int, Mapping[str, Sequence[int]], list[int]]:
    """Return the entry of a point, its lists with what is bound there, and by which symbols."""
    line = read.planes[plane]
    table = read.ports[line.values[bisect_right(line.starts, sample.address) - 1]]
    entry = table.values[bisect_right(table.starts, port) - 1]
    lists = {name: list(held) for name, held in read.entries[entry].items()}
    put = [
        at
        for at, one in enumerate(symbols)
        if (one["kind"], one["value"]) in sample.keys and _covers(one, rules, plane, port)
    ]
    for at in put:
        if symbols[at]["role"] == "except":
            _except(lists, symbols[at]["rule"], rules)
    for at in put:
        if symbols[at]["role"] == "target":
            _target(lists, symbols[at]["rule"], rules)
    return entry, lists, put


def _covers(
    symbol: Mapping[str, Any], rules: Sequence[Mapping[str, Any]], plane: str, port: int
) -> bool:
    action = "listen" if plane.startswith("listen") else "connect"
    if rules[symbol["rule"]]["action"] != action:
        return False
    if action == "connect" and plane[:-1] not in symbol["protocols"]:
        return False
    return not symbol["ports"] or any(low <= port <= high for low, high in symbol["ports"])


def _except(lists: dict[str, list[int]], rule: int, rules: Sequence[Mapping[str, Any]]) -> None:
    gone = {rule}
    if rules[rule]["action"] == "listen" and rules[rule]["verb"] in ("deny", "never"):
        gone.update(at for at in lists.get("otherwise", ()) if rules[at]["kind"] == "implied")
    for name, held in lists.items():
        if name != "excepted":
            held[:] = [at for at in held if at not in gone]
    lists.setdefault("excepted", []).append(rule)


def _target(lists: dict[str, list[int]], rule: int, rules: Sequence[Mapping[str, Any]]) -> None:
    if rule in lists.get("excepted", ()):
        return
    verb = rules[rule]["verb"]
    names = {"allow": ("allow",), "deny": ("refuse",), "never": ("refuse", "watch")}
    for name in names.get(verb, ("watch",)):
        held = lists.setdefault(name, [])
        if rule not in held:
            held.append(rule)
            if (
                name != "watch"
            ):  # the first of a list decides: never before deny, then the smaller id
                held.sort(key=lambda at: (rules[at]["verb"] == "deny", at))


# --- telling


def _bound(event: str, sample: _Sample) -> str:
    names = ", ".join(_shown(key) for key in sample.keys)
    return f"{event}, where {names} {'is' if len(sample.keys) == 1 else 'are'} bound to it"


def _shown(key: Key) -> str:
    kind, value = key
    return {"variable": f"${{{value}}}", "wildcard": f"*.{value}"}.get(kind, value)


def _put(put: Sequence[int]) -> str:
    return f", with {', '.join(f'symbols[{at}]' for at in put)} put in" if put else ""
