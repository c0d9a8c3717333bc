"""What each verb does to a run: what arrives, the verdict, and the exit code."""

from __future__ import annotations

import pytest
from evidence import CAPABILITY, FAIL, PASS
from stage import NEVER_ELSE, Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

DENIED = ("tcp", "10.99.0.2", "9000")
ALLOWED = ("tcp", "10.99.0.1", "9000")


def run(stage: Stage, rules: dict[str, str], *acts: str, **env: str) -> Ran:
    return stage.contained(stage.flow(rules, stage.program("reach.py", *acts)), env=env)


def test_never_ends_with_1_when_it_is_tried(stage: Stage) -> None:
    ran = run(stage, {"probe.never": "never connect to 10.99.0.2"}, *DENIED, *ALLOWED)
    assert (ran.reached("10.99.0.2"), ran.reached("10.99.0.1")) == (0, 1), ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


def test_never_ends_with_0_when_it_is_not_tried(stage: Stage) -> None:
    ran = run(stage, {"probe.never": "never connect to 10.99.0.2"}, *ALLOWED)
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_deny_refuses_and_ends_with_0(stage: Stage) -> None:
    ran = run(stage, {"probe.deny": "deny connect to 10.99.0.2"}, *DENIED, *ALLOWED)
    assert (ran.reached("10.99.0.2"), ran.reached("10.99.0.1")) == (0, 1), ran
    assert len(ran.record.denied("10.99.0.2:9000")) == 1, ran.record.lane("connect")
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_expect_no_lets_through_and_fails(stage: Stage) -> None:
    ran = run(stage, {"probe.expect": "expect no connect to 10.99.0.2"}, *DENIED)
    assert ran.reached("10.99.0.2") == 1, ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


def test_expect_no_passes_when_nothing_is_tried(stage: Stage) -> None:
    ran = run(stage, {"probe.expect": "expect no connect to 10.99.0.2"}, *ALLOWED)
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_port_and_protocol_are_part_of_an_allow(stage: Stage) -> None:
    rules = {"probe.api": "allow connect tcp to 10.99.0.1:9000", **NEVER_ELSE}
    acts = (*ALLOWED, "tcp", "10.99.0.1", "9001", "udp", "10.99.0.1", "9000")
    ran = run(stage, rules, *acts)
    assert [(a.protocol, a.to) for a in ran.arrivals] == [("tcp", "10.99.0.1:9000")], ran
    assert len(ran.record.denied("10.99.0.1:9001")) == 1, ran
    assert len(ran.record.denied("10.99.0.1:9000")) == 1, ran


def test_name_stands_for_the_addresses_of_the_hosts_file(stage: Stage) -> None:
    rules = {"probe.api": "allow connect to allowed.flow.test:9000", **NEVER_ELSE}
    ran = run(stage, rules, "tcp", "allowed.flow.test", "9000", *ALLOWED)
    assert (ran.reached("10.99.0.1"), ran.reached("fd00:99::1")) == (2, 1), ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
    assert "allowed.flow.test" in ran.record.text


def test_other_name_is_refused_at_its_addresses(stage: Stage) -> None:
    rules = {"probe.api": "allow connect to allowed.flow.test:9000", **NEVER_ELSE}
    ran = run(stage, rules, "tcp", "denied.flow.test", "9000", *DENIED)
    assert ran.reached("10.99.0.2", "fd00:99::2") == 0, ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@pytest.mark.parametrize(
    ("name", "why"), [("nowhere.flow.test", "unknown"), ("inner.flow.test", "on loopback")]
)
def test_name_that_cannot_be_bound_stops_the_run(stage: Stage, name: str, why: str) -> None:
    rules = {"probe.api": f"allow connect to {name}:9000", **NEVER_ELSE}
    ran = run(stage, rules, *ALLOWED)
    assert ran.report == {}, f"started although its name is {why}: {ran}"
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("NAME_UNBOUND"), ran.record.text
    assert name in ran.stderr + ran.stdout, ran


def test_variable_is_bound_from_the_environment(stage: Stage) -> None:
    rules = {"probe.api": "allow connect to ${TARGET}:9000", **NEVER_ELSE}
    ran = run(stage, rules, *ALLOWED, TARGET="10.99.0.1")
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
    refused = run(stage, rules, *DENIED, TARGET="10.99.0.1")
    assert refused.reached("10.99.0.2") == 0, refused
    assert (refused.record.verdict, refused.code) == (FAIL, 1), refused


@pytest.mark.parametrize("value", ["", "10.99.0.1,10.99.0.3", "10.99.0.1:9000", "no host"])
def test_variable_that_is_no_single_host_stops_the_run_and_is_not_printed(
    stage: Stage, value: str
) -> None:
    rules = {"probe.api": "allow connect to ${TARGET}:9000", **NEVER_ELSE}
    ran = run(stage, rules, *ALLOWED, TARGET=value)
    assert ran.report == {}, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert "TARGET" in ran.stderr + ran.stdout, ran
    assert not value or value not in ran.record.text + ran.stdout + ran.stderr, ran


def test_run_returns_within_half_a_second_of_its_command(stage: Stage) -> None:
    ran = run(stage, Y0, *ALLOWED)
    assert ran.ended - float(str(ran.report["ended"])) < 0.5, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_prompt_reaches_the_command(plain_stage: Stage) -> None:
    path = plain_stage.flow(
        Y0, plain_stage.program("reach.py", *ALLOWED), steps=[{"prompt": "Tidy up."}]
    )
    ran = plain_stage.contained(path)
    assert ran.report["prompt"] == "Tidy up.", ran
    assert "Tidy up." not in ran.record.text
