"""What a program can do to the processes that supervise and record it, and to its record: nothing."""

from __future__ import annotations

import json
import os

import pytest
from evidence import CAPABILITY, FAIL, PASS, newest_record
from stage import NEVER_ELSE, Y0, Stage

from flowproof.run.kernel import Kernel

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

case = pytest.mark.case

SCOPED = Kernel().landlock() >= 6
"""Whether this kernel keeps signals inside a Landlock domain (Linux 6.12)."""


@case("C28")
def test_program_cannot_end_its_supervisor(stage: Stage) -> None:
    assert SCOPED, "this kernel has no scope for signals: Linux 6.12 has"
    ran = stage.contained(stage.flow(Y0, stage.program("kill_parent.py", "10.99.0.2", "9000")))
    assert ran.report == {"killed": "EPERM", "connect": "ECONNREFUSED"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
    assert ran.record.denied("10.99.0.2:9000"), ran.record.text


@case("C28")
@pytest.mark.parametrize("rules", [Y0, {"probe.expect": "expect no connect to 10.99.0.2"}])
def test_program_that_ends_its_supervisor_on_an_older_host_gets_nothing_for_it(
    stage: Stage, rules: dict[str, str]
) -> None:
    program = stage.program("kill_parent.py", "10.99.0.2", "9000")
    ran = stage.contained(stage.flow(rules, program), before=stage.older(5))
    assert ran.report["killed"] in {"ok", "about to"}, ran
    assert ran.report["connect"] in {"ENOSYS", "not reached"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("SUPERVISOR_LOST"), ran.record.text


@pytest.mark.parametrize(
    ("rules", "verdict", "code"),
    [
        ({"probe.deny": "deny connect to 10.99.0.2"}, CAPABILITY, 3),
        (NEVER_ELSE, CAPABILITY, 3),
        ({"probe.expect": "expect no connect to 10.99.0.2"}, PASS, 0),
    ],
)
def test_nothing_is_contained_where_the_supervisor_can_be_signalled(
    stage: Stage, rules: dict[str, str], verdict: str, code: int
) -> None:
    path = stage.flow(rules, ["true"])
    ran = stage.contained(path, before=stage.older(5))
    assert (ran.record.verdict, ran.code) == (verdict, code), ran
    assert ran.record.mentions("NOT_SHIELDED"), ran.record.text
    assert "Linux 6.12" in ran.stdout + ran.stderr or verdict == PASS, ran


@pytest.mark.parametrize(
    ("abi", "tier", "code"),
    [(5, "observed (NOT_SHIELDED)", "NOT_SHIELDED"), (0, "none (NOT_SECLUDED)", "NOT_SECLUDED")],
)
def test_doctor_says_what_an_older_host_costs(
    root_stage: Stage, abi: int, tier: str, code: str
) -> None:
    doctor = root_stage.product.flowproof("doctor", "--format", "json")
    ran = root_stage.bare([*root_stage.older(abi), *doctor])
    found = json.loads(ran.stdout)
    assert (ran.code, found["lanes"]["connect"]) == (3, tier), ran
    row = next(row for row in found["capabilities"] if row["code"] == code)
    assert row["cost"].startswith("a command runs"), row
    assert "Landlock" in row["help"] or "landlock" in row["help"], row


def test_nothing_is_claimed_where_no_landlock_keeps_a_program_off_others(root_stage: Stage) -> None:
    """Root, since Yama, where there is one, does not bind it."""
    for rules in (Y0, {"probe.expect": "expect no connect to 10.99.0.2"}):
        ran = root_stage.contained(root_stage.flow(rules, ["true"]), before=root_stage.older(0))
        assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
        assert ran.record.mentions("NOT_SECLUDED"), ran.record.text


@case("C29")
def test_supervisor_recorder_and_record_are_out_of_reach(stage: Stage) -> None:
    runs = stage.folder / ".flowproof" / "runs"
    path = stage.flow(Y0, stage.program("tamper.py", str(runs)))
    ran = stage.execute(stage.product.flowproof("run", str(path), "--format", "json"))
    for who in ("supervisor", "recorder"):
        attempts = ran.report[who]
        assert isinstance(attempts, dict), ran
        assert set(attempts) >= {"mem", "writev", "ptrace", "getfd", "open", "kill"}, ran
        assert set(attempts.values()) <= {"EPERM", "EACCES"}, ran
    # Of its own record it finds the unfinished one, which is replaced, and no lane.
    assert ran.report["files"] == {"record.json": "written"}, ran
    record = newest_record(runs)
    assert record is not None
    assert (record.verdict, record.complete, ran.code) == (PASS, True, 0), ran
    audited = stage.execute(stage.product.flowproof("audit", str(stage.folder), "--format", "json"))
    assert (audited.code, json.loads(audited.stdout)["exit"]["code"]) == (0, 0), audited


@case("C33")
@pytest.mark.parametrize("answer", ["the kernel's own", "EINVAL, as without Yama"])
def test_program_that_asks_to_be_traced_by_all_is_no_error(stage: Stage, answer: str) -> None:
    program = stage.program("ptracer.py")
    # prctl, where argument 0 is PR_SET_PTRACER, gets EINVAL (22): what a kernel without Yama says
    prctl = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
    outer = stage.program("outer.py", f"{prctl}:0:0x59616d61=22")
    staged = outer if answer.startswith("EINVAL") else []
    ran = stage.contained(stage.flow(Y0, program), before=staged)
    bare = stage.bare([*staged, *program])
    assert ran.report == bare.report, ran
    assert not staged or ran.report == {"prctl": "EINVAL"}, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
    assert ran.record.lane("faults") == [], ran
