"""Decision tables with the symbolic parts put in: planes cut at the bound addresses. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from flowproof.addresses import LAST
from flowproof.artifact.model import Entry, Plane, PortTable, Rule, Tables
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Patch", "patched"]

_LAST_PORT = 65535
_LISTS = ("refuse", "allow", "otherwise", "watch", "watch_otherwise", "leave")


class Patch(Value):
    """One rule's membership in the cells of *plane* from *first* to *last*, on *ports* (none: any)."""

    plane: str
    first: int
    last: int
    ports: tuple[tuple[int, int], ...]
    rule: int
    role: str


class _Pool:
    """The entries and port tables of the result, each kept once."""

    def __init__(self, tables: Tables, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self.entries = list(tables.entries)
        self.ports = list(tables.ports)
        self._entry_of = {entry: at for at, entry in enumerate(self.entries)}
        self._table_of = {table: at for at, table in enumerate(self.ports)}
        self._changed: dict[tuple[int, int, str], int] = {}

    def entry(self, at: int, patch: Patch) -> int:
        """Return the index of an entry with the rule of *patch* put in, or taken out."""
        key = (at, patch.rule, patch.role)
        if key not in self._changed:
            old = self.entries[at]
            change = _excepted if patch.role == "except" else _targeted
            new = change(old, patch.rule, self.rules)
            if new not in self._entry_of:
                self._entry_of[new] = len(self.entries)
                self.entries.append(new)
            self._changed[key] = self._entry_of[new]
        return self._changed[key]

    def table(self, at: int, patch: Patch) -> int:
        """Return the index of a port table with the entries of the patched ports changed."""
        starts, entries = list(self.ports[at].starts), list(self.ports[at].entries)
        for low, high in patch.ports or ((0, _LAST_PORT),):
            _cut(starts, entries, low)
            if high < _LAST_PORT:
                _cut(starts, entries, high + 1)
            for cell in range(bisect_left(starts, low), bisect_right(starts, high)):
                entries[cell] = self.entry(entries[cell], patch)
        table = PortTable(tuple(starts), tuple(entries))
        if table not in self._table_of:
            self._table_of[table] = len(self.ports)
            self.ports.append(table)
        return self._table_of[table]


def patched(tables: Tables, rules: tuple[Rule, ...], patches: Iterable[Patch]) -> Tables:
    """Return *tables* with the exceptions and then the targets of *patches* in force."""
    ordered = sorted(patches, key=lambda patch: patch.role != "except")
    pool = _Pool(tables, rules)
    planes: Mapping[str, tuple[list[int], list[int]]] = {
        name: (list(plane.starts), list(plane.cells)) for name, plane in tables.planes.items()
    }
    done: dict[tuple[int, Patch], int] = {}
    for patch in ordered:
        starts, cells = planes[patch.plane]
        _cut(starts, cells, patch.first)
        if patch.last < _last(patch.plane):
            _cut(starts, cells, patch.last + 1)
        everywhere = replace(patch, plane="", first=0, last=0)
        for cell in range(bisect_left(starts, patch.first), bisect_right(starts, patch.last)):
            key = (cells[cell], everywhere)
            if key not in done:
                done[key] = pool.table(cells[cell], patch)
            cells[cell] = done[key]
    return replace(
        tables,
        entries=tuple(pool.entries),
        ports=tuple(pool.ports),
        planes={name: Plane(tuple(s), tuple(c)) for name, (s, c) in planes.items()},
    )


def _last(plane: str) -> int:
    """Return the last address of a plane's line; the planes of a listen on any have address 0 alone."""
    return 0 if plane.startswith("listen-any") else LAST[int(plane[-1])]


def _cut(starts: list[int], values: list[int], at: int) -> None:
    """Make an interval begin at *at*, with the value that it has now."""
    place = bisect_left(starts, at)
    if place == len(starts) or starts[place] != at:
        starts.insert(place, at)
        values.insert(place, values[place - 1])


def _excepted(entry: Entry, rule: int, rules: tuple[Rule, ...]) -> Entry:
    """Return the entry without the rule in any list but *excepted*. What a refusal of listens excepts, the
    fixed meaning does not refuse either.
    """
    gone = {rule}
    if rules[rule].action == "listen" and rules[rule].verb in ("deny", "never"):
        gone.update(at for at in entry.otherwise if rules[at].kind == "implied")
    lists = {
        name: tuple(member for member in getattr(entry, name) if member not in gone)
        for name in _LISTS
    }
    return Entry(**lists, excepted=tuple(sorted({*entry.excepted, rule})))


def _targeted(entry: Entry, rule: int, rules: tuple[Rule, ...]) -> Entry:
    """Return the entry with the rule in the lists that its verb belongs to, unless it is excepted."""
    if rule in entry.excepted:
        return entry
    verb = rules[rule].verb
    changes: dict[str, tuple[int, ...]] = {}
    if verb == "allow":
        changes["allow"] = _with(entry.allow, rule, rules)
    if verb in ("deny", "never"):
        changes["refuse"] = _with(entry.refuse, rule, rules)
    if verb in ("never", "expect no", "observe"):
        changes["watch"] = tuple(sorted({*entry.watch, rule}))
    return replace(entry, **changes)


def _with(members: tuple[int, ...], rule: int, rules: tuple[Rule, ...]) -> tuple[int, ...]:
    """Return the list with the rule at its place: never before deny, then the smaller id."""
    if rule in members:
        return members
    found = list(members)
    insort(found, rule, key=lambda member: (rules[member].verb == "deny", member))
    return tuple(found)
