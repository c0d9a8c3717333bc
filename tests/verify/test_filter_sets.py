"""A proof of a filter set refuses what would let through more, and what it could not try."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from authored import policy

from flowproof.artifact import codec
from flowproof.lower.backend import compile_policy
from flowproof.verify.filters import compare_filters
from flowproof.verify.found import Counterexample
from flowproof.verify.prove import tables_of
from flowproof.verify.wfp import Attempt, Sublayer, arbitrate

JSON = dict[str, Any]
Change = Callable[[JSON], object]

POLICY = policy(
    {
        "api": "allow connect tcp to 10.0.0.0/24:443, [2001:db8::/32]:443, api.example.com:443",
        "no-db": "never connect to 10.0.0.9",
        "rest": "deny connect to anything else",
        "low": "deny listen on anything:1-1023",
        "srv": "allow listen on anything:8080",
    }
)
NARROW = policy({"no-db": "deny connect to 10.0.0.9"})


def _compared(changed: Change, meant: Any = POLICY) -> Counterexample | None:  # noqa: ANN401  a policy
    artifact = copy.deepcopy(codec.to_json(compile_policy(meant, "windows")))
    tables = tables_of(meant, artifact)
    assert not isinstance(tables, Counterexample)
    assert compare_filters(meant, artifact, tables[0]).difference is None
    changed(artifact)
    return compare_filters(meant, artifact, tables[0]).difference


def _condition(field: str, match: str, kind: str, value: object) -> JSON:
    return {"field": field, "match": match, "type": kind, "value": value}


USER = _condition("ALE_USER_ID", "EQUAL", "SECURITY_DESCRIPTOR", "@run")


def _adding(layer: str, *conditions: JSON, action: str = "permit", user: bool = True) -> Change:
    one = {
        "key": "00000000-0000-5000-8000-000000000000",
        "name": "added",
        "rules": [],
        "layer": layer,
        "action": action,
        "weight": 15,
        "conditions": [*([USER] if user else []), *conditions],
    }
    return lambda artifact: artifact["filters"]["filters"].append(one)


CONNECT, LISTEN, ACCEPT = "ALE_AUTH_CONNECT_V4", "ALE_AUTH_LISTEN_V4", "ALE_AUTH_RECV_ACCEPT_V4"
ADDED = {
    "everything": _adding(CONNECT),
    "everything, for everybody": _adding(CONNECT, user=False),
    "whoever connects from an address": _adding(
        CONNECT, _condition("IP_LOCAL_ADDRESS", "EQUAL", "V4_ADDR_MASK", "0.0.0.0/1")
    ),
    "whoever connects from a port": _adding(
        CONNECT, _condition("IP_LOCAL_PORT", "RANGE", "RANGE", [1, 65535])
    ),
    "what has the loopback flag, as the machine's own addresses do": _adding(
        CONNECT, _condition("FLAGS", "FLAGS_ANY_SET", "UINT32", 1)
    ),
    "what has no flag": _adding(CONNECT, _condition("FLAGS", "FLAGS_NONE_SET", "UINT32", 1)),
    "one protocol of 256": _adding(CONNECT, _condition("IP_PROTOCOL", "EQUAL", "UINT8", 50)),
    "all protocols but one": _adding(CONNECT, _condition("IP_PROTOCOL", "NOT_EQUAL", "UINT8", 6)),
    "an ICMP code, by a port": _adding(CONNECT, _condition("IP_REMOTE_PORT", "EQUAL", "UINT16", 3)),
    "ports above one": _adding(CONNECT, _condition("IP_REMOTE_PORT", "GREATER", "UINT16", 1)),
    "an address without a mask": _adding(
        CONNECT, _condition("IP_REMOTE_ADDRESS", "EQUAL", "UINT32", "192.0.2.1")
    ),
    "a network with bits behind its mask": _adding(
        CONNECT, _condition("IP_REMOTE_ADDRESS", "EQUAL", "V4_ADDR_MASK", "192.0.2.1/24")
    ),
    "a name of nobody's": _adding(
        CONNECT, _condition("IP_REMOTE_ADDRESS", "EQUAL", "@name", "evil.example")
    ),
    "an address that the layer does not know": _adding(
        CONNECT, _condition("IP_REMOTE_ADDRESS", "EQUAL", "EMPTY", None)
    ),
    "IPv4 of a dual-stack socket": _adding(
        "ALE_AUTH_CONNECT_V6",
        _condition("IP_REMOTE_ADDRESS", "EQUAL", "V6_ADDR_MASK", "::ffff:192.0.2.0/120"),
    ),
    "a listen at a port of one address": _adding(
        LISTEN, _condition("IP_LOCAL_ADDRESS", "EQUAL", "V4_ADDR_MASK", "10.0.0.9/32")
    ),
    "a listen without an address": _adding(
        LISTEN, _condition("IP_LOCAL_ADDRESS", "EQUAL", "EMPTY", None)
    ),
    **{
        f"a listen at {network}": _adding(
            f"ALE_AUTH_LISTEN_V{kind[1]}", _condition("IP_LOCAL_ADDRESS", "EQUAL", kind, network)
        )
        for kind, network in (("V4_ADDR_MASK", "0.0.0.0/32"), ("V6_ADDR_MASK", "::/128"))
    },
    "a listen by the flag of a bind": _adding(
        LISTEN, _condition("FLAGS", "FLAGS_ANY_SET", "UINT32", 8)
    ),
    "an accept from a port": _adding(
        ACCEPT, _condition("IP_REMOTE_PORT", "RANGE", "RANGE", [1, 65535])
    ),
    "an accept at an address": _adding(
        ACCEPT, _condition("IP_LOCAL_ADDRESS", "EQUAL", "V4_ADDR_MASK", "0.0.0.0/0")
    ),
    "datagrams of strangers": _adding(ACCEPT, _condition("IP_PROTOCOL", "EQUAL", "UINT8", 17)),
    "a listen on every IPv4 address, mapped": _adding(
        "ALE_AUTH_LISTEN_V6",
        _condition("IP_LOCAL_ADDRESS", "EQUAL", "V6_ADDR_MASK", "::ffff:0:0/128"),
    ),
    **{
        f"protocol {protocol} at {layer}_V{family}": _adding(
            f"ALE_AUTH_{layer}_V{family}", _condition("IP_PROTOCOL", "EQUAL", "UINT8", protocol)
        )
        for layer in ("CONNECT", "RECV_ACCEPT")
        for family in (4, 6)
        for protocol in (1, 6, 17, 58)
    },
    **{f"every listen, IPv{family}": _adding(f"ALE_AUTH_LISTEN_V{family}") for family in (4, 6)},
    "a bind": _adding("ALE_RESOURCE_ASSIGNMENT_V4"),
    "a layer below": _adding("OUTBOUND_TRANSPORT_V4"),
}


@pytest.mark.parametrize("what", ADDED)
def test_a_filter_that_permits_more_is_found(what: str) -> None:
    assert _compared(ADDED[what]) is not None


def test_a_filter_for_another_identity_is_found() -> None:
    other = {**USER, "value": "O:SYG:SYD:(A;;CC;;;WD)"}
    found = _compared(_adding(CONNECT, other, action="block", user=False))
    assert found is not None
    assert "for the run alone" in found.artifact


# --- what is there, changed


def _with_field(one: JSON, field: str) -> bool:
    return any(condition["field"] == field for condition in one["conditions"])


def _without(layer: str, action: str, drop: Callable[[JSON], bool]) -> Change:
    """Drop the conditions that *drop* holds for, of the filters of *layer* that have others beside them."""

    def change(artifact: JSON) -> None:
        changed = 0
        for one in artifact["filters"]["filters"]:
            if one["layer"] == layer and one["action"] == action:
                left = [condition for condition in one["conditions"] if not drop(condition)]
                changed += len(left) < len(one["conditions"])
                one["conditions"] = left
        assert changed

    return change


def _is_empty(condition: JSON) -> bool:
    return bool(condition["type"] == "EMPTY")


def _is_mapped(condition: JSON) -> bool:
    return str(condition["value"]).startswith("::ffff:")


def _drop_filters(drop: Callable[[JSON], bool]) -> Change:
    def change(artifact: JSON) -> None:
        held = artifact["filters"]["filters"]
        left = [one for one in held if not drop(one)]
        assert len(left) < len(held)
        artifact["filters"]["filters"] = left

    return change


def _set(part: str, name: str, value: object) -> Change:
    return lambda artifact: artifact["filters"][part].update({name: value})


def _ports_for_other_protocols(artifact: JSON) -> None:
    """Ask for any port where a protocol may have none: the block then misses what it is for."""
    for one in artifact["filters"]["filters"]:
        if one["name"] == "other protocols":
            one["conditions"].append(_condition("IP_REMOTE_PORT", "RANGE", "RANGE", [0, 65535]))


def _narrow_listens(artifact: JSON) -> None:
    """Leave one network out of the IPv6 denies of a listen, far behind the loopback address."""
    for one in artifact["filters"]["filters"]:
        one["conditions"] = [c for c in one["conditions"] if c["value"] != "8000::/1"]


def _narrowed_apart(artifact: JSON) -> None:
    """Put a second address behind the ports of a permit: both then have to hold, and only one does."""
    for one in artifact["filters"]["filters"]:
        if one["layer"] == CONNECT and one["rules"] == ["api"]:
            narrow = _condition("IP_REMOTE_ADDRESS", "EQUAL", "V4_ADDR_MASK", "10.0.0.0/32")
            one["conditions"].append(narrow)


def _bits_behind(artifact: JSON) -> None:
    for one in artifact["filters"]["filters"]:
        for condition in one["conditions"]:
            if condition["value"] == "10.0.0.0/24":
                condition["value"] = "10.0.0.5/24"


def _second(name: str, value: object) -> Change:
    return lambda artifact: artifact["filters"]["filters"][1].update({name: value})


CHANGED: dict[str, tuple[Change, str]] = {
    "the sublayer is not asked first": (_set("sublayer", "weight", 0x8000), "filters.sublayer"),
    "the sublayer has another key": (_set("sublayer", "key", "@other"), "filters.sublayer"),
    "the session stays": (_set("session", "dynamic", False), "filters.session"),
    "the session is dynamic in words": (_set("session", "dynamic", "yes"), "filters.session"),
    "the session has a flag": (_set("session", "persistent", True), "filters"),
    "a filter has a flag": (_second("flags", ["CLEAR_ACTION_RIGHT"]), "filters"),
    "a filter has a sublayer of its own": (_second("sublayer", "@other"), "filters"),
    "a filter has no name": (_second("name", ""), "filter 1"),
    "a weight is a truth value": (_second("weight", True), "filter 1"),
    "a weight is exact": (_second("weight", {"uint64": 1 << 63}), "filter 1"),
    "a network is narrowed by another that stands apart": (_narrowed_apart, "api"),
    "a network has bits behind its mask": (_bits_behind, "api"),
    "two filters have one key": (
        lambda a: a["filters"]["filters"].append(a["filters"]["filters"][0]),
        "filters",
    ),
    "a block asks for a port that may not be there": (_ports_for_other_protocols, "no filter"),
    "a listen on every address that has none": (
        _drop_filters(lambda one: any(map(_is_empty, one["conditions"]))),
        "filters: p.default.listen",
    ),
    "a listen far behind the loopback address": (_narrow_listens, "filters: p.default.listen"),
    "loopback of a dual-stack socket": (
        _without("ALE_AUTH_CONNECT_V6", "permit", _is_mapped),
        "rest",
    ),
    "an accept from loopback on a dual-stack socket": (
        _without("ALE_AUTH_RECV_ACCEPT_V6", "permit", _is_mapped),
        "inbound",
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_change_is_found(what: str) -> None:
    change, part = CHANGED[what]
    found = _compared(change)
    assert found is not None
    assert part in found.part, str(found)


def test_ipv4_of_a_dual_stack_socket_is_denied_as_well() -> None:
    mapped = _drop_filters(
        lambda one: any(map(_is_mapped, one["conditions"])) and one["weight"] > 8
    )
    found = _compared(mapped, NARROW)
    assert found is not None
    assert found.event.startswith("ALE_AUTH_CONNECT_V6 protocol 6 ::ffff:10.0.0.9 ")
    assert (found.policy, found.artifact) == ("refused by no-db", "permitted by no rule")


ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    1 << 70,
    1.5,
    "",
    "x",
    "10.0.0.0/\u00b2",
    "10.0.0.0",
    [],
    [1],
    ["a", "b"],
    {},
)


@pytest.mark.parametrize("name", ["field", "match", "type", "value"])
def test_a_condition_of_odd_values_is_found_and_breaks_nothing(name: str) -> None:
    original = codec.to_json(compile_policy(NARROW, "windows"))
    tables = tables_of(NARROW, original)
    assert not isinstance(tables, Counterexample)
    for at, one in enumerate(original["filters"]["filters"]):
        for index in range(len(one["conditions"])):
            for odd in ODD:
                artifact = copy.deepcopy(original)
                artifact["filters"]["filters"][at]["conditions"][index][name] = odd
                found = compare_filters(NARROW, artifact, tables[0])
                assert found.difference is not None, (at, index, odd)


@pytest.mark.parametrize(
    "name", ["key", "name", "layer", "action", "weight", "rules", "conditions"]
)
def test_a_filter_of_odd_values_is_found_and_breaks_nothing(name: str) -> None:
    for odd in (None, True, -1, 1 << 70, 1.5, [None], [1], {}, {"uint64": 1}):
        found = _compared(_second(name, odd))
        assert found is not None, odd


# --- beside other products' filters


@pytest.mark.parametrize(("weight", "passes"), [(0xFFFF, False), (0x8000, True)])
def test_a_hard_permit_of_another_product_opens_nothing_where_the_run_is_asked_first(
    weight: int, passes: bool
) -> None:
    filters = codec.to_json(compile_policy(NARROW, "windows"))["filters"]
    assert filters["sublayer"]["weight"] == 0xFFFF
    foreign = {
        "name": "theirs",
        "rules": [],
        "layer": CONNECT,
        "action": "permit",
        "weight": 15,
        "flags": ["CLEAR_ACTION_RIGHT"],
        "conditions": [],
    }
    sublayers = [Sublayer(0xFFFE, [foreign]), Sublayer(weight, filters["filters"])]
    denied = Attempt(CONNECT, 6, remote=(4, 0x0A000009), remote_port=80)
    assert arbitrate(sublayers, denied).permitted is passes


def test_a_block_of_another_product_holds_against_what_the_run_permits() -> None:
    filters = codec.to_json(compile_policy(POLICY, "windows"))["filters"]
    foreign = {
        "name": "theirs",
        "rules": ["theirs"],
        "layer": CONNECT,
        "action": "block",
        "weight": 0,
        "conditions": [],
    }
    sublayers = [Sublayer(0x100, [foreign]), Sublayer(0xFFFF, filters["filters"])]
    allowed = Attempt(CONNECT, 6, remote=(4, 0x0A000001), remote_port=443)
    assert arbitrate(sublayers[1:], allowed).permitted
    ruling = arbitrate(sublayers, allowed)
    assert (ruling.permitted, ruling.rules) == (False, ("theirs",))


def test_a_filter_set_that_is_none_is_no_proof() -> None:
    found = _compared(lambda artifact: artifact["filters"].pop("sublayer"))
    assert found is not None
    assert found.artifact == "no filter set"
