"""Port sets: sorted, disjoint, non-adjacent inclusive ranges within 0 to 65535."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ANY_PORT", "LAST_PORT", "PortSet", "has", "intersection", "normal", "subtract", "union"]

PortSet = tuple[tuple[int, int], ...]
LAST_PORT = 65535
ANY_PORT: PortSet = ((0, LAST_PORT),)
"""Every port, 0 included: a rule writes 1 to 65535, an event may carry 0."""


def normal(ranges: Iterable[tuple[int, int]]) -> PortSet:
    """Return *ranges* sorted, with what overlaps or touches joined."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def union(*sets: PortSet) -> PortSet:
    """Return the ports of any of *sets*."""
    return normal(part for ports in sets for part in ports)


def intersection(left: PortSet, right: PortSet) -> PortSet:
    """Return the ports that both hold."""
    if left == ANY_PORT:
        return right
    if right == ANY_PORT:
        return left
    found = []
    at = other = 0
    while at < len(left) and other < len(right):
        low, high = max(left[at][0], right[other][0]), min(left[at][1], right[other][1])
        if low <= high:
            found.append((low, high))
        if left[at][1] < right[other][1]:
            at += 1
        else:
            other += 1
    return tuple(found)


def subtract(left: PortSet, right: PortSet) -> PortSet:
    """Return the ports of *left* that *right* does not hold."""
    if right == ANY_PORT:
        return ()
    found = []
    begin = 0
    for first, last in left:
        low, high = first, last
        while begin < len(right) and right[begin][1] < first:
            begin += 1
        for at in range(begin, len(right)):
            cut_low, cut_high = right[at]
            if cut_low > high:
                break
            if cut_low > low:
                found.append((low, cut_low - 1))
            low = cut_high + 1
        if low <= high:
            found.append((low, high))
    return tuple(found)


def has(ports: PortSet, port: int) -> bool:
    """Tell whether *port* is one of *ports*."""
    return any(low <= port <= high for low, high in ports)
