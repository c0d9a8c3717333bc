"""Y0 over every scenario, as root and without capabilities: the denied address gets nothing, and the
record names it. The negative control runs the same scenarios disarmed (`test_disarmed.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence import FAIL, PASS
from scenarios import SCENARIOS, Scenario
from stage import Y0, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, id=s.name, marks=[pytest.mark.case(c) for c in s.cases]) for s in SCENARIOS],
)
def test_denied_address_gets_nothing_and_the_record_names_it(
    scenario: Scenario, stage: Stage, built: dict[str, Path]
) -> None:
    ran = stage.contained(stage.flow(Y0, scenario.command(stage, built)))
    for address in scenario.denied:
        assert ran.reached(address) == 0, ran
    for address in scenario.reaches:
        assert ran.reached(address), ran
    for place in scenario.places:
        assert ran.record.denied(place), (ran, ran.record.lane("connect"))
    expected = (FAIL, 1) if scenario.counted else (PASS, 0)
    assert (ran.record.verdict, ran.code) == expected, ran
    assert ran.record.lane("faults") == [], ran
