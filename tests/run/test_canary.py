"""Which known call is tried first: one that the policy refuses and that can send nothing."""

from __future__ import annotations

import pytest
from runnable import CALLS, artifact, deny, expect_no, rule

from flowproof.addresses import parse_address
from flowproof.artifact.model import Artifact, Entry, Plane
from flowproof.run.canary import Canary, canaries
from flowproof.run.decide import Decisions
from flowproof.values import replace


def planned(found: Artifact, calls: tuple[str, ...] = CALLS) -> tuple[Canary, ...]:
    return canaries(found.tables, Decisions(found.tables, found.rules), frozenset(calls))


def with_planes(found: Artifact, **planes: Plane) -> Artifact:
    merged = {
        **found.tables.planes,
        **{name.replace("_", "-"): plane for name, plane in planes.items()},
    }
    return replace(found, tables=replace(found.tables, planes=merged))


def nothing_but(**planes: Plane) -> Artifact:
    """The artifact of `deny`, whose planes let everything through but for *planes*."""
    base = deny()
    free = Plane((0,), (1,))
    return with_planes(with_planes(base, **dict.fromkeys(base.tables.planes, free)), **planes)


def test_a_refused_udp_connect_to_a_documentation_address_comes_first() -> None:
    assert planned(deny())[0] == Canary("connect", "udp", 4, "192.0.2.1", 9, True)


def test_each_other_protocol_and_family_stands_by() -> None:
    kinds = [(one.call, one.protocol, one.family) for one in planned(deny())]
    assert kinds[:4] == [
        ("connect", "udp", 4),
        ("connect", "udp", 6),
        ("connect", "tcp", 4),
        ("connect", "tcp", 6),
    ]


@pytest.mark.parametrize("plane", ["udp4", "udp6", "tcp4", "tcp6"])
def test_a_single_refused_address_is_found(plane: str) -> None:
    family = int(plane[-1])
    text = "198.51.100.7" if family == 4 else "2001:db8::7"
    parsed = parse_address(text)
    assert parsed is not None
    found = nothing_but(**{plane: Plane((0, parsed[1], parsed[1] + 1), (1, 0, 1))})
    assert planned(found) == (Canary("connect", plane[:3], family, text, 9, True),)


def test_only_a_refused_port_is_tried() -> None:
    base = nothing_but(udp4=Plane((0,), (3,)))
    ports = (*base.tables.ports, type(base.tables.ports[0])((0, 53, 54), (1, 0, 1)))
    found = replace(base, tables=replace(base.tables, ports=ports))
    assert planned(found) == (Canary("connect", "udp", 4, "0.0.0.1", 53, True),)


def test_a_v4_mapped_interval_is_no_v6_address_to_try() -> None:
    mapped = 0xFFFF << 32
    found = nothing_but(udp6=Plane((0, mapped, mapped + (1 << 32)), (1, 0, 1)))
    assert not planned(found)[0].refused


def test_a_policy_that_refuses_nothing_is_seen_through_a_loopback_connect() -> None:
    assert planned(expect_no()) == (Canary("connect", "udp", 4, "127.0.0.1", 9, False),)


def test_a_policy_that_traps_only_listen_is_tried_by_a_listen() -> None:
    one = rule("c.listen", "deny", "deny listen on anything", action="listen")
    found = artifact(one, denied=Entry(refuse=(0,)), rest=Entry(refuse=(0,)))
    first = planned(found, ("listen",))[0]
    assert first == Canary("listen", "tcp", 4, "0.0.0.0", 0, True)
    with first.open() as probe:
        assert probe.getsockname() == ("0.0.0.0", 0)


def test_a_single_refused_listening_address_need_not_be_this_hosts() -> None:
    found = nothing_but(listen4=Plane((0, 0xC6336407, 0xC6336408), (1, 0, 1)))
    first = planned(found, ("listen",))[0]
    assert first == Canary("listen", "tcp", 4, "198.51.100.7", 49152, True)
    with first.open() as probe:
        assert probe.getsockname() == ("198.51.100.7", 49152)


def test_a_policy_that_traps_nothing_has_no_known_call() -> None:
    assert planned(deny(), ()) == ()


def test_a_tcp_canary_is_tied_to_the_loopback_device() -> None:
    canary = Canary("connect", "tcp", 4, "192.0.2.1", 9, True)
    with canary.open() as probe:
        assert probe.getsockname()[0] == "127.0.0.1"
        assert canary.attempt(probe) != 0  # without a filter there is no way either
