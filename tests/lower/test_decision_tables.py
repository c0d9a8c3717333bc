"""The decision tables: what a cell holds, and what they cost."""

from __future__ import annotations

import time
from bisect import bisect_right

import pytest
from authored import policy

from flowproof.addresses import parse_address
from flowproof.artifact.model import Artifact, Entry
from flowproof.ir.model import Destinations, Policy, Rule, Scope
from flowproof.ir.regions import Region
from flowproof.lower.backend import compile_policy
from flowproof.lower.tables import tables


def entry(artifact: Artifact, plane: str, address: str, port: int) -> dict[str, list[str]]:
    """Return the lists of the cell that holds an address and port, rules by id."""
    parsed = parse_address(address)
    assert parsed is not None
    held = artifact.tables.planes[plane]
    table = artifact.tables.ports[held.cells[bisect_right(held.starts, parsed[1]) - 1]]
    found = artifact.tables.entries[table.entries[bisect_right(table.starts, port) - 1]]
    return named(artifact, found)


def named(artifact: Artifact, found: Entry) -> dict[str, list[str]]:
    return {
        field: [artifact.rules[at].id for at in getattr(found, field)]
        for field in Entry.__fields__
        if getattr(found, field)
    }


def test_lists_are_in_order_of_precedence() -> None:
    artifact = compile_policy(
        policy(
            {
                "a": "deny connect to 10.0.0.9",
                "b": "never connect to 10.0.0.9",
                "c": "allow connect to 10.0.0.0/24",
                "d": "allow connect to 10.0.0.0/8",
                "y": "deny connect to anything else",
                "z": "never connect to anything else",
            }
        ),
        "linux-x86_64",
    )
    assert entry(artifact, "tcp4", "10.0.0.9", 443) == {
        "refuse": ["b"],
        "allow": ["c"],
        "otherwise": ["z"],
        "watch": ["b"],
        "watch_otherwise": ["z"],
    }


def test_what_a_name_may_take_out_has_its_successors_behind_it() -> None:
    artifact = compile_policy(
        policy(
            {
                "a": "deny connect to 10.0.0.0/8 except 10.0.0.1",
                "b": "never connect to anything except api.example.com",
                "y": "deny connect to anything else",
                "z": "never connect to anything else except cdn.example.com",
            }
        ),
        "linux-x86_64",
    )
    found = entry(artifact, "tcp4", "10.0.0.9", 443)
    assert found["refuse"] == ["b", "a"]
    assert found["otherwise"] == ["z", "y"]
    assert entry(artifact, "tcp4", "10.0.0.1", 443)["refuse"] == ["b"]


def test_loopback_is_in_no_catch_all() -> None:
    artifact = compile_policy(policy({"z": "never connect to anything else"}), "linux-x86_64")
    assert entry(artifact, "tcp4", "127.0.0.1", 80) == {}
    assert entry(artifact, "udp6", "::1", 80) == {}
    assert entry(artifact, "tcp4", "128.0.0.1", 80)["otherwise"] == ["z"]


def test_exceptions_are_kept_only_where_binding_needs_them() -> None:
    without = compile_policy(
        policy({"z": "deny connect to 10.0.0.0/8 except 10.0.0.9"}), "linux-x86_64"
    )
    assert entry(without, "tcp4", "10.0.0.9", 80) == {}
    control = policy(
        {"z": "allow connect to 10.0.0.0/8, api.example.com except 10.0.0.9, metadata"}
    )
    bound = compile_policy(control, "linux-x86_64")
    assert entry(bound, "tcp4", "10.0.0.9", 80)["excepted"] == ["z"]


def test_an_excepted_unix_path_is_left_by_the_rule_that_excepts_it() -> None:
    artifact = compile_policy(
        policy(
            {
                "a": "allow connect to 10.0.0.9",
                "z": "never connect to anything else except unix:/run/x.sock",
            }
        ),
        "linux-x86_64",
    )
    (row,) = artifact.tables.unix
    assert row.path == "/run/x.sock"
    outside = artifact.tables.entries[row.outside]
    assert named(artifact, outside) == {"otherwise": ["p.default.connect"], "leave": ["z"]}
    assert not outside.decide(artifact.rules).refused


def test_listens_on_every_address_are_touched_or_covered() -> None:
    artifact = compile_policy(
        policy(
            {
                "all": "allow listen on anything:80",
                "one": "allow listen on 10.0.0.1:81",
                "not": "never listen on 127.0.0.1:80",
            }
        ),
        "linux-x86_64",
    )
    for plane in ("listen-any4", "listen-any6"):
        address = "0.0.0.0" if plane.endswith("4") else "::"
        assert entry(artifact, plane, address, 80)["refuse"] == ["not"]
        assert entry(artifact, plane, address, 80)["allow"] == ["all"]
        assert "allow" not in entry(artifact, plane, address, 81)


def test_names_stay_symbols_with_their_ports() -> None:
    artifact = compile_policy(
        policy({"a": "allow connect udp to api.example.com:{53,853}, ${DNS}"}), "linux-x86_64"
    )
    assert [(s.kind, s.value, s.protocols, s.ports) for s in artifact.symbols] == [
        ("name", "api.example.com", ("udp",), ((53, 53), (853, 853))),
        ("variable", "DNS", ("udp",), ()),
    ]


def _rule(rule_id: str, verb: str, region: Region) -> Rule:
    found = Destinations(region=region)
    return Rule(rule_id, verb, "connect", found, Destinations(), "authored", "")


def _default() -> Rule:
    found = Destinations(otherwise=(Scope(()),))
    return Rule("z.default.connect", "deny", "connect", found, Destinations(), "default", "")


def _points(count: int) -> list[tuple[int, int, int]]:
    return [(4, 0x0A000000 + 2 * at, 0x0A000000 + 2 * at) for at in range(count)]


def _many_rules(count: int) -> Policy:
    rules = [_rule(f"r{at:05}", "allow", Region.of((p,))) for at, p in enumerate(_points(count))]
    return Policy("z", None, None, (*rules, _default()))


def _many_addresses(count: int) -> Policy:
    return Policy("z", None, None, (_rule("r", "allow", Region.of(_points(count))), _default()))


def _nested(count: int) -> Policy:
    """Networks that lie in one another, 100 deep, over and over in other places."""
    rules = []
    for at in range(count):
        prefix = 28 + at % 100
        base = (0x2001 << 112 | (at // 100) << 100) >> (128 - prefix) << (128 - prefix)
        last = base | ((1 << (128 - prefix)) - 1)
        rules.append(_rule(f"r{at:05}", "deny", Region.of(((6, base, last),))))
    return Policy("z", None, None, tuple(rules))


@pytest.mark.parametrize("make", [_many_rules, _many_addresses, _nested])
def test_tables_of_ten_thousand_take_little_more_than_ten_times_a_thousand(
    make: object,
) -> None:
    assert callable(make)

    def cost(count: int) -> float:
        control = make(count)
        begun = time.process_time()
        tables(control)
        return time.process_time() - begun

    small = min(cost(1000) for _ in range(3))
    large = min(cost(10_000) for _ in range(2))
    assert large < 40 * max(small, 0.005), (small, large)
    assert large < 10


def test_ten_thousand_cells_are_told_apart() -> None:
    made = tables(_many_rules(10_000))
    assert len(made.planes["tcp4"].starts) == 20_003
    assert len(made.entries) == 10_002
    assert made.planes["tcp4"] == made.planes["udp4"]
