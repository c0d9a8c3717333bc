"""Decisions by bisection, against a search through every interval."""

from __future__ import annotations

import random

import pytest
from supervision import ALLOW, DENY, NEVER, OBSERVE, RULES, value
from supervision import tables as hand_made

from flowproof.artifact.model import (
    PLANES,
    Decision,
    Entry,
    Plane,
    PortTable,
    Rule,
    Tables,
    UnixRow,
)
from flowproof.run.decide import Decisions


def test_each_end_of_an_interval_belongs_to_it() -> None:
    found = Decisions(hand_made(), RULES)
    for address, refused in (
        ("126.255.255.255", True),
        ("127.0.0.0", False),
        ("127.0.0.1", False),
        ("127.0.0.2", True),
        ("127.0.0.3", False),
        ("127.255.255.255", False),
        ("128.0.0.0", True),
        ("255.255.255.255", True),
    ):
        assert found.address("tcp4", value(address), 443).refused is refused, address


def test_ports_are_cut_at_both_ends() -> None:
    entries = (Entry(), Entry(refuse=(DENY,)))
    ports = (PortTable((0, 80, 82), (0, 1, 0)),)
    planes = dict.fromkeys(PLANES, Plane((0,), (0,)))
    found = Decisions(Tables(entries, ports, planes, {}, ()), RULES)
    refused = [
        port for port in (0, 79, 80, 81, 82, 65535) if found.address("udp6", 5, port).refused
    ]
    assert refused == [80, 81]


ORDER: list[tuple[str, Entry, Decision]] = [
    ("nothing", Entry(), Decision(False, None, (), ())),
    ("a refusal before an allow", Entry(refuse=(DENY,), allow=(ALLOW,)),
     Decision(True, DENY, (), ())),
    ("an allow before a catch-all", Entry(allow=(ALLOW,), otherwise=(NEVER,)),
     Decision(False, ALLOW, (), ())),
    ("else watches only what no allow covers", Entry(allow=(ALLOW,), watch_otherwise=(NEVER,)),
     Decision(False, ALLOW, (), ())),
    ("else watches the rest", Entry(otherwise=(NEVER,), watch_otherwise=(NEVER,)),
     Decision(True, NEVER, (NEVER,), ())),
    ("an authored catch-all before the leave of an exception",
     Entry(otherwise=(NEVER,), leave=(DENY,)), Decision(True, NEVER, (), ())),
    ("observing is no asserting", Entry(watch=(NEVER, OBSERVE)),
     Decision(False, None, (NEVER,), (OBSERVE,))),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "expected"), [o[1:] for o in ORDER], ids=[o[0] for o in ORDER])
def test_lists_are_taken_in_order(entry: Entry, expected: Decision) -> None:
    tables = Tables(
        (entry,),
        (PortTable((0,), (0,)),),
        dict.fromkeys(PLANES, Plane((0,), (0,))),
        {"unix": 0},
        (UnixRow("/run/x", 0, 0),),
    )
    found = Decisions(tables, RULES)
    assert found.address("listen-any6", 0, 80) == expected
    assert found.special("unix") == expected
    assert found.unix == (("/run/x", expected, expected),)


def test_random_planes_agree_with_a_linear_search() -> None:
    chance = random.Random(7)
    entries = tuple(Entry(refuse=(DENY,)) if bit else Entry() for bit in (0, 1))
    for _ in range(50):
        starts = sorted({0, *(chance.randrange(1, 1 << 32) for _ in range(20))})
        cells = [chance.randrange(2) for _ in starts]
        plane = Plane(tuple(starts), tuple(cells))
        ports = tuple(PortTable((0,), (entry,)) for entry in (0, 1))
        found = Decisions(Tables(entries, ports, dict.fromkeys(PLANES, plane), {}, ()), RULES)
        for start in starts:
            for address in {max(start - 1, 0), start, start + 1}:
                cell = max(at for at, first in enumerate(starts) if first <= address)
                assert found.address("tcp4", address, 1).refused is bool(cells[cell])


def test_a_missing_plane_is_no_artifact() -> None:
    with pytest.raises(KeyError):
        Decisions(Tables((), (), {}, {}, ()), ())


def test_a_rule_of_the_artifact_is_needed_to_decide() -> None:
    rule = Rule("x", "deny", "containment", "connect", "authored", "deny …", None, None)
    assert Entry(refuse=(0,)).decide((rule,)).by == 0
