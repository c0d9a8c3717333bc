"""The Windows filter set: weights, layers, scope, adjacency, and what the validator finds."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid5

import pytest
from authored import policy

from flowproof.addresses import LAST, parse_address
from flowproof.canonical import canonical
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.lower.backend import compile_policy
from flowproof.lower.wfp.conditions import CHUNK, networks
from flowproof.lower.wfp.numbers import (
    ACTIONS,
    CONDITIONS,
    DATA_TYPES,
    LAYERS,
    MATCH_TYPES,
)
from flowproof.lower.wfp.validate import FilterSetError, problems, validate
from flowproof.values import replace
from flowproof.verify.wfp import TCP, UDP, Ambiguous, Attempt, classify

RULES = {
    "api": "allow connect tcp to 10.0.0.0/24:{80,443}, api.example.com:443",
    "no-db": "never connect to 10.0.0.9",
    "rest": "deny connect to anything else",
    "srv": "allow listen on anything:8080",
    "low": "deny listen on anything:1-1023",
}


def filter_set(rules: dict[str, str]) -> dict[str, Any]:
    filters = compile_policy(policy(rules), "windows").filters
    assert filters is not None
    loaded: dict[str, Any] = json.loads(canonical(filters))
    return loaded


def of(address: str) -> tuple[int, int]:
    parsed = parse_address(address)
    assert parsed is not None
    return parsed


def connect(address: str, port: int | None = 443, protocol: int = TCP) -> Attempt:
    family, value = of(address)
    layer = f"ALE_AUTH_CONNECT_V{family}"
    return Attempt(layer, protocol, remote=(family, value), remote_port=port)


def accept(remote: str, port: int, protocol: int = TCP) -> Attempt:
    family, value = of(remote)
    layer = f"ALE_AUTH_RECV_ACCEPT_V{family}"
    return Attempt(layer, protocol, remote=(family, value), local_port=port)


def test_denies_weigh_15_permits_8_and_blocks_0() -> None:
    weights = {(one["action"], one["weight"]) for one in filter_set(RULES)["filters"]}
    assert weights == {("block", 15), ("permit", 8), ("block", 0)}


def test_every_filter_is_scoped_to_the_identity_of_the_run() -> None:
    for one in filter_set(RULES)["filters"]:
        assert one["conditions"][0] == {
            "field": "ALE_USER_ID",
            "match": "EQUAL",
            "type": "SECURITY_DESCRIPTOR",
            "value": "@run",
        }


def test_all_six_layers_are_filtered() -> None:
    assert {one["layer"] for one in filter_set(RULES)["filters"]} == set(LAYERS)


def test_nothing_is_filtered_on_the_promiscuous_mode_or_any_flag() -> None:
    text = json.dumps(filter_set(RULES))
    assert "PROMISCUOUS" not in text
    assert "FLAGS" not in text


def test_the_sublayer_of_the_run_is_asked_first() -> None:
    assert filter_set(RULES)["sublayer"] == {"key": "@run", "weight": 0xFFFF}


def test_names_stay_symbolic_in_both_families() -> None:
    symbolic = [
        one
        for one in filter_set(RULES)["filters"]
        if any(condition["type"] == "@name" for condition in one["conditions"])
    ]
    assert sorted(one["layer"] for one in symbolic) == [
        "ALE_AUTH_CONNECT_V4",
        "ALE_AUTH_CONNECT_V6",
    ]
    filters = filter_set(RULES)
    bound = {("name", "api.example.com"): (of("192.0.2.7"),)}
    assert not classify(filters, connect("192.0.2.7")).permitted
    assert classify(filters, connect("192.0.2.7"), bound).permitted
    assert not classify(filters, connect("192.0.2.7", 80), bound).permitted


def test_icmp_falls_to_the_block_even_for_an_allowed_address() -> None:
    filters = filter_set(RULES)
    assert classify(filters, connect("10.0.0.1", 443)).permitted
    assert not classify(filters, connect("10.0.0.1", 443, protocol=1)).permitted
    assert not classify(filters, connect("10.0.0.1", 443, protocol=UDP)).permitted
    assert not classify(filters, connect("127.0.0.1", 8, protocol=1)).permitted


def test_another_identity_is_not_touched() -> None:
    assert classify(filter_set(RULES), replace(connect("192.0.2.1"), sids=("S-1-5-18",))).permitted


def test_loopback_is_told_by_address() -> None:
    filters = filter_set(RULES)
    assert classify(filters, connect("127.1.2.3", 5)).permitted
    assert classify(filters, connect("::1", 5, UDP)).permitted
    assert not classify(filters, connect("::2", 5)).permitted


def test_inbound_is_refused_but_for_what_may_be_listened_on() -> None:
    filters = filter_set(RULES)
    assert classify(filters, accept("192.0.2.1", 8080)).permitted
    assert not classify(filters, accept("192.0.2.1", 8081)).permitted
    assert not classify(filters, accept("192.0.2.1", 8080, UDP)).permitted
    assert classify(filters, accept("127.0.0.1", 8081)).permitted
    assert classify(filters, accept("::1", 5353, UDP)).permitted


def test_inbound_datagrams_are_let_be_where_no_connect_rule_denies() -> None:
    filters = filter_set({"low": "deny listen on anything:1-1023"})
    assert not classify(filters, accept("192.0.2.1", 80)).permitted
    assert classify(filters, accept("192.0.2.1", 8080)).permitted
    assert classify(filters, accept("192.0.2.1", 80, UDP)).permitted


def test_a_listen_on_every_address_is_refused_whatever_address_the_platform_gives() -> None:
    filters = filter_set({"low": "deny listen on anything:1-1023"})
    for local in (None, (4, 0)):
        attempt = Attempt("ALE_AUTH_LISTEN_V4", TCP, local=local, local_port=80)
        assert not classify(filters, attempt).permitted
    bound = Attempt("ALE_AUTH_LISTEN_V4", TCP, local=of("127.0.0.1"), local_port=80)
    assert classify(filters, bound).permitted


def test_a_control_that_refuses_nothing_has_no_filter() -> None:
    assert filter_set({"look": "observe connect to anything"})["filters"] == []
    assert filter_set({})["filters"] == []


def test_many_addresses_come_in_chunks_of_one_rule() -> None:
    members = ", ".join(f"10.0.{at}.1" for at in range(200))
    filters = filter_set({"a": f"deny connect to {members}"})["filters"]
    for family in (4, 6):  # IPv4 of dual-stack sockets is seen at the IPv6 layer
        layer = f"ALE_AUTH_CONNECT_V{family}"
        chunks = [one for one in filters if one["weight"] == 15 and one["layer"] == layer]
        counts = [
            sum(condition["field"] == "IP_REMOTE_ADDRESS" for condition in one["conditions"])
            for one in chunks
        ]
        assert counts == [CHUNK, CHUNK, CHUNK, 200 - 3 * CHUNK]
        assert all(one["rules"] == ["a"] for one in chunks)


def test_addresses_are_merged_only_where_ports_are_the_same() -> None:
    filters = filter_set({"a": "deny connect tcp to 10.0.0.1:80, 10.0.0.2:443, 10.0.0.3:80"})
    assert not classify(filters, connect("10.0.0.1", 80)).permitted
    assert classify(filters, connect("10.0.0.1", 443)).permitted
    assert classify(filters, connect("10.0.0.2", 80)).permitted
    assert not classify(filters, connect("10.0.0.2", 443)).permitted
    denies = [one["layer"] for one in filters["filters"] if one["weight"] == 15]
    assert sorted(denies) == ["ALE_AUTH_CONNECT_V4"] * 2 + ["ALE_AUTH_CONNECT_V6"] * 2


@pytest.mark.parametrize("address", ["10.0.0.9", "::ffff:10.0.0.9"])
def test_an_ipv4_address_is_denied_at_both_layers(address: str) -> None:
    filters = filter_set({"a": "deny connect to 10.0.0.9"})
    assert not classify(filters, connect(address)).permitted
    assert classify(filters, connect(address.replace("9", "8"))).permitted


def test_the_mapped_block_is_no_ipv6() -> None:
    filters = filter_set({"a": "deny connect to [::/0]"})
    assert not classify(filters, connect("2001:db8::1")).permitted
    assert not classify(filters, connect("::fffe:10.0.0.9")).permitted
    assert classify(filters, connect("::ffff:10.0.0.9")).permitted
    assert classify(filters, connect("10.0.0.9")).permitted


def test_a_name_is_bound_to_ipv4_at_the_ipv6_layer_too() -> None:
    filters = filter_set(RULES)
    bound = {("name", "api.example.com"): (of("192.0.2.7"),)}
    assert classify(filters, connect("::ffff:192.0.2.7"), bound).permitted
    assert not classify(filters, connect("::ffff:192.0.2.8"), bound).permitted


def test_keys_are_version_5_uuids_that_follow_from_the_filter() -> None:
    filters = filter_set(RULES)["filters"]
    namespace = UUID("5b1f2a8c-6d0e-5c3f-9a74-7e1d20c4b6f8")
    for one in filters:
        content = {name: held for name, held in one.items() if name != "key"}
        assert one["key"] == str(uuid5(namespace, canonical(content).decode()))
    assert len({one["key"] for one in filters}) == len(filters)
    assert filters == filter_set(RULES)["filters"]


def test_networks_of_an_interval_are_the_fewest_and_make_it_up() -> None:
    for family in (4, 6):
        off = [(first, last) for kin, first, last in OFF_LOOPBACK if kin == family]
        at = 0
        width = 32 if family == 4 else 128
        for text in networks(family, off):
            base, _, prefix = text.partition("/")
            first = of(base)[1]
            if first != at:  # only loopback is left out
                assert (at, first) in ((0x7F000000, 0x80000000), (1, 2))
            at = first + (1 << (width - int(prefix)))
        assert at == LAST[family] + 1
    assert list(networks(4, [(0, LAST[4])])) == ["0.0.0.0/0"]
    assert list(networks(4, [(1, 6)])) == [
        "0.0.0.1/32",
        "0.0.0.2/31",
        "0.0.0.4/31",
        "0.0.0.6/32",
    ]


def test_guids_are_guids_and_differ() -> None:
    guids = [*LAYERS.values(), *CONDITIONS.values()]
    assert len(set(guids)) == len(guids)
    assert all(str(UUID(guid)) == guid for guid in guids)


def test_every_symbol_of_a_set_has_its_number() -> None:
    for one in filter_set(RULES)["filters"]:
        assert one["layer"] in LAYERS
        assert one["action"] in ACTIONS
        for condition in one["conditions"]:
            assert condition["field"] in CONDITIONS
            assert condition["match"] in MATCH_TYPES
            assert condition["type"] in DATA_TYPES or condition["type"].startswith("@")


# --- the validator


def _first(filters: dict[str, Any], field: str) -> dict[str, Any]:
    return next(
        one
        for one in filters["filters"]
        if any(condition["field"] == field for condition in one["conditions"])
    )


def _interleave(filters: dict[str, Any]) -> None:
    one = _first(filters, "IP_REMOTE_PORT")
    ports = [c for c in one["conditions"] if c["field"] == "IP_REMOTE_PORT"]
    one["conditions"].remove(ports[0])
    one["conditions"].insert(1, ports[0])
    one["conditions"].append({**ports[0], "value": 8443})


def _set(field: str, **changes: object) -> Callable[[dict[str, Any]], None]:
    def change(filters: dict[str, Any]) -> None:
        one = _first(filters, field)
        next(c for c in one["conditions"] if c["field"] == field).update(changes)

    return change


Change = Callable[[dict[str, Any]], object]
BROKEN: dict[str, tuple[Change, str]] = {
    "a session that stays": (lambda f: f["session"].update(dynamic=False), "not dynamic"),
    "a key twice": (lambda f: f["filters"].append(f["filters"][0]), "taken"),
    "a key that is none": (lambda f: f["filters"][0].update(key="x"), "no version 5 UUID"),
    "no name": (lambda f: f["filters"][0].update(name=""), "no name"),
    "an unknown layer": (lambda f: f["filters"][0].update(layer="ALE_BIND"), "no layer"),
    "a permit among the blocks": (
        lambda f: f["filters"][0].update(action="permit", weight=0),
        "permits weigh 8",
    ),
    "a weight between": (lambda f: f["filters"][0].update(weight=7), "at weight 7"),
    "no identity": (lambda f: f["filters"][0]["conditions"].pop(0), "not scoped"),
    "interleaved conditions": (_interleave, "do not stand together"),
    "a permit without a protocol": (
        lambda f: [
            one["conditions"].remove(c)
            for one in f["filters"]
            if one["action"] == "permit"
            for c in list(one["conditions"])
            if c["field"] == "IP_PROTOCOL"
        ],
        "let ICMP pass",
    ),
    "a remote address at LISTEN": (
        lambda f: _first(f, "IP_LOCAL_ADDRESS")["conditions"].append(
            {
                "field": "IP_REMOTE_ADDRESS",
                "match": "EQUAL",
                "type": "V4_ADDR_MASK",
                "value": "10.0.0.0/8",
            }
        ),
        "no condition of",
    ),
    "another family's network": (
        _set("IP_REMOTE_ADDRESS", type="V6_ADDR_MASK", value="2001:db8::/32"),
        "at ALE_AUTH_CONNECT_V4",
    ),
    "host bits": (_set("IP_REMOTE_ADDRESS", value="10.0.0.1/8"), "host bits"),
    "a prefix out of range": (_set("IP_REMOTE_ADDRESS", value="10.0.0.0/33"), "no IPv4 network"),
    "a port as a byte": (_set("IP_REMOTE_PORT", type="UINT8"), "takes no UINT8"),
    "a port out of range": (_set("IP_REMOTE_PORT", value=70000), "out of range"),
    "a range the wrong way round": (
        _set("IP_REMOTE_PORT", match="RANGE", type="RANGE", value=[9, 3]),
        "range 9 to 3",
    ),
    "a match that does not fit": (_set("IP_REMOTE_PORT", match="RANGE"), "RANGE with UINT16"),
}


@pytest.mark.parametrize(("change", "says"), BROKEN.values(), ids=BROKEN)
def test_the_validator_finds(change: Change, says: str) -> None:
    filters = copy.deepcopy(filter_set(RULES))
    validate(filters)
    change(filters)
    assert any(says in problem for problem in problems(filters)), list(problems(filters))
    with pytest.raises(FilterSetError):
        validate(filters)


def test_interleaved_conditions_would_mean_something_else() -> None:
    filters = filter_set({"a": "deny connect tcp to 10.0.0.1:{80,443}"})
    assert not classify(filters, connect("10.0.0.1", 443)).permitted
    one = _first(filters, "IP_REMOTE_PORT")
    one["conditions"].insert(1, one["conditions"].pop())
    assert classify(filters, connect("10.0.0.1", 443)).permitted


def test_filters_of_one_weight_that_disagree_are_found_by_the_simulator() -> None:
    filters = filter_set({"a": "deny connect to 10.0.0.1"})
    filters["filters"].append({**filters["filters"][0], "action": "permit"})
    with pytest.raises(Ambiguous):
        classify(filters, connect("10.0.0.1"))
