"""The simulator of Windows says what the platform's documents say, and each part of it is needed for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from platform_vectors import JSON, SOURCES, VECTORS, problem

from flowproof.verify import wfp, wfp_conditions, wfp_flows, wfp_identity, wfp_install


@pytest.mark.parametrize("name", VECTORS)
def test_the_simulator_says_what_the_document_says(name: str) -> None:
    assert problem(VECTORS[name]) is None


@pytest.mark.parametrize("name", VECTORS)
def test_each_vector_names_the_document_that_it_is_from(name: str) -> None:
    assert VECTORS[name]["source"]
    assert set(VECTORS[name]["source"]) <= SOURCES.keys()


def test_every_document_that_is_listed_has_a_vector() -> None:
    used = {source for vector in VECTORS.values() for source in vector["source"]}
    assert used == SOURCES.keys()


def test_a_wrong_expectation_is_found() -> None:
    vector: JSON = VECTORS["arbitration: what no filter matches passes"]
    assert problem({**vector, "expect": {"decision": "block"}}) is not None
    steps = VECTORS["flows: a TCP connect is asked at CONNECT"]["steps"]
    turned = [{**steps[0], "passes": True}]
    assert problem({**VECTORS["flows: a TCP connect is asked at CONNECT"], "steps": turned})


# --- what happens to the vectors when a part of the simulator is broken

Break = Callable[[pytest.MonkeyPatch], None]


def _set(module: object, name: str, value: object) -> Break:
    return lambda patch: patch.setattr(module, name, value)


def _item(held: dict[str, Any], name: str, value: object) -> Break:
    return lambda patch: patch.setitem(held, name, value)


def _returning(module: object, name: str, change: Callable[..., object]) -> Break:
    """Let a function return what *change* makes of its answer and its arguments."""

    def broken(patch: pytest.MonkeyPatch) -> None:
        original = getattr(module, name)

        def changed(*arguments: Any) -> object:  # noqa: ANN401  whatever the function takes
            return change(original(*arguments), *arguments)

        patch.setattr(module, name, changed)

    return broken


def _alike(condition: JSON, attempt: object, bindings: object) -> bool:
    """Hold where a condition of an equality would: whatever the match."""
    made = {**condition, "match": "EQUAL"}
    if isinstance(condition["value"], list):
        made["value"] = condition["value"][0]
    return _HOLDS(made, attempt, bindings)  # type: ignore[arg-type]  # passed on as given


_HOLDS = wfp_conditions.holds
_RUNS = wfp_conditions.runs


def _apart(conditions: list[JSON]) -> list[list[JSON]]:
    return [[condition] for condition in conditions]


def _by_field(conditions: list[JSON]) -> list[list[JSON]]:
    held: dict[str, list[JSON]] = {}
    for condition in conditions:
        held.setdefault(condition["field"], []).append(condition)
    return list(held.values())


def _last(answers: list[Any]) -> wfp.Ruling:
    if not answers:
        return wfp.Ruling(True, (), False)
    return wfp.Ruling(answers[-1].permitted, answers[-1].rules, True)


BREAKS: dict[str, Break] = {
    "conditions of one field are all needed": _set(wfp_conditions, "runs", _apart),
    "conditions of one field are alternatives wherever they stand": _set(
        wfp_conditions, "runs", _by_field
    ),
    "conditions of all fields are alternatives": _set(
        wfp_conditions, "runs", lambda conditions: [conditions] if conditions else []
    ),
    "no conditions match nothing": _returning(
        wfp, "matches", lambda found, conditions, *_: found and bool(conditions)
    ),
    "every match is an equality": _set(wfp_conditions, "holds", _alike),
    "no names for one field": _set(wfp_conditions, "ALIASES", {}),
    "any right of a descriptor is the right": _set(wfp_identity, "MATCH_FILTER", "DC"),
    "a descriptor is about everybody": _set(wfp_conditions, "granted", lambda *_: True),
    "a descriptor is about nobody": _set(wfp_conditions, "granted", lambda *_: False),
    "a descriptor needs no owner": _set(wfp_install, "owned", lambda _: True),
    "empty fields equal anything": _set(wfp_conditions, "_empty", lambda _: True),
    "empty fields equal nothing": _set(wfp_conditions, "_empty", lambda _: False),
    "all flags are told at every layer": _set(
        wfp_conditions,
        "FLAGS_AT",
        dict.fromkeys(
            wfp_conditions.FLAGS,
            ("ALE_AUTH_CONNECT", "ALE_AUTH_LISTEN", "ALE_AUTH_RECV_ACCEPT"),
        ),
    ),
    "classes have one weight each": _set(wfp, "_CLASS_BITS", 0),
    "classes are half as wide": _set(wfp, "_CLASS_BITS", 59),
    "an automatic weight is the heaviest": _returning(
        wfp, "_span", lambda found, weight: (1 << 64, 1 << 64) if weight is None else found
    ),
    "every action is soft": _set(wfp, "_writable", lambda _: True),
    "every action is hard": _set(wfp, "_writable", lambda _: False),
    "the flag of a filter means nothing": _returning(
        wfp, "_writable", lambda _, one: one["action"] != "block"
    ),
    "a block is soft by default": _returning(
        wfp, "_writable", lambda found, one: found or one["action"] == "block"
    ),
    "no callout": _returning(wfp, "_action", lambda found, _: found.removeprefix("callout ")),
    "a filter that continues blocks": _returning(
        wfp, "_action", lambda found, _: found.replace("continue", "block")
    ),
    "sublayers in the order of their filters": _set(wfp, "sorted", lambda found, **_: list(found)),
    "the lightest sublayer first": _set(wfp, "sorted", lambda found, **_: sorted(found)),
    "one order of sublayers of a weight": _set(wfp, "permutations", lambda found: [tuple(found)]),
    "the last sublayer decides": _set(wfp, "_layer", _last),
    "the first sublayer decides": _set(wfp, "_layer", lambda found: _last(found[:1])),
    "idle flows stay": _set(wfp_flows, "IDLE", 1 << 30),
    "idle flows go at once": _set(wfp_flows, "IDLE", 0.5),
    "a datagram to many lets nothing in": _set(wfp_flows, "TO_MANY", -1),
    "a datagram to many lets everything in": _set(wfp_flows, "TO_MANY", 1 << 30),
    "every address is many": _set(wfp_flows, "_many", lambda _: True),
    "flows are told by the peer's address alone": _set(
        wfp_flows, "_key", lambda one: (one.protocol, None, one.remote, None)
    ),
    "every packet is a flow of its own": _set(wfp_flows, "_idle", lambda *_: True),
    "a connect of a datagram socket is asked": _item(
        wfp_flows._LAYERS, "connect", ("ALE_AUTH_CONNECT", "ALE_AUTH_CONNECT")
    ),
    "a datagram socket's listen is asked": _item(
        wfp_flows._LAYERS, "listen", ("ALE_AUTH_LISTEN", "ALE_AUTH_LISTEN")
    ),
    "an accept is asked where a connect is": _item(
        wfp_flows._LAYERS, "accept", ("ALE_AUTH_CONNECT", None)
    ),
    "a bind is not asked": _item(wfp_flows._LAYERS, "bind", (None, None)),
    "a change of filters asks nothing again": _set(
        wfp_flows.Flows, "change", lambda self, sublayers, _: setattr(self, "_sublayers", sublayers)
    ),
    "that a flow is asked again cannot be told": _item(wfp_conditions.FLAGS, "IS_REAUTHORIZE", 0),
    "an exact port of a filter is not asked for": _item(
        wfp_install._NUMBERS, "IP_REMOTE_PORT", "UINT8"
    ),
    "a protocol is 16 bits wide": _item(wfp_install._NUMBERS, "IP_PROTOCOL", "UINT16"),
    "flags are 16 bits wide": _item(wfp_install._NUMBERS, "FLAGS", "UINT16"),
    "a port is of any size": _item(wfp_install._PLAIN, "UINT16", 1 << 40),
    **{
        f"{layer} takes {field}": _item(
            wfp_install.AVAILABLE, layer, wfp_install.AVAILABLE[layer] | {field}
        )
        for layer, field in (
            ("ALE_AUTH_LISTEN_V4", "IP_REMOTE_ADDRESS"),
            ("ALE_AUTH_LISTEN_V4", "IP_REMOTE_PORT"),
            ("ALE_AUTH_LISTEN_V6", "IP_PROTOCOL"),
            ("ALE_AUTH_CONNECT_V4", "ALE_PROMISCUOUS_MODE"),
            ("OUTBOUND_TRANSPORT_V4", "ALE_USER_ID"),
            ("OUTBOUND_IPPACKET_V6", "ALE_USER_ID"),
            ("OUTBOUND_IPPACKET_V4", "IP_REMOTE_PORT"),
        )
    },
    **{
        f"{layer} takes no {field}": _item(
            wfp_install.AVAILABLE, layer, wfp_install.AVAILABLE[layer] - {field}
        )
        for layer, field in (
            ("ALE_AUTH_LISTEN_V4", "ALE_USER_ID"),
            ("ALE_AUTH_RECV_ACCEPT_V6", "ALE_USER_ID"),
            ("ALE_AUTH_CONNECT_V4", "ALE_USER_ID"),
        )
    },
    "a network of the other family is taken": _set(wfp_install, "_address", lambda *_: None),
    "a mapped address is another one": _set(
        wfp_conditions, "canonical", lambda family, value: (family, value)
    ),
    "no network is taken": _set(wfp_conditions, "parse_address", lambda _: None),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_each_part_of_the_simulator_is_held_by_a_vector(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken in ("sublayers in the order of their filters", "the lightest sublayer first"):
        monkeypatch.setattr(wfp, "sorted", sorted, raising=False)
    BREAKS[broken](monkeypatch)
    red = [name for name, vector in VECTORS.items() if _red(vector)]
    assert red, f"no vector notices: {broken}"


def _red(vector: JSON) -> bool:
    try:
        return problem(vector) is not None
    except (AssertionError, ValueError, TypeError, KeyError, IndexError):
        return True  # a broken simulator may break outright
