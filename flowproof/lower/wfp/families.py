"""What a family's layer sees: IPv4 of a dual-stack socket is seen at the IPv6 layer, as mapped addresses.

*Application Layer Enforcement (ALE)*: a socket of both families may be classified at the IPv6 layers alone,
and filters there have to name IPv4 addresses in their mapped form (RFC 4291). So what is about an IPv4
address is asked for twice, and the mapped block of the IPv6 line is IPv4's.
"""

from __future__ import annotations

from flowproof.addresses import LAST, LOOPBACK
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.addresses import Interval
    from flowproof.ir.ports import PortSet
    from flowproof.ir.regions import Region

    Box = tuple[int, int, PortSet]

__all__ = ["FAMILIES", "MAPPED", "SEEN_LOOPBACK", "SEEN_OFF_LOOPBACK", "seen"]

FAMILIES = (4, 6)
MAPPED = (0xFFFF << 32, (0xFFFF << 32) + LAST[4])
"""::ffff:0:0/96, where the IPv6 line holds IPv4."""


def seen(region: Region, protocol: str, family: int) -> tuple[Box, ...]:
    """Return the boxes (first, last, ports) of *region* that the layer of *family* sees, in order."""
    own = region.boxes(protocol, family)
    return own if family == 4 else _with_mapped(region.boxes(protocol, 4), own)


def _with_mapped(four: Iterable[Box], six: Iterable[Box]) -> tuple[Box, ...]:
    low, high = MAPPED
    boxes = [(first + low, last + low, ports) for first, last, ports in four]
    for first, last, ports in six:
        if first < low:
            boxes.append((first, min(last, low - 1), ports))
        if last > high:
            boxes.append((max(first, high + 1), last, ports))
    joined: list[Box] = []
    for first, last, ports in sorted(boxes):
        if joined and joined[-1][1] + 1 == first and joined[-1][2] == ports:
            joined[-1] = (joined[-1][0], last, ports)
        else:
            joined.append((first, last, ports))
    return tuple(joined)


def _everywhere(intervals: Iterable[Interval]) -> dict[int, list[tuple[int, int]]]:
    listed = list(intervals)
    held = {
        family: [(first, last, ANY_PORT) for kin, first, last in listed if kin == family]
        for family in FAMILIES
    }
    six = _with_mapped(held[4], held[6])
    return {
        family: [(first, last) for first, last, _ in boxes]
        for family, boxes in ((4, held[4]), (6, six))
    }


SEEN_OFF_LOOPBACK = _everywhere(OFF_LOOPBACK)
"""Family → the intervals of its layer that are not loopback."""

SEEN_LOOPBACK = _everywhere(LOOPBACK)
"""Family → the intervals of its layer that are."""
