"""Sends that the supervisor performs: the program sees what it would see bare."""

from __future__ import annotations

import pytest
from evidence import PASS
from stage import Y0, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]


def test_limits_flags_signals_counts_and_descriptors_are_as_bare(stage: Stage) -> None:
    program = stage.program("sending.py", "10.99.0.1", "9000")
    bare, ran = stage.bare(program), stage.contained(stage.flow(Y0, program))
    for part, seen in bare.report.items():
        assert ran.report[part] == seen, (part, ran)
    assert ran.report["large"] == dict.fromkeys(ran.report["large"], "EMSGSIZE"), ran  # type: ignore[call-overload]  # JSON
    assert ran.arrivals == [], ran
    assert ran.record.lane("faults") == [], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_a_payload_too_large_to_copy_is_recorded(stage: Stage) -> None:
    program = stage.program("sending.py", "10.99.0.1", "9000")
    ran = stage.contained(stage.flow(Y0, program))
    noted = [e for e in ran.record.lane("connect") if e.get("note") == "too large"]
    assert [(e["operation"], e["destination"], e["port"]) for e in noted] == [
        ("send", "10.99.0.1", 9000)
    ] * 3, ran.record.lane("connect")
    assert ran.record.verdict == PASS, (
        "the rule let it through; it was the supervisor that could not"
    )
