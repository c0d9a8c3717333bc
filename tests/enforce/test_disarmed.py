"""The negative control: the scenarios against an artifact whose refusals were taken out must invert.

The denied address receives and the verdict is not pass; a harness that said otherwise could not see a
run that refuses nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence import CAPABILITY, FAIL, PASS, newest_record
from scenarios import SCENARIOS, Scenario
from stage import Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

DENY_ELSE = {
    "probe.api": "allow connect to 10.99.0.1, fd00:99::1",
    "probe.rest": "deny connect to anything else",
}


def disarmed(stage: Stage, rules: dict[str, str], how: str, command: list[str]) -> Ran:
    path = stage.flow(rules, command)
    records = stage.folder / "records"
    driver = Path(__file__).parent / "harness" / "disarmed.py"
    copy = stage.folder / "disarmed.py"
    copy.write_text(driver.read_text(encoding="utf-8"), encoding="utf-8")
    copy.chmod(0o644)
    words = [stage.product.python, str(copy), str(path), str(records), how, *command]
    ran = stage.execute(words)
    ran.keep(newest_record(records))
    return ran


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
