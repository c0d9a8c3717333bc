"""What could not be enforced, observed or decided is never green: neither the verdict nor the exit code.

Each broken run stands beside the same run unbroken, which is green.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import threading
import time
from pathlib import Path

import pytest
from evidence import CAPABILITY, PASS, newest_record
from namespace import PLAIN
from stage import Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

ALLOWED = ("tcp", "10.99.0.1", "9000")
DENY = {"probe.deny": "deny connect to 10.99.0.2"}


def said_pass(ran: Ran) -> bool:
    """Say whether the output or the record holds a verdict of pass."""
    text = ran.stdout + (ran.record.text if ran.has_record else "")
    return re.search(r'"verdict":\s*"pass"', text) is not None


def green(ran: Ran) -> bool:
    return ran.code == 0 and said_pass(ran) and ran.record.verdict == PASS


def reason_codes(ran: Ran) -> str:
    return ran.record.text + ran.stdout


def test_unbroken_run_is_green(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", *ALLOWED)))
    assert green(ran), ran
    assert ran.reached("10.99.0.1") == 1, ran
    document = json.loads(ran.stdout)
    assert document["exit"]["code"] == 0, document["exit"]


@pytest.mark.case("C28")
def test_program_that_kills_its_supervisor(stage: Stage) -> None:
    """Where it can: on a host that does not keep signals inside (the others: `test_reach_cases.py`)."""
    program = stage.program("kill_parent.py", "10.99.0.2", "9000")
    ran = stage.contained(stage.flow(Y0, program), before=stage.older(5))
    assert ran.report["killed"] in {"ok", "about to"}, ran
    assert ran.report["connect"] in {"ENOSYS", "not reached"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("SUPERVISOR_LOST"), ran.record.text
    assert not said_pass(ran), ran
    assert living(stage) == [], "a process of the run is still there"


def living(stage: Stage) -> list[int]:
    """Return the processes whose command line names the stage's probe programs."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.startswith(str(stage.programs).encode()) for word in words):
                found.append(int(entry))
    return found


def parent_of(pid: int) -> int:
    text = Path("/proc", str(pid), "stat").read_text(encoding="ascii")
    return int(text.rpartition(")")[2].split()[1])


def probe_of(stage: Stage) -> int | None:
    """Return the process that is the probe itself (not flowproof, whose words name a flow)."""
    for pid in living(stage):
        words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
        if len(words) > 1 and words[1].endswith(b"/reach.py"):
            return pid
    return None


def test_supervisor_killed_from_outside(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED, "sleep", "30", "-"))
    killed: list[int] = []

    def kill() -> None:
        until = time.monotonic() + 15
        while time.monotonic() < until and not killed:
            pid = probe_of(stage) if stage.report.exists() else None
            if pid:
                killed.append(parent_of(pid))
                os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    ran = stage.contained(path)
    killer.join()
    assert killed, ran
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("SUPERVISOR_LOST"), ran.record.text
    assert ran.record.complete, ran.record.text
    assert not said_pass(ran), ran
    assert living(stage) == [], "a process of the run is still there"


def test_unreadable_child_memory_without_capabilities(plain_stage: Stage) -> None:
    """The undumpable program reaches an allowed address or not; either way nothing is green."""
    program = plain_stage.program("nondumpable.py", "10.99.0.1", "9000")
    ran = plain_stage.contained(plain_stage.flow(Y0, program))
    assert ran.reached("10.99.0.1") == 0, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert not said_pass(ran), ran


def test_unreadable_child_memory_is_not_green_for_deny_either(plain_stage: Stage) -> None:
    program = plain_stage.program("nondumpable.py", "10.99.0.1", "9000")
    ran = plain_stage.contained(plain_stage.flow(DENY, program))
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


@pytest.mark.case("C31")
def test_nested_run_is_never_green_and_never_starts(stage: Stage) -> None:
    inner = stage.flow(Y0, stage.program("reach.py", *ALLOWED), name="inner/inner.flow.yaml")
    records = stage.folder / "inner-records"
    words = stage.product.flowproof("run", str(inner), "--record", str(records), "--format", "json")
    script = f"{shlex.join(words)} > inner.json; echo $? > inner.code"
    environment = stage.environment()
    path = stage.flow(Y0, ["sh", "-c", script], agent={"env": environment})
    ran = stage.contained(path)
    assert green(ran), ran  # the outer run held, and its command ended with 0
    assert (stage.folder / "inner.code").read_text(encoding="ascii").strip() == "3", ran
    record = newest_record(records)
    assert record is not None
    assert record.verdict == CAPABILITY, record.text
    assert record.mentions("LISTENER_BUSY"), record.text
    assert ran.reached("10.99.0.1") == 0, "the inner command started"


def test_nested_run_makes_the_outer_one_not_green_by_its_exit_code(stage: Stage) -> None:
    inner = stage.flow(Y0, stage.program("reach.py", *ALLOWED), name="inner/inner.flow.yaml")
    words = stage.product.flowproof(
        "run", str(inner), "--record", str(stage.folder / "inner-records")
    )
    ran = stage.contained(stage.flow(Y0, words, agent={"env": stage.environment()}))
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("COMMAND_EXIT"), ran.record.text


def test_command_that_does_not_exist(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, ["no-such-command-anywhere"]))
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("COMMAND_NOT_FOUND"), ran.record.text
    assert not said_pass(ran), ran


def test_command_that_exits_3_under_never(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", *ALLOWED, "exit", "3", "-")))
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("COMMAND_EXIT"), ran.record.text


def test_command_that_exits_3_under_deny_holds_and_ends_with_1(stage: Stage) -> None:
    ran = stage.contained(stage.flow(DENY, stage.program("reach.py", *ALLOWED, "exit", "3", "-")))
    assert (ran.record.verdict, ran.code) == (PASS, 1), ran


@pytest.mark.parametrize("expected", ["3", "any"])
def test_command_that_exits_3_as_expected_is_green(stage: Stage, expected: str) -> None:
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED, "exit", "3", "-"))
    assert green(stage.contained(path, "--expect-exit", expected))


def test_command_that_dies_of_a_signal_is_not_green_even_with_any(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED, "signal", "9", "-"))
    ran = stage.contained(path, "--expect-exit", "any")
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("COMMAND_SIGNAL"), ran.record.text


def test_command_that_times_out_is_not_green_even_with_any(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED, "sleep", "30", "-"))
    ran = stage.contained(path, "--expect-exit", "any", "--timeout", "1s")
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("COMMAND_TIMEOUT"), ran.record.text
    assert living(stage) == []


def test_record_folder_below_a_file(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    ran = stage.contained(path, records=path / "records")
    assert ran.code == 4, ran
    assert not said_pass(ran), ran
    assert not ran.has_record, ran


def test_record_folder_of_somebody_else(plain_stage: Stage) -> None:
    path = plain_stage.flow(Y0, plain_stage.program("reach.py", *ALLOWED))
    ran = plain_stage.contained(path, records=Path("/proc/1/records"))
    assert ran.code == 4, ran
    assert not said_pass(ran), ran
    locked = plain_stage.folder / "locked"
    locked.mkdir(mode=0o500)
    if plain_stage.identity == PLAIN and os.geteuid() == 0:
        locked.chmod(0o755)  # root's, and nobody may not write there
    ran = plain_stage.contained(path, records=locked)
    assert ran.code == 4, ran
    assert not said_pass(ran), ran


def test_empty_control(stage: Stage) -> None:
    ran = stage.contained(stage.flow({}, stage.program("reach.py", *ALLOWED)))
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("UNASSERTED"), ran.record.text
    assert not said_pass(ran), ran


def test_folder_without_flows(stage: Stage) -> None:
    (stage.folder / "suite").mkdir()
    ran = stage.contained(stage.folder / "suite")
    assert ran.code == 4, ran
    assert not said_pass(ran), ran
    stage.flow(Y0, stage.program("reach.py", *ALLOWED), name="suite/one.flow.yaml")
    assert green(stage.contained(stage.folder / "suite"))


def test_file_with_bytes_that_are_no_utf8(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    path.write_bytes(path.read_bytes().replace(b"a probe", b"a pr\xf6be"))
    ran = stage.contained(path)
    assert ran.code == 2, ran
    assert not said_pass(ran), ran
    assert not ran.has_record, ran
    assert ran.report == {}, ran


def test_unset_variable(stage: Stage) -> None:
    rules = {
        "probe.api": "allow connect to ${TARGET}:9000",
        "probe.rest": "never connect to anything else",
    }
    path = stage.flow(rules, stage.program("reach.py", *ALLOWED))
    ran = stage.contained(path)
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("VARIABLE_UNSET"), ran.record.text
    assert "TARGET" in ran.stdout + ran.stderr, ran
    assert ran.report == {}, ran
    assert green(stage.contained(path, env={"TARGET": "10.99.0.1"}))
