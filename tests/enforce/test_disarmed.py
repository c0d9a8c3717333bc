"""The negative control: the scenarios against an artifact whose refusals were taken out must invert.

The denied address receives and the verdict is not pass; a harness that said otherwise could not see a
run that refuses nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from disarming import disarmed
from evidence import CAPABILITY, FAIL, PASS
from scenarios import SCENARIOS, Scenario
from stage import Y0, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

DENY_ELSE = {
    "probe.api": "allow connect to 10.99.0.1, fd00:99::1",
    "probe.rest": "deny connect to anything else",
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
def test_without_refusals_the_denied_address_receives_and_the_verdict_is_not_pass(
    scenario: Scenario, plain_stage: Stage, built: dict[str, Path]
) -> None:
    ran = disarmed(plain_stage, Y0, "tables", scenario.command(plain_stage, built))
    assert any(ran.reached(address) for address in scenario.denied), ran
    assert ran.record.verdict != PASS, ran
    assert ran.code != 0, ran


@pytest.mark.parametrize("how", ["tables", "uncounted"])
def test_deny_without_refusals_cannot_pass(stage: Stage, how: str) -> None:
    command = stage.program("reach.py", "tcp", "10.99.0.2", "9000", "udp", "10.99.0.2", "9000")
    ran = disarmed(stage, DENY_ELSE, how, command)
    assert ran.reached("10.99.0.2") == 2, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


def test_never_without_refusals_and_counts_cannot_pass(stage: Stage) -> None:
    command = stage.program("reach.py", "tcp", "10.99.0.2", "9000")
    ran = disarmed(stage, Y0, "uncounted", command)
    assert ran.reached("10.99.0.2") == 1, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


def test_filter_that_allows_everything_never_starts_the_command(stage: Stage) -> None:
    command = stage.program("reach.py", "tcp", "10.99.0.1", "9000")
    ran = disarmed(stage, Y0, "program", command)
    assert ran.arrivals == [], ran
    assert ran.report == {}, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("CANARY"), ran.record.text


def test_untouched_artifact_refuses_through_the_same_driver(stage: Stage) -> None:
    command = stage.program("reach.py", "tcp", "10.99.0.2", "9000", "tcp", "10.99.0.1", "9000")
    ran = disarmed(stage, Y0, "none", command)
    assert (ran.reached("10.99.0.2"), ran.reached("10.99.0.1")) == (0, 1), ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
