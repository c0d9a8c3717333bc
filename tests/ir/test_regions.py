"""The set algebra against an independent model: plain sets of points on a small universe."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flowproof.ir import ports as port_sets
from flowproof.ir.regions import EMPTY, EVERYTHING, Region, union_all

ADDRESSES = range(7)
PORTS = range(5)
Points = frozenset[tuple[str, int, int, int]]

ranges = st.tuples(st.sampled_from(PORTS), st.sampled_from(PORTS)).map(lambda r: (min(r), max(r)))
port_set = st.lists(ranges, max_size=3).map(port_sets.normal)


@st.composite
def regions(draw: st.DrawFn) -> tuple[Region, Points]:
    pieces = []
    points: set[tuple[str, int, int, int]] = set()
    for _ in range(draw(st.integers(0, 5))):
        family = draw(st.sampled_from((4, 6)))
        first, last = sorted((draw(st.sampled_from(ADDRESSES)), draw(st.sampled_from(ADDRESSES))))
        protocols = draw(st.sampled_from((("tcp",), ("udp",), ("tcp", "udp"))))
        ports = draw(port_set)
        pieces.append(Region.of(((family, first, last),), protocols, ports))
        points.update(
            (protocol, family, address, port)
            for protocol in protocols
            for address in range(first, last + 1)
            for low, high in ports
            for port in range(low, high + 1)
        )
    return union_all(pieces), frozenset(points)


def as_points(region: Region) -> Points:
    return frozenset(
        (protocol, family, address, port)
        for protocol in ("tcp", "udp")
        for family in (4, 6)
        for address in ADDRESSES
        for port in PORTS
        if region.contains(protocol, family, address, port)
    )


@given(regions(), regions())
def test_union_intersection_and_difference_are_those_of_the_points(
    left: tuple[Region, Points], right: tuple[Region, Points]
) -> None:
    assert as_points(left[0]) == left[1]
    assert as_points(left[0] | right[0]) == left[1] | right[1]
    assert as_points(left[0] & right[0]) == left[1] & right[1]
    assert as_points(left[0] - right[0]) == left[1] - right[1]
    assert left[0].covers(right[0]) is (right[1] <= left[1])
    assert left[0].touches(right[0]) is bool(left[1] & right[1])
    assert bool(left[0]) is bool(left[1])


@given(regions(), regions())
def test_equal_sets_are_equal_values(
    left: tuple[Region, Points], right: tuple[Region, Points]
) -> None:
    assert (left[0] == right[0]) is (left[1] == right[1])
    both = left[0] | right[0]
    assert both == right[0] | left[0]
    assert hash(both) == hash(right[0] | left[0])
    assert (both - right[0]) | (both & right[0]) == both


@given(regions())
def test_boxes_are_disjoint_in_order_and_joined(region: tuple[Region, Points]) -> None:
    for _, boxes in region[0].planes:
        assert boxes
        for (_, last, ports), (first, _, next_ports) in pairwise(boxes):
            assert last < first
            assert last + 1 < first or ports != next_ports


@given(port_set, port_set)
def test_port_sets_are_sets(
    left: tuple[tuple[int, int], ...], right: tuple[tuple[int, int], ...]
) -> None:
    def members(ports: tuple[tuple[int, int], ...]) -> set[int]:
        return {port for low, high in ports for port in range(low, high + 1)}

    assert members(port_sets.union(left, right)) == members(left) | members(right)
    assert members(port_sets.intersection(left, right)) == members(left) & members(right)
    assert members(port_sets.subtract(left, right)) == members(left) - members(right)
    assert all(port_sets.has(left, port) is (port in members(left)) for port in PORTS)


def test_everything_minus_everything_is_empty() -> None:
    assert EVERYTHING - EVERYTHING == EMPTY
    assert not EMPTY
    assert EVERYTHING.contains("udp", 6, (1 << 128) - 1, 65535)
