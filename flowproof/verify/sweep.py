"""Lines cut where anything changes, each cell once for each combination that it is made of."""

from __future__ import annotations

from flowproof.ir.ports import ANY_PORT, LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flowproof.ir.ports import PortSet
    from flowproof.verify.reading import Line

    Member = tuple[int, str]
    Box = tuple[int, int, PortSet, Member]  # first and last address, ports, who
    Held = tuple[Member, PortSet]

__all__ = ["address_cells", "port_cells"]


def address_cells(
    boxes: Iterable[Box], line: Line, last: int, *, every: bool = False
) -> Iterator[tuple[int, int, int, tuple[Held, ...]]]:
    """Yield (first, last, value of *line*, who holds with which ports) for every cell of a line of
    addresses 0 to *last* that has a combination of value and holders that no cell before it had, or *every*
    cell.
    """
    numbers: dict[Held, int] = {}
    changes: dict[int, list[int]] = {start: [] for start in line.starts}
    for first, upto, ports, member in boxes:
        number = numbers.setdefault((member, ports), len(numbers))
        changes.setdefault(first, []).append(number)
        if upto < last:
            changes.setdefault(upto + 1, []).append(number)
    held = tuple(numbers)
    starts, values = line.starts, line.values
    active: set[int] = set()
    seen: set[tuple[int, frozenset[int]]] = set()
    at = -1
    places = sorted(changes)
    for index, place in enumerate(places):
        active.symmetric_difference_update(changes[place])
        if at + 1 < len(starts) and starts[at + 1] == place:
            at += 1
        key = (values[at], frozenset(active))
        if every or key not in seen:
            seen.add(key)
            upto = places[index + 1] - 1 if index + 1 < len(places) else last
            yield place, upto, values[at], tuple(held[number] for number in active)


def port_cells(
    holders: Iterable[Held], line: Line
) -> Iterator[tuple[int, int, tuple[Member, ...]]]:
    """Yield (first port, value of *line*, members in order) for every cell of the ports 0 to 65535."""
    starts, values = line.starts, line.values
    active: set[Member] = set()
    changes: dict[int, list[Member]] = {start: [] for start in starts}
    for member, ports in holders:
        if ports == ANY_PORT:
            active.add(member)
            continue
        for low, high in ports:
            changes.setdefault(low, []).append(member)
            if high < LAST_PORT:
                changes.setdefault(high + 1, []).append(member)
    at, last = -1, len(starts) - 1
    for place in sorted(changes):
        changed = changes[place]
        if changed:
            active.symmetric_difference_update(changed)
        if at < last and starts[at + 1] == place:
            at += 1
        yield place, values[at], tuple(sorted(active))
