"""A policy → the decision tables: what becomes of every attempt, as data that a bisection reads."""

from __future__ import annotations

from flowproof.addresses import LAST
from flowproof.artifact.model import PLANES, Plane, Tables, UnixRow
from flowproof.ir import ports as port_sets
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region, union_all
from flowproof.lower.entries import EXCEPTED, LEAVES, NAMED, OTHERWISE, Entries
from flowproof.lower.sweep import Sweeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.ports import PortSet
    from flowproof.lower.entries import Member
    from flowproof.lower.sweep import Box

__all__ = ["tables"]

_SPECIAL = ("families", "foreign-abi", "unreadable", "unix")


def tables(policy: Policy) -> Tables:
    """Return the decision tables of *policy*: the same for the same policy, whatever its rules' order."""
    entries = Entries(policy)
    sweeper = Sweeper(entries.number)
    entries.number(())  # entry 0 is the empty one
    planes: dict[str, Plane] = {}
    boxes = _boxes(policy)
    for name in PLANES:
        if name.startswith("listen-any"):
            families = (4,) if name.endswith("4") else (4, 6)
            table = sweeper.table(_listened(policy, families))
            planes[name] = Plane((0,), (table,))
        else:
            planes[name] = sweeper.plane(boxes[name], LAST[int(name[-1])])
    unaddressed = _Unaddressed(policy)
    special = {meaning: entries.number(unaddressed.bare(meaning)) for meaning in _SPECIAL}
    unix = tuple(
        UnixRow(
            path,
            entries.number(unaddressed.outside(path)),
            entries.number(unaddressed.inside(path)),
        )
        for path in unaddressed.paths
    )
    return Tables(entries.all, sweeper.tables, planes, special, unix)


def _boxes(policy: Policy) -> dict[str, list[Box]]:
    """Return the boxes of each plane (a line of addresses) with who holds each of them."""
    held: dict[str, list[Box]] = {name: [] for name in PLANES}
    for action in ("connect", "listen"):
        for role, at, region in _regions(policy, action):
            member = (role, at)
            for (protocol, family), boxes in region.planes:
                if action == "connect" or protocol == "tcp":
                    line = held[f"{protocol if action == 'connect' else action}{family}"]
                    line += [(first, last, ports, member) for first, last, ports in boxes]
    return held


def _regions(policy: Policy, action: str) -> Iterator[tuple[str, int, Region]]:
    for at, rule in enumerate(policy.rules):
        if rule.action != action or rule.meaning is not None:
            if action == "listen" and rule.meaning == "listen":
                yield OTHERWISE, at, _unexcepted(policy)
            continue
        yield NAMED, at, rule.named
        if rule.targets.otherwise:
            yield OTHERWISE, at, rule.otherwise
        if (
            rule.targets.symbols
        ):  # binding adds an address to a rule but where its `except` holds it
            yield EXCEPTED, at, rule.exceptions.region


def _unexcepted(policy: Policy) -> Region:
    """Return where off loopback the implied refusal of listen stands: where no refusal excepts it."""
    excepted = union_all(
        rule.exceptions.region for rule in policy.rules if rule.action == "listen" and rule.refuses
    )
    return Region.of(OFF_LOOPBACK, ("tcp",)) - excepted


def _listened(policy: Policy, families: tuple[int, ...]) -> Iterator[tuple[Member, PortSet]]:
    """Yield who holds a listen on every address of *families* at once, with the ports.

    What refuses or counts holds where it touches any address; an allow has to cover all off loopback,
    and so has an exception from the implied refusal.
    """
    every = Region.of((part for part in OFF_LOOPBACK if part[0] in families), ("tcp",))
    allowed = policy.allowed("listen")
    for at, rule in enumerate(policy.rules):
        if rule.meaning == "listen":
            yield from _with(OTHERWISE, at, _ports(_unexcepted(policy), families))
        if rule.action != "listen" or rule.meaning is not None:
            continue
        if rule.verb == "allow":
            uncovered = _ports(every - rule.named, families)
            yield from _with(NAMED, at, port_sets.subtract(ANY_PORT, uncovered))
        else:
            yield from _with(NAMED, at, _ports(rule.named, families))
        if rule.kind == "default":
            yield from _with(OTHERWISE, at, ANY_PORT)
        elif rule.targets.otherwise:
            yield from _with(OTHERWISE, at, _ports(rule.otherwise - allowed, families))


def _with(role: str, at: int, ports: PortSet) -> Iterator[tuple[Member, PortSet]]:
    if ports:
        yield (role, at), ports


def _ports(region: Region, families: tuple[int, ...]) -> PortSet:
    """Return the ports at which *region* holds any address of *families*, in tcp."""
    return port_sets.union(
        *(ports for family in families for _, _, ports in region.boxes("tcp", family))
    )


class _Unaddressed:
    """Who holds what has no address: other families, foreign calls, unix sockets."""

    def __init__(self, policy: Policy) -> None:
        self._rules = policy.rules
        self._bare: list[Member] = []  # by `anything` and by `anything else`
        self._meant: dict[str, list[Member]] = {}
        self._naming: dict[str, list[Member]] = {}
        self._leaving: dict[str, list[Member]] = {}
        for at, rule in enumerate(policy.rules):
            if rule.meaning is not None:
                self._meant.setdefault(rule.meaning, []).append((OTHERWISE, at))
            elif rule.action == "connect":
                self._take(at, rule)

    def _take(self, at: int, rule: Rule) -> None:
        if rule.targets.anything and rule.targets.bare_anything and rule.verb != "allow":
            self._bare.append((NAMED, at))
        if rule.targets.otherwise and rule.targets.bare_otherwise:
            self._bare.append((OTHERWISE, at))
        for path in rule.targets.unix:
            held = self._naming.setdefault(path, [])
            if path not in rule.exceptions.unix:
                held.append((NAMED, at))
        for path in rule.exceptions.unix:
            left = self._leaving.setdefault(path, [])
            if rule.refuses:
                left.append((LEAVES, at))

    @property
    def paths(self) -> list[str]:
        """The unix paths that rules name or except."""
        return sorted({*self._naming, *self._leaving})

    def bare(self, meaning: str) -> list[Member]:
        """Return who holds what ``anything`` and ``anything else`` hold besides addresses, and the fixed
        *meaning* that does.
        """
        return self._bare + self._meant.get(meaning, [])

    def outside(self, path: str) -> set[Member]:
        """Return who holds for an outside socket at *path*."""
        held = self.bare("unix") + self._naming.get(path, [])
        return {
            *(member for member in held if path not in self._rules[member[1]].exceptions.unix),
            *self._leaving.get(path, ()),
        }

    def inside(self, path: str) -> list[Member]:
        """Return who holds for inside sockets too: any verb that names *path* but ``allow``, which an
        inside socket does not need.
        """
        named = self._naming.get(path, ())
        return [member for member in named if self._rules[member[1]].verb != "allow"]
