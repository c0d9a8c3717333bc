"""Real programs go to hosts by name: a rule's name is bound when the run starts, and each program resolves
for itself and picks among the addresses as it likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from errands import ERRANDS, PORTS, WEB, Errand
from evidence import FAIL, PASS
from judged import ENV, attempts, reached, refusing, words
from stage import Stage

RESOLVING = ("curl", "wget", "git", "npm", "node", "go", "java-client")

pytestmark = [
    pytest.mark.namespace,
    pytest.mark.enforce,
    pytest.mark.parametrize(
        "errand", [each for each in ERRANDS if each.name in RESOLVING], ids=repr, indirect=True
    ),
]

RULES = {
    "real.server": f"allow connect tcp to allowed.flow.test:{PORTS[WEB]}",
    "real.elsewhere": "allow connect tcp to denied.flow.test:9001",
    "real.rest": "never connect to anything else",
}
ADDRESSES = {"10.99.0.1:8080", "[fd00:99::1]:8080"}


def test_allowed_name_is_reached(errand: Errand, kit: dict[str, Path], plain_stage: Stage) -> None:
    command = words(errand, kit, "allowed.flow.test")
    ran = plain_stage.contained(plain_stage.flow(RULES, command, agent={"env": ENV}))
    assert errand.brings(plain_stage, ran), ran
    assert reached(ran), ran
    assert reached(ran) <= ADDRESSES, ran
    assert attempts(ran) == [], ran.record.refused
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_name_that_only_a_name_server_knows_is_reached(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage
) -> None:
    sentences = {
        "real.server": f"allow connect tcp to stub.flow.test:{PORTS[WEB]}",
        "real.rest": "never connect to anything else",
    }
    command = words(errand, kit, "stub.flow.test")
    ran = plain_stage.contained(plain_stage.flow(sentences, command, agent={"env": ENV}))
    assert errand.brings(plain_stage, ran), ran
    assert reached(ran), ran
    assert reached(ran) <= ADDRESSES, ran
    assert attempts(ran) == [], ran.record.refused
    assert [(way["destination"], way["port"]) for way in ran.record.data["through"]] == [  # type: ignore[attr-defined]  # JSON
        ("127.0.0.53", 53)
    ], ran.record.data["through"]
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_name_at_another_port_is_refused_at_whatever_address_is_tried(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage
) -> None:
    command = words(errand, kit, "denied.flow.test")
    ran = plain_stage.contained(plain_stage.flow(RULES, command, agent={"env": ENV}))
    assert not errand.brings(plain_stage, ran), ran
    assert reached(ran) == set(), ran
    assert refusing(ran) == {("real.rest", "real.rest")}, ran.record.refused
    assert {event["name"] for event in attempts(ran)} == {"denied.flow.test"}, ran.record.refused
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
