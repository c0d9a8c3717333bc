"""The set algebra against a second model, on addresses of full width: intervals of `portion`."""

from __future__ import annotations

import itertools

import portion  # type: ignore[import-untyped]  # it ships neither stubs nor a marker
from hypothesis import given, settings
from hypothesis import strategies as st

from flowproof.addresses import LAST
from flowproof.ir.ports import ANY_PORT, PortSet, normal
from flowproof.ir.regions import Region, union_all

PLANES = [(protocol, family) for protocol in ("tcp", "udp") for family in (4, 6)]
Model = dict[tuple[str, int, int, int], portion.Interval]
"""For each plane and each stretch of ports between two bounds that occur: the addresses."""

_EDGES = {
    4: (0, 1, 0x0A000000, 0x0AFFFFFF, 0x7F000000, 0x7FFFFFFF, LAST[4] - 1, LAST[4]),
    6: (0, 1, 2, 0xFFFF << 32, 0xFC << 120, LAST[6] - 1, LAST[6]),
}
_PORT_EDGES = (0, 1, 79, 80, 81, 443, 65534, 65535)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[int, int, int, tuple[str, ...], PortSet]:
    family = draw(st.sampled_from((4, 6)))
    ends = st.sampled_from(_EDGES[family]) | st.integers(0, LAST[family])
    first, last = sorted((draw(ends), draw(ends)))
    protocols = draw(st.sampled_from((("tcp",), ("udp",), ("tcp", "udp"))))
    ports = st.sampled_from(_PORT_EDGES) | st.integers(0, 65535)
    ranges = [tuple(sorted((draw(ports), draw(ports)))) for _ in range(draw(st.integers(1, 3)))]
    chosen = ANY_PORT if draw(st.booleans()) else normal((low, high) for low, high in ranges)
    return family, first, last, protocols, chosen


Piece = tuple[int, int, int, tuple[str, ...], PortSet]


def cuts(*held: list[Piece]) -> list[int]:
    bounds = {0, 65536}
    for each in held:
        for *_, ports in each:
            bounds |= {bound for low, high in ports for bound in (low, high + 1)}
    return sorted(bounds)


def model(held: list[Piece], bounds: list[int]) -> Model:
    found: Model = {}
    for protocol, plane in PLANES:
        for low, end in itertools.pairwise(bounds):
            addresses = portion.empty()
            for family, first, last, protocols, ports in held:
                if (
                    family == plane
                    and protocol in protocols
                    and any(a <= low <= b for a, b in ports)
                ):
                    addresses |= portion.closedopen(first, last + 1)
            found[protocol, plane, low, end] = addresses
    return found


def as_model(region: Region, bounds: list[int]) -> Model:
    flat: list[Piece] = [(f, first, last, (p,), ports) for p, f, first, last, ports in region]
    return model(flat, bounds)


def region_of(held: list[Piece]) -> Region:
    return union_all(
        Region.of(((family, first, last),), protocols, ports)
        for family, first, last, protocols, ports in held
    )


some = st.lists(pieces(), max_size=5)


@settings(deadline=None, max_examples=80)
@given(some, some)
def test_regions_are_the_intervals_of_portion(
    left: list[Piece],
    right: list[Piece],
) -> None:
    bounds = cuts(left, right)
    a, b = region_of(left), region_of(right)
    first, second = model(left, bounds), model(right, bounds)
    assert as_model(a, bounds) == first
    assert as_model(a | b, bounds) == {key: first[key] | second[key] for key in first}
    assert as_model(a & b, bounds) == {key: first[key] & second[key] for key in first}
    assert as_model(a - b, bounds) == {key: first[key] - second[key] for key in first}
    assert a.covers(b) is all(second[key] in first[key] for key in first)
    assert a.touches(b) is any(not (first[key] & second[key]).empty for key in first)
    assert (a == b) is (first == second)
