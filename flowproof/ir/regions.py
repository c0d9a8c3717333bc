"""Regions: sets of (protocol, address, port), closed under union, intersection and difference.

A region is kept per plane (a protocol and an address family) as boxes: disjoint address intervals in
order, each with its port set; neighbours with equal ports are joined. So equal sets are equal values.
"""

from __future__ import annotations

from bisect import bisect_left

from flowproof.addresses import LAST
from flowproof.ir import ports as port_sets
from flowproof.ir.ports import ANY_PORT
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flowproof.addresses import Interval
    from flowproof.ir.ports import PortSet

    Box = tuple[int, int, PortSet]
    Boxes = tuple[Box, ...]

__all__ = ["EMPTY", "EVERYTHING", "Region", "RegionTooLargeError", "union_all"]

LIMIT = 1_000_000
"""How many ranges of ports a region may be made of where networks and port lists overlap."""


class RegionTooLargeError(Exception):
    """Overlapping networks whose port lists differ: what they come to multiplies, and this is too much."""


_PLANES = (("tcp", 4), ("tcp", 6), ("udp", 4), ("udp", 6))


class Region(Value):
    """A set of (protocol, family, address, port). *planes* holds non-empty planes in order."""

    planes: tuple[tuple[tuple[str, int], Boxes], ...] = ()

    @staticmethod
    def of(
        intervals: Iterable[Interval],
        protocols: Iterable[str] = ("tcp", "udp"),
        ports: PortSet = ANY_PORT,
    ) -> Region:
        """Return the region of all *intervals* (family, first, last) with *protocols* and *ports*."""
        if not ports:
            return EMPTY
        by_family: dict[int, list[Box]] = {}
        for family, first, last in intervals:
            by_family.setdefault(family, []).append((first, last, ports))
        joined = {family: _sweep(boxes) for family, boxes in by_family.items()}
        wanted = tuple(protocols)
        return Region(
            tuple(
                [
                    (plane, joined[plane[1]])
                    for plane in _PLANES
                    if plane[1] in joined and plane[0] in wanted
                ]
            )
        )

    def boxes(self, protocol: str, family: int) -> Boxes:
        """Return the boxes of one plane: (first, last, ports), disjoint and in order."""
        for plane, boxes in self.planes:
            if plane == (protocol, family):
                return boxes
        return ()

    def __bool__(self) -> bool:
        return bool(self.planes)

    def __or__(self, other: Region) -> Region:
        return union_all((self, other))

    def __and__(self, other: Region) -> Region:
        return _combined(self, other, _intersected)

    def __sub__(self, other: Region) -> Region:
        return _combined(self, other, _subtracted) if other else self

    def contains(self, protocol: str, family: int, address: int, port: int) -> bool:
        """Tell whether the point is in the region."""
        boxes = self.boxes(protocol, family)
        at = bisect_left(boxes, (address + 1,)) - 1
        return at >= 0 and boxes[at][1] >= address and port_sets.has(boxes[at][2], port)

    def covers(self, other: Region) -> bool:
        """Tell whether every point of *other* is in the region."""
        return not other - self

    def touches(self, other: Region) -> bool:
        """Tell whether the two have a point in common."""
        return bool(other & self)

    def __iter__(self) -> Iterator[tuple[str, int, int, int, PortSet]]:
        for (protocol, family), boxes in self.planes:
            for first, last, ports in boxes:
                yield protocol, family, first, last, ports


def union_all(regions: Iterable[Region]) -> Region:
    """Return the union of any number of regions, in one sweep."""
    some = [region for region in regions if region.planes]
    if len(some) == 1:
        return some[0]
    collected: dict[tuple[str, int], list[Box]] = {}
    for region in some:
        for plane, boxes in region.planes:
            collected.setdefault(plane, []).extend(boxes)
    return Region(
        tuple((plane, _sweep(collected[plane])) for plane in _PLANES if plane in collected)
    )


def _sweep(boxes: list[Box]) -> Boxes:
    """Return overlapping *boxes* as disjoint ones in order: a sweep over their ends."""
    if len(boxes) == 1:
        return (boxes[0],)
    events: list[tuple[int, bool, PortSet]] = []
    for first, last, ports in _by_interval(boxes):
        events.extend(((first, True, ports), (last + 1, False, ports)))
    events.sort(key=lambda event: event[0])
    active: dict[PortSet, int] = {}
    unions: dict[frozenset[PortSet], PortSet] = {}
    found: list[Box] = []
    since = 0
    at = 0
    ranges = spent = 0  # of the port sets that are active, and of those that were joined
    while at < len(events):
        place = events[at][0]
        if active and place > since:
            if len(active) == 1:
                ports = next(iter(active))
            else:
                spent += ranges
                if spent > LIMIT:
                    raise RegionTooLargeError
                key = frozenset(active)
                ports = unions.get(key) or unions.setdefault(key, port_sets.union(*active))
            _append(found, since, place - 1, ports)
        while at < len(events) and events[at][0] == place:
            _, opens, changed = events[at]
            count = active.get(changed, 0) + (1 if opens else -1)
            if count == opens:  # the first of its kind begins, or the last one ends
                ranges += len(changed) if opens else -len(changed)
            if count:
                active[changed] = count
            else:
                del active[changed]
            at += 1
        since = place
    return tuple(found)


def _by_interval(boxes: list[Box]) -> Iterator[Box]:
    """Yield one box for each interval, with all of its ports."""
    held: dict[tuple[int, int], list[PortSet]] = {}
    for first, last, ports in boxes:
        held.setdefault((first, last), []).append(ports)
    for (first, last), sets in held.items():
        yield first, last, sets[0] if len(sets) == 1 else port_sets.union(*sets)


def _append(found: list[Box], first: int, last: int, ports: PortSet) -> None:
    if found and found[-1][1] + 1 == first and found[-1][2] == ports:
        found[-1] = (found[-1][0], last, ports)
    else:
        found.append((first, last, ports))


def _combined(left: Region, right: Region, combine: Callable[[Boxes, Boxes], Boxes]) -> Region:
    planes = []
    for plane, boxes in left.planes:
        result = combine(boxes, right.boxes(*plane))
        if result:
            planes.append((plane, result))
    return Region(tuple(planes))


def _overlapping(boxes: Boxes, first: int, last: int) -> Iterator[Box]:
    at = max(bisect_left(boxes, (first + 1,)) - 1, 0)
    while at < len(boxes) and boxes[at][0] <= last:
        if boxes[at][1] >= first:
            yield boxes[at]
        at += 1


def _bounded(spent: int, ports: PortSet, whole: PortSet) -> int:
    """Return *spent* and what *ports* cost: nothing where they are few, or all of a *whole* set."""
    if len(ports) > 1 and ports is not whole:
        spent += len(ports)
        if spent > LIMIT:
            raise RegionTooLargeError
    return spent


def _intersected(left: Boxes, right: Boxes) -> Boxes:
    found: list[Box] = []
    spent = 0
    for first, last, ports in left:
        for other_first, other_last, other_ports in _overlapping(right, first, last):
            both = port_sets.intersection(ports, other_ports)
            spent = _bounded(spent, both, ports)
            if both:
                _append(found, max(first, other_first), min(last, other_last), both)
    return tuple(found)


def _subtracted(left: Boxes, right: Boxes) -> Boxes:
    found: list[Box] = []
    spent = 0
    for first, last, ports in left:
        at = first
        for other_first, other_last, other_ports in _overlapping(right, first, last):
            if other_first > at:
                _append(found, at, other_first - 1, ports)
                at = other_first
            rest = port_sets.subtract(ports, other_ports)
            spent = _bounded(spent, rest, ports)
            upto = min(last, other_last)
            if rest:
                _append(found, at, upto, rest)
            at = upto + 1
        if at <= last:
            _append(found, at, last, ports)
    return tuple(found)


EMPTY = Region()
EVERYTHING = Region.of(((4, 0, LAST[4]), (6, 0, LAST[6])))
