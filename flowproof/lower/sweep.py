"""One sweep per line of addresses or ports: which members hold where, equal neighbours joined."""

from __future__ import annotations

from flowproof.artifact.model import Plane, PortTable
from flowproof.ir.ports import ANY_PORT, LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flowproof.ir.ports import PortSet
    from flowproof.lower.entries import Member

    Box = tuple[int, int, PortSet, Member]  # first and last address, ports, who

__all__ = ["Sweeper"]


class Sweeper:
    """Cuts lines into cells. Entries and port tables are numbered as they are first met and kept once.

    *entry* turns the members of a cell, in order, into the number of its entry.
    """

    def __init__(self, entry: Callable[[tuple[Member, ...]], int]) -> None:
        self._entry = entry
        self._entries: dict[tuple[Member, ...], int] = {}
        self._tables: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self._planes: dict[tuple[tuple[Box, ...], int], Plane] = {}

    @property
    def tables(self) -> tuple[PortTable, ...]:
        """The port tables made so far, by number."""
        return tuple(PortTable(starts, entries) for starts, entries in self._tables)

    def plane(self, boxes: Iterable[Box], last: int) -> Plane:
        """Return the line of addresses 0 to *last* cut at the ends of *boxes*.

        Boxes of one member do not overlap, and where they touch their ports differ (as in a region).
        Takes n log n for n boxes, and for each cell the number of members that it has.
        """
        boxes = tuple(boxes)
        if (boxes, last) in self._planes:  # tcp and udp are mostly alike
            return self._planes[boxes, last]
        names: dict[tuple[Member, PortSet], int] = {}
        changes: dict[int, list[int]] = {0: []}
        for first, upto, ports, member in boxes:
            name = names.setdefault((member, ports), len(names))
            changes.setdefault(first, []).append(name)
            if upto < last:
                changes.setdefault(upto + 1, []).append(name)
        parts = tuple(names)
        active: set[int] = set()
        known: dict[frozenset[int], int] = {}
        starts: list[int] = []
        cells: list[int] = []
        for place in sorted(changes):
            active.symmetric_difference_update(changes[place])
            key = frozenset(active)
            table = known.get(key)
            if table is None:
                table = known[key] = self.table([parts[name] for name in active])
            if not cells or cells[-1] != table:
                starts.append(place)
                cells.append(table)
        plane = self._planes[boxes, last] = Plane(tuple(starts), tuple(cells))
        return plane

    def table(self, members: Iterable[tuple[Member, PortSet]]) -> int:
        """Return the number of the port table of members with the ports that each of them has."""
        active: set[Member] = set()
        changes: dict[int, list[Member]] = {0: []}
        for member, ports in members:
            if ports == ANY_PORT:
                active.add(member)
                continue
            for low, high in ports:
                changes.setdefault(low, []).append(member)
                if high < LAST_PORT:
                    changes.setdefault(high + 1, []).append(member)
        known = self._entries
        starts: list[int] = []
        entries: list[int] = []
        for place in sorted(changes):
            changed = changes[place]
            if changed:
                active.symmetric_difference_update(changed)
            held = tuple(sorted(active))
            entry = known.get(held)
            if entry is None:
                entry = known[held] = self._entry(held)
            if not entries or entries[-1] != entry:
                starts.append(place)
                entries.append(entry)
        return self._tables.setdefault((tuple(starts), tuple(entries)), len(self._tables))
