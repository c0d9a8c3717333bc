"""Real programs go to hosts by name: a rule's name is bound when the run starts, and each program resolves
for itself and picks among the addresses as it likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from errands import ERRANDS, PORTS, WEB, Errand
from evidence import FAIL, PASS
from judged import ENV, attempts, reached, refusing, words
from missing import installed
from stage import Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

RULES = {
    "real.server": f"allow connect tcp to allowed.flow.test:{PORTS[WEB]}",
    "real.elsewhere": "allow connect tcp to denied.flow.test:9001",
    "real.rest": "never connect to anything else",
}
RESOLVING = ("curl", "wget", "git", "npm", "node", "go", "java-client")
ADDRESSES = {"10.99.0.1:8080", "[fd00:99::1]:8080"}


@pytest.fixture(params=[each for each in ERRANDS if each.name in RESOLVING], ids=repr)
def errand(request: pytest.FixtureRequest) -> Errand:
    """An errand of a program that is installed."""
    found = request.param
    assert isinstance(found, Errand)
    installed(found.program)
    return found


@pytest.fixture
def kit(clients: dict[str, Path], web: dict[str, Path]) -> dict[str, Path]:
    """The web server is up."""
    return {**clients, **web}


def test_allowed_name_is_reached(errand: Errand, kit: dict[str, Path], plain_stage: Stage) -> None:
    command = words(errand, kit, "allowed.flow.test")
    ran = plain_stage.contained(plain_stage.flow(RULES, command, agent={"env": ENV}))
    assert errand.brings(plain_stage, ran), ran
    assert reached(ran), ran
    assert reached(ran) <= ADDRESSES, ran
    assert attempts(ran) == [], ran.record.refused
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
