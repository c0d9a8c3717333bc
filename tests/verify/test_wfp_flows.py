"""What a filter set amounts to over time: no datagram leaves unasked, whatever reached the program before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from authored import load_policy, policy

from flowproof.canonical import canonical
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy
from flowproof.verify.wfp import Sublayer
from flowproof.verify.wfp_flows import Flows, Operation

GOLDEN = Path(__file__).parents[1] / "golden"
DENYING = sorted(
    path
    for pattern in ("*/*.flow.yaml", "*/control.policy.yaml")
    for path in GOLDEN.glob(pattern)
    if load_policy(str(path.parent), path.name).connect_denies
)
LETTING = ("deny-one-address",)  # those that let datagrams to the strangers here through
NARROW = policy({"no-db": "deny connect to 203.0.113.9, [2001:db8::9]"})
STRANGERS = (
    (4, 0xCB007109),
    (6, 0x20010DB8 << 96 | 9),
    (6, 0xFFFFCB007109),
)  # 203.0.113.9, mapped too


def _sublayer(meant: Policy) -> dict[str, Any]:
    filters = compile_policy(meant, "windows").filters
    assert filters is not None
    held: dict[str, Any] = json.loads(canonical(filters))
    return held


def _flows(held: dict[str, Any], without: str = "") -> Flows:
    filters = [one for one in held["filters"] if not without or without not in one["layer"]]
    return Flows([Sublayer(held["sublayer"]["weight"], filters)])


def _reply(flows: Flows, family: int, address: int) -> tuple[bool, bool]:
    """Return whether a stranger's datagram reaches the program, and whether one to the stranger leaves."""
    peer = (family, address)
    came, went = (
        flows.perform(Operation(does, 17, family, peer, 4444, None, 5000, at))
        for at, does in enumerate(("receive", "send"))
    )
    return came.passes, went.passes


def test_there_are_policies_that_deny() -> None:
    assert len(DENYING) >= 4


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize(
    "path", [*DENYING, None], ids=lambda path: path.parent.name if path else "narrow"
)
def test_nothing_reaches_a_refused_stranger_by_way_of_its_own_datagram(
    path: Path | None, stranger: tuple[int, int]
) -> None:
    meant = NARROW if path is None else load_policy(str(path.parent), path.name)
    held = _sublayer(meant)
    asked = _flows(held).perform(Operation("send", 17, stranger[0], stranger, 4444, None, 5000))
    assert asked.passes is (path is not None and path.parent.name in LETTING)
    assert _reply(_flows(held), *stranger) == (False, asked.passes)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_without_the_filters_of_what_is_let_in_it_would_leave(stranger: tuple[int, int]) -> None:
    assert _reply(_flows(_sublayer(NARROW), "RECV_ACCEPT"), *stranger) == (True, True)


def test_an_answer_to_what_was_let_through_comes_in() -> None:
    held = _sublayer(
        policy(
            {"dns": "allow connect udp to 203.0.113.53:53", "r": "deny connect to anything else"}
        )
    )
    flows = _flows(held)
    peer = (4, 0xCB007135)
    for at, does in enumerate(("send", "receive", "send")):
        assert flows.perform(Operation(does, 17, 4, peer, 53, None, 5000, at)).passes
