"""An outer filter that refuses one mechanism call: the tier changes, and nothing is green (C32)."""

from __future__ import annotations

import pytest
from evidence import CAPABILITY, PASS
from mechanism import NUMBERS, REFUSED
from stage import Y0, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]


@pytest.mark.case("C32")
@pytest.mark.parametrize("call", REFUSED)
def test_refused_mechanism_call_stops_the_run_before_its_command(stage: Stage, call: str) -> None:
    number, argument, value = REFUSED[call]
    outer = stage.program("outer.py", str(number), argument, str(value))
    path = stage.flow(Y0, stage.program("reach.py", "tcp", "10.99.0.1", "9000"))
    ran = stage.contained(path, before=outer)
    assert ran.report == {}, f"the command started: {ran}"
    assert ran.arrivals == [], ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


def test_outer_filter_that_refuses_an_unrelated_call_changes_nothing(stage: Stage) -> None:
    outer = stage.program("outer.py", str(NUMBERS["acct"]), "-", "0")
    path = stage.flow(Y0, stage.program("reach.py", "tcp", "10.99.0.1", "9000"))
    ran = stage.contained(path, before=outer)
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
