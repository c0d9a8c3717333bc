"""A policy → the decision tables: what becomes of every attempt, as data that a bisection reads."""

from __future__ import annotations

from flowproof.addresses import LAST
from flowproof.artifact.model import PLANES, Entry, Plane, Tables, UnixRow
from flowproof.ir import ports as port_sets
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region, union_all
from flowproof.lower.sweep import Sweeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.ports import PortSet
    from flowproof.lower.sweep import Box, Member

__all__ = ["tables"]

_NAMED = "named"
_OTHERWISE = "otherwise"
_EXCEPTED = "excepted"
_LEAVES = "leaves"
_SPECIAL = ("families", "foreign-abi", "unreadable", "unix")
_DECIDING = ("refuse", "allow", "otherwise", "leave")  # the first of each decides
_KINDS = {"authored": 0, "short-form": 0, "default": 1, "implied": 2}


def tables(policy: Policy) -> Tables:
    """Return the decision tables of *policy*: the same for the same policy, whatever its rules' order."""
    entries = _Entries(policy)
    sweeper = Sweeper(entries.number)
    entries.number(())  # entry 0 is the empty one
    planes: dict[str, Plane] = {}
    for name in PLANES:
        if name.startswith("listen-any"):
            families = (4,) if name.endswith("4") else (4, 6)
            table = sweeper.table(_listened(policy, families))
            planes[name] = Plane((0,), (table,))
        else:
            planes[name] = sweeper.plane(_boxes(policy, name), LAST[int(name[-1])])
    special = {meaning: entries.number(_bare(policy, meaning)) for meaning in _SPECIAL}
    unix = tuple(
        UnixRow(path, entries.number(_outside(policy, path)), entries.number(_inside(policy, path)))
        for path in _unix_paths(policy)
    )
    return Tables(entries.all, sweeper.tables, planes, special, unix)


class _Entries:
    """The entries of one policy, each kept once, numbered as they are first met."""

    def __init__(self, policy: Policy) -> None:
        self._rules = policy.rules
        self._numbers: dict[tuple[tuple[int, ...], ...], int] = {}
        self._found: list[Entry] = []
        # A `never` handles before a `deny`, then the smaller id; what an author wrote before the
        # default, the default before what a fixed meaning implies.
        self._order = [
            (_KINDS[rule.kind], rule.refuses and rule.verb != "never", at)
            for at, rule in enumerate(policy.rules)
        ]
        # A name that a rule excepts takes the rule out of the cells of its addresses.
        self._removable = {at for at, rule in enumerate(policy.rules) if rule.exceptions.symbols}

    @property
    def all(self) -> tuple[Entry, ...]:
        return tuple(self._found)

    def number(self, members: Iterable[Member]) -> int:
        """Return the number of the entry that *members* make, each role in the lists of its verb."""
        lists: dict[str, list[int]] = {field: [] for field in Entry.__fields__}
        for role, at in members:
            for field in self._fields(role, self._rules[at]):
                lists[field].append(at)
        for field, held in lists.items():
            held.sort(key=self._order.__getitem__ if field in _DECIDING else None)
            if field in _DECIDING:
                self._cut(held)
        key = tuple(tuple(lists[field]) for field in Entry.__fields__)
        if key not in self._numbers:
            self._numbers[key] = len(self._found)
            self._found.append(Entry(*key))
        return self._numbers[key]

    def _cut(self, held: list[int]) -> None:
        """Drop what never decides: what comes behind a rule that no binding can take out."""
        for place, at in enumerate(held):
            if at not in self._removable:
                del held[place + 1 :]
                return

    @staticmethod
    def _fields(role: str, rule: Rule) -> Iterator[str]:
        """Yield the lists of an entry that *rule* is in by *role*."""
        if role == _EXCEPTED:
            yield "excepted"
        elif role == _LEAVES:
            yield "leave"
        elif role == _OTHERWISE:
            if rule.refuses:
                yield "otherwise"
            if rule.asserts or rule.verb == "observe":
                yield "watch_otherwise"
        else:
            if rule.refuses:
                yield "refuse"
            if rule.verb == "allow":
                yield "allow"
            if rule.asserts or rule.verb == "observe":
                yield "watch"


def _boxes(policy: Policy, name: str) -> Iterator[Box]:
    """Yield the boxes of the plane *name* (a line of addresses) with who holds each of them."""
    protocol, family = name[:-1], int(name[-1])
    action = "listen" if protocol == "listen" else "connect"
    if action == "listen":
        protocol = "tcp"
    for role, at, region in _regions(policy, action):
        for first, last, ports in region.boxes(protocol, family):
            yield first, last, ports, (role, at)


def _regions(policy: Policy, action: str) -> Iterator[tuple[str, int, Region]]:
    for at, rule in enumerate(policy.rules):
        if rule.action != action or rule.meaning is not None:
            if action == "listen" and rule.meaning == "listen":
                yield _OTHERWISE, at, _unexcepted(policy)
            continue
        yield _NAMED, at, rule.named
        yield _OTHERWISE, at, rule.otherwise
        if (
            rule.targets.symbols
        ):  # binding adds an address to a rule but where its `except` holds it
            yield _EXCEPTED, at, rule.exceptions.region


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
            yield from _with(_OTHERWISE, at, _ports(_unexcepted(policy), families))
        if rule.action != "listen" or rule.meaning is not None:
            continue
        if rule.verb == "allow":
            uncovered = _ports(every - rule.named, families)
            yield from _with(_NAMED, at, port_sets.subtract(ANY_PORT, uncovered))
        else:
            yield from _with(_NAMED, at, _ports(rule.named, families))
        if rule.kind == "default":
            yield from _with(_OTHERWISE, at, ANY_PORT)
        elif rule.targets.otherwise:
            yield from _with(_OTHERWISE, at, _ports(rule.otherwise - allowed, families))


def _with(role: str, at: int, ports: PortSet) -> Iterator[tuple[Member, PortSet]]:
    if ports:
        yield (role, at), ports


def _ports(region: Region, families: tuple[int, ...]) -> PortSet:
    """Return the ports at which *region* holds any address of *families*, in tcp."""
    return port_sets.union(
        *(ports for family in families for _, _, ports in region.boxes("tcp", family))
    )


def _written(policy: Policy) -> Iterator[tuple[int, Rule]]:
    return (
        (at, rule)
        for at, rule in enumerate(policy.rules)
        if rule.action == "connect" and rule.meaning is None
    )


def _bare(
    policy: Policy, meaning: str, holds: Callable[[Rule], bool] = lambda _: True
) -> Iterator[Member]:
    """Yield who holds what ``anything`` and ``anything else`` hold besides addresses."""
    for at, rule in _written(policy):
        if rule.targets.bare_anything and rule.verb != "allow" and holds(rule):
            yield _NAMED, at
        if rule.targets.bare_otherwise and holds(rule):
            yield _OTHERWISE, at
    for at, rule in enumerate(policy.rules):
        if rule.meaning == meaning:
            yield _OTHERWISE, at


def _unix_paths(policy: Policy) -> list[str]:
    return sorted(
        {
            path
            for _, rule in _written(policy)
            for path in (*rule.targets.unix, *rule.exceptions.unix)
        }
    )


def _outside(policy: Policy, path: str) -> set[Member]:
    found = set(_bare(policy, "unix", lambda rule: path not in rule.exceptions.unix))
    found |= set(_naming(policy, path))
    found |= {
        (_LEAVES, at)
        for at, rule in _written(policy)
        if rule.refuses and path in rule.exceptions.unix
    }
    return found


def _inside(policy: Policy, path: str) -> Iterator[Member]:
    """Yield who holds for inside sockets too: any verb that names *path* but ``allow``, which an inside
    socket does not need.
    """
    return (member for member in _naming(policy, path) if policy.rules[member[1]].verb != "allow")


def _naming(policy: Policy, path: str) -> Iterator[Member]:
    for at, rule in _written(policy):
        if path in rule.targets.unix and path not in rule.exceptions.unix:
            yield _NAMED, at
