"""Whole runs on the real kernel: verdict, exit code and record, and no way to a green one by accident."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from errno import EACCES, EMFILE, EPERM
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from runnable import (
    CALLS,
    DENIED,
    PYTHON,
    FaultyKernel,
    artifact,
    as_user,
    command,
    deny,
    expect_no,
    never,
    observe,
    python,
    rule,
)

from flowproof.artifact.model import Artifact, Entry, Fidelity, Symbol
from flowproof.exit_codes import ExitCode
from flowproof.record.codes import Code
from flowproof.record.evidence import run_folders, verify_record
from flowproof.record.model import End, Hits, Verdict
from flowproof.record.store import RunFolder
from flowproof.resources import data
from flowproof.run.command import Command
from flowproof.run.kernel import Kernel
from flowproof.run.recorder import Outcome, run
from flowproof.run.selftest import self_test
from flowproof.run.steps import Capability
from flowproof.values import replace

pytestmark = pytest.mark.enforce
NOBODY = 65534
PASS, FAIL, CAPABILITY = Verdict.PASS, Verdict.FAIL, Verdict.CAPABILITY_ERROR
RECORD = jsonschema.Draft202012Validator(json.loads(data("schema", "run-record.schema.json")))
LINE = jsonschema.Draft202012Validator(json.loads(data("schema", "lane-event.schema.json")))
CONNECT = f"import socket\nassert socket.socket().connect_ex(({DENIED!r}, 9)) == 111\n"
MARK = "open({path!r}, 'w').close()"


def checked(outcome: Outcome) -> Outcome:
    """Return *outcome* once its record was read back, validated and judged anew."""
    assert outcome.folder is not None
    stored = verify_record(outcome.folder)
    assert stored.problems == ()
    assert stored.record == outcome.record
    RECORD.validate(json.loads((Path(outcome.folder) / "record.json").read_bytes()))
    for lines in stored.lanes.values():
        for line in lines:
            LINE.validate(line)
    assert outcome.record.run.complete
    assert outcome.exit_code is outcome.record.exit.code
    return outcome


def do(tmp_path: Path, found: Artifact, what: Command, kernel: Kernel | None = None) -> Outcome:
    return checked(run(found, what, record_root=str(tmp_path), proven=True, kernel=kernel))


def verdict(outcome: Outcome) -> tuple[Verdict, Code | None, ExitCode]:
    control = outcome.record.controls[0]
    return control.verdict, control.code, outcome.exit_code


def children() -> tuple[int, ...]:
    return Kernel().children(os.getpid())


def lines(outcome: Outcome, lane: str = "connect") -> list[dict[str, Any]]:
    assert outcome.folder is not None
    text = (Path(outcome.folder) / f"{lane}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


class OlderLandlock(Kernel):
    """Landlock before its scopes: Linux 5.19 to 6.11. What it contains can signal its supervisor."""

    def landlock(self) -> int:
        return min(super().landlock(), 5)


# --- what a run shows ---


def test_a_run_of_an_artifact_that_nobody_proved_is_not_green(tmp_path: Path) -> None:
    outcome = checked(run(deny(), command("true"), record_root=str(tmp_path)))
    assert verdict(outcome) == (CAPABILITY, Code.NOT_PROVEN, ExitCode.CAPABILITY)
    assert outcome.record.policy.proof == "claimed"


@pytest.mark.parametrize(
    ("make", "attempt", "want"),
    [
        (never, False, (PASS, None, ExitCode.OK)),
        (never, True, (FAIL, None, ExitCode.NEGATIVE)),
        (deny, False, (PASS, None, ExitCode.OK)),
        (deny, True, (PASS, None, ExitCode.OK)),
        (expect_no, False, (PASS, None, ExitCode.OK)),
        (expect_no, True, (FAIL, None, ExitCode.NEGATIVE)),
        (observe, True, (CAPABILITY, Code.UNASSERTED, ExitCode.CAPABILITY)),
    ],
)
def test_each_verb_with_and_without_an_attempt(
    tmp_path: Path, make: Callable[[], Artifact], attempt: bool, want: tuple[object, ...]
) -> None:
    code = f"import socket\nsocket.socket().connect_ex(({DENIED!r}, 9))" if attempt else "pass"
    assert verdict(do(tmp_path, make(), python(code))) == want


def test_a_refused_attempt_is_listed_with_its_rule_program_and_place(tmp_path: Path) -> None:
    outcome = do(tmp_path, never(), python(CONNECT))
    (event,) = lines(outcome)
    assert event["by"] == {"rule": "c.never", "claim": "containment+behaviour"}
    assert (event["destination"], event["port"], event["handling"]) == (DENIED, 9, "refused")
    assert os.path.basename(event["program"]).startswith("python")
    assert event["ms"] < 20_000
    assert outcome.record.rules[0].hits == Hits(refused=1, counted=1)


@pytest.mark.parametrize("ignored", [(), (signal.SIGHUP,)], ids=["none", "as nohup does"])
def test_the_command_ignores_the_signals_that_flowproof_was_started_to_ignore(
    tmp_path: Path, ignored: tuple[signal.Signals, ...]
) -> None:
    report = tmp_path / "report"
    code = f"""import signal
names = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
found = [x for x in names if signal.getsignal(getattr(signal, x)) is signal.SIG_IGN]
open({str(report)!r}, "w").write(" ".join(found))"""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        do(tmp_path, never(), python(code))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert report.read_text().split() == [number.name for number in ignored]


@pytest.mark.parametrize("kernel", [Kernel, OlderLandlock])
def test_the_command_takes_no_descriptor_of_a_process_outside(
    kernel: type[Kernel], tmp_path: Path
) -> None:
    report = tmp_path / "report"
    own = socket.socket()
    code = f"""import ctypes, errno, os
c = ctypes.CDLL(None, use_errno=True)
taken = c.syscall(438, os.pidfd_open({os.getpid()}), {own.fileno()}, 0)  # pidfd_getfd
open({str(report)!r}, "w").write(errno.errorcode[ctypes.get_errno()] if taken < 0 else "taken")
child = os.fork()
if not child:
    os._exit(0 if c.ptrace(0, 0, 0, 0) == 0 else 1)  # PTRACE_TRACEME: inside, tracing goes on
assert os.waitpid(child, 0)[1] == 0
os.chdir({str(tmp_path)!r})
os.mkdir("one"), os.mkdir("two"), open("one/file", "w").close()
os.rename("one/file", "two/file")"""
    outcome = do(tmp_path, never(), python(code), kernel())
    own.close()
    assert report.read_text() == "EPERM"
    assert outcome.record.command.end == End("exit", 0)
    assert "Landlock" in outcome.record.lanes["connect"].tier.reason


REACH = """import errno, os, signal, subprocess, sys, time
def reach(pid, number=0):
    try:
        os.kill(pid, number)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "ok"
supervisor = os.getppid()
recorder = int(open(f"/proc/{supervisor}/stat").read().rpartition(")")[2].split()[1])
"""


def reached(tmp_path: Path, code: str, kernel: Kernel | None = None) -> tuple[Outcome, list[str]]:
    """Run REACH and *code*, which leaves its answers in `found`."""
    report = tmp_path / "report"
    text = f"{REACH}{code}\nopen({str(report)!r}, 'w').write(' '.join(found))"
    outcome = do(tmp_path, deny(), python(text), kernel)
    return outcome, report.read_text().split()


scoped = pytest.mark.skipif(
    Kernel().landlock() < 6, reason="needs Landlock with scopes: Linux 6.12"
)


@scoped
def test_the_command_can_signal_neither_supervisor_nor_recorder_nor_anybody_outside(
    tmp_path: Path,
) -> None:
    outside = os.fork()
    if not outside:
        signal.pause()
    code = f"""found = [reach(pid, number) for pid in (supervisor, recorder, {outside}, -os.getpgid(supervisor))
         for number in (0, signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)]"""
    try:
        outcome, found = reached(tmp_path, code)
        assert os.waitpid(outside, os.WNOHANG) == (0, 0)
    finally:
        os.kill(outside, signal.SIGKILL)
        os.waitpid(outside, 0)
    assert found == ["EPERM"] * 16
    assert verdict(outcome) == (PASS, None, ExitCode.OK)


@scoped
def test_signals_inside_the_run_arrive(tmp_path: Path) -> None:
    code = """found = []
signal.signal(signal.SIGUSR1, lambda *_: found.append("handled"))
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
os.killpg(child.pid, signal.SIGTERM)
found.append(str(child.wait()))
if not os.fork():
    os.kill(os.getppid(), signal.SIGUSR1)
    os._exit(0)
os.wait()
while "handled" not in found:
    time.sleep(0.01)"""
    outcome, found = reached(tmp_path, code)
    assert sorted(found) == ["-15", "handled"]
    assert verdict(outcome) == (PASS, None, ExitCode.OK)


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (deny, (CAPABILITY, Code.NOT_SHIELDED, ExitCode.CAPABILITY)),
        (never, (CAPABILITY, Code.NOT_SHIELDED, ExitCode.CAPABILITY)),
        (expect_no, (PASS, None, ExitCode.OK)),
    ],
)
def test_where_the_supervisor_can_be_signalled_nothing_is_contained(
    tmp_path: Path, make: Callable[[], Artifact], want: tuple[object, ...]
) -> None:
    outcome = do(tmp_path, make(), command("true"), OlderLandlock())
    tier = outcome.record.lanes["connect"].tier
    assert (tier.word, tier.code) == ("observed", Code.NOT_SHIELDED)
    assert "could signal" in tier.reason
    assert verdict(outcome) == want


def test_a_violation_stands_where_the_supervisor_can_be_signalled(tmp_path: Path) -> None:
    outcome = do(tmp_path, never(), python(CONNECT), OlderLandlock())
    assert verdict(outcome) == (FAIL, None, ExitCode.NEGATIVE)


@pytest.mark.parametrize("make", [Kernel, OlderLandlock])
def test_abstract_sockets_outside_are_let_be_where_no_rule_is_about_them(
    tmp_path: Path, make: type[Kernel]
) -> None:
    name = f"\0flowproof-test-{os.getpid()}"
    report = tmp_path / "report"
    entry = Entry(otherwise=(0,))
    one = rule("c.listen", "deny", "deny listen on anything else", action="listen")
    listening = artifact(one, denied=entry, rest=entry, calls=("listen",))
    code = f"""import socket
socket.socket(socket.AF_UNIX).connect({name!r})
open({str(report)!r}, "w").write("through")"""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen(1)
        do(tmp_path, listening, python(code), make())
    assert report.read_text() == "through"


def test_the_record_says_where_outside_processes_are_within_reach(tmp_path: Path) -> None:
    kernel = Kernel()
    kernel.seclusion = lambda: None  # type: ignore[method-assign]  # neither Landlock nor Yama
    for control in (never(), expect_no()):
        outcome = do(tmp_path, control, command("true"), kernel)
        assert outcome.record.lanes["connect"].tier.word == "none"
        assert verdict(outcome) == (CAPABILITY, Code.NOT_SECLUDED, ExitCode.CAPABILITY)


def test_yama_keeps_whoever_is_not_root_off_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel()
    monkeypatch.setattr(kernel, "landlock", lambda: 1)
    for scope, user, found in ((1, 1000, "Yama"), (0, 1000, None), (2, 0, None)):
        monkeypatch.setattr(kernel, "ptrace_scope", lambda scope=scope: scope)
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert kernel.seclusion() == found


def test_the_lane_is_enforced_only_by_a_refusal_that_was_seen(tmp_path: Path) -> None:
    shut = f", {Kernel().seclusion()}"
    refusing = do(tmp_path, never(), command("true")).record
    assert str(refusing.lanes["connect"].tier) == f"enforced (seccomp user notification{shut})"
    assert refusing.canary is not None
    assert (refusing.canary.seen, refusing.canary.errno, refusing.canary.by) == (
        "refused",
        "ECONNREFUSED",
        "c.never",
    )
    watching = do(tmp_path, expect_no(), command("true")).record
    assert str(watching.lanes["connect"].tier) == f"observed (seccomp user notification{shut})"
    assert watching.canary is not None
    assert (watching.canary.seen, watching.canary.errno, watching.canary.by) == (
        "let-through",
        None,
        None,
    )


def test_the_canary_counts_for_nobody(tmp_path: Path) -> None:
    outcome = do(tmp_path, never(), command("true"))
    assert lines(outcome) == []
    assert outcome.record.supervisor.received == outcome.record.supervisor.answered == 1


def test_a_listener_of_others_on_loopback_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outcome = do(
            tmp_path,
            never(),
            python(f"import socket\nsocket.create_connection(('127.0.0.1', {port}))"),
        )
    assert verdict(outcome)[0] is PASS
    assert [(one.destination, one.port, one.count) for one in outcome.record.through] == [
        ("127.0.0.1", port, 1)
    ]


def test_a_listener_of_the_runs_own_is_not_named(tmp_path: Path) -> None:
    code = "import socket\nserver = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(server.getsockname())"
    outcome = do(tmp_path, never(), python(code))
    assert verdict(outcome)[0] is PASS
    assert outcome.record.through == ()
    assert {line["operation"] for line in lines(outcome) if line["kind"] == "seen"} == {
        "connect",
        "listen",
    }


def test_a_retry_loop_does_not_fill_the_disk(tmp_path: Path) -> None:
    code = f"import socket\nfor _ in range(500):\n    socket.socket().connect_ex(({DENIED!r}, 9))"
    outcome = do(tmp_path, deny(), python(code))
    assert len(lines(outcome)) == 21
    assert outcome.record.rules[0].hits == Hits(refused=500)


def test_a_control_that_only_listens_is_judged(tmp_path: Path) -> None:
    one = rule("c.listen", "never", "never listen on anything", action="listen")
    entry = Entry(refuse=(0,), watch=(0,))
    found = artifact(one, denied=entry, rest=entry, calls=("listen",))
    assert verdict(do(tmp_path, found, command("true"))) == (PASS, None, ExitCode.OK)
    code = "import socket\ns = socket.socket()\ntry:\n    s.listen(1)\nexcept PermissionError:\n    pass"
    assert verdict(do(tmp_path, found, python(code))) == (FAIL, None, ExitCode.NEGATIVE)


# --- how the command ends ---


@pytest.mark.parametrize(
    ("what", "end", "code"),
    [
        (command("sh", "-c", "exit 3"), End("exit", 3), Code.COMMAND_EXIT),
        (command("sh", "-c", "kill -9 $$"), End("signal", 9), Code.COMMAND_SIGNAL),
        (
            command("sh", "-c", "kill -9 $$", expect_exit=None),
            End("signal", 9),
            Code.COMMAND_SIGNAL,
        ),
        (command("sleep", "30", timeout=0.2), End("timeout", 9), Code.COMMAND_TIMEOUT),
        (
            command("sleep", "30", timeout=0.2, expect_exit=None),
            End("timeout", 9),
            Code.COMMAND_TIMEOUT,
        ),
    ],
)
def test_an_unexpected_end_is_no_pass(tmp_path: Path, what: Command, end: End, code: Code) -> None:
    behaviour = do(tmp_path, never(), what)
    assert behaviour.record.command.end == end
    assert verdict(behaviour) == (CAPABILITY, code, ExitCode.CAPABILITY)
    assert verdict(do(tmp_path, deny(), what)) == (PASS, None, ExitCode.NEGATIVE)


@pytest.mark.parametrize("expect", [3, None])
def test_an_expected_end_is_one(tmp_path: Path, expect: int | None) -> None:
    what = command("sh", "-c", "exit 3", expect_exit=expect)
    assert verdict(do(tmp_path, never(), what)) == (PASS, None, ExitCode.OK)


def test_an_attempt_stands_whatever_the_end(tmp_path: Path) -> None:
    outcome = do(tmp_path, never(), python(CONNECT + "raise SystemExit(3)"))
    assert verdict(outcome) == (FAIL, None, ExitCode.NEGATIVE)
    assert outcome.record.command.end == End("exit", 3)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (
            command("no-such-program-anywhere", env={"PATH": "/usr/bin:/bin"}),
            "`no-such-program-anywhere` cannot be executed: ENOENT",
        ),
        (command("/"), "cannot be executed: EACCES"),
        (command("/etc/hostname/x"), "ENOTDIR"),
        (
            command("true", cwd="/no/such/folder"),
            "the folder to start in (`cwd`) cannot be entered: ENOENT",
        ),
    ],
)
def test_a_command_that_cannot_be_executed_never_started(
    tmp_path: Path, what: Command, text: str
) -> None:
    outcome = do(tmp_path, never(), what)
    assert verdict(outcome) == (CAPABILITY, Code.COMMAND_NOT_FOUND, ExitCode.CAPABILITY)
    assert text in outcome.reasons[0]
    assert not outcome.record.command.started
    assert outcome.record.lanes["connect"].tier.word == "none"


def test_a_timeout_ends_the_whole_tree(tmp_path: Path) -> None:
    before = children()
    what = command("sh", "-c", "sleep 60 & (setsid sleep 60 &); sleep 60", timeout=0.3)
    began = time.monotonic()
    outcome = do(tmp_path, deny(), what)
    assert time.monotonic() - began < 2
    assert outcome.record.command.end == End("timeout", 9)
    assert children() == before


def test_a_survivor_is_ended_and_reported(tmp_path: Path) -> None:
    what = command("sh", "-c", "(setsid sleep 60 &); exit 0")
    began = time.monotonic()
    outcome = do(tmp_path, never(), what)
    assert time.monotonic() - began < 1
    assert verdict(outcome) == (CAPABILITY, Code.SURVIVORS, ExitCode.CAPABILITY)
    assert [os.path.basename(one.program) for one in outcome.record.survivors] == ["sleep"]
    assert verdict(do(tmp_path, deny(), what)) == (PASS, None, ExitCode.OK)


def test_a_process_that_ends_just_after_the_command_is_no_survivor(tmp_path: Path) -> None:
    outcome = do(tmp_path, never(), command("sh", "-c", "(sleep 0.05 &); exit 0"))
    assert outcome.record.survivors == ()
    assert verdict(outcome)[0] is PASS


def test_the_run_returns_within_half_a_second_of_its_command(tmp_path: Path) -> None:
    mark = tmp_path / "end"
    what = python(
        f"import time\n(lambda f: f.write(str(time.monotonic())))(open({str(mark)!r}, 'w'))"
    )
    do(tmp_path, never(), what)
    assert time.monotonic() - float(mark.read_text()) < 0.5


# --- what ends a run from outside ---


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_everything_and_leaves_a_complete_record(
    tmp_path: Path, number: int
) -> None:
    timer = threading.Timer(0.4, os.kill, (os.getpid(), number))
    timer.start()
    began = time.monotonic()
    outcome = do(tmp_path, never(), command("sleep", "30"))
    timer.join()
    assert time.monotonic() - began < 2
    assert outcome.record.command.end == End("interrupt", number)
    assert verdict(outcome) == (CAPABILITY, Code.INTERRUPTED, ExitCode.CAPABILITY)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_command_that_ignores_the_interrupt_is_ended_too(tmp_path: Path) -> None:
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    began = time.monotonic()
    outcome = do(tmp_path, deny(), command("sh", "-c", "trap '' TERM INT; sleep 30; sleep 30"))
    timer.join()
    assert time.monotonic() - began < 3
    assert verdict(outcome) == (PASS, None, ExitCode.NEGATIVE)


def test_an_interrupt_before_the_command_keeps_it_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(kernel: Kernel) -> tuple[Capability, ...]:
        os.kill(os.getpid(), signal.SIGTERM)
        return self_test(kernel)

    monkeypatch.setattr("flowproof.run.recorder.self_test", interrupted)
    mark = tmp_path / "mark"
    outcome = do(tmp_path, never(), started(mark))
    assert verdict(outcome) == (CAPABILITY, Code.INTERRUPTED, ExitCode.CAPABILITY)
    assert not mark.exists()


def test_an_interrupt_while_the_record_is_written_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = RunFolder.link_lanes

    def interrupted(folder: RunFolder) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        link(folder)

    monkeypatch.setattr(RunFolder, "link_lanes", interrupted)
    assert verdict(do(tmp_path, never(), command("true"))) == (PASS, None, ExitCode.OK)


def test_a_ctrl_c_on_the_terminal_ends_the_run_with_a_complete_record(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        code = 1
        try:
            outcome = run(
                never(),
                command("sh", "-c", "echo ready; read line; sleep 60"),
                record_root=str(tmp_path),
                proven=True,
            )
            code = int(outcome.exit_code)
        finally:
            os._exit(code)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, b"a line\n")  # the command may read from its terminal
    time.sleep(0.2)
    os.write(terminal, b"\x03")
    status = os.waitpid(pid, 0)[1]
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == ExitCode.CAPABILITY
    (folder,) = run_folders(str(tmp_path))
    stored = verify_record(folder)
    assert stored.problems == ()
    assert stored.record is not None
    assert stored.record.command.end == End("interrupt", signal.SIGINT)
    assert stored.record.supervisor.alive


@pytest.mark.parametrize("make", [never, deny, expect_no])
def test_a_supervisor_that_is_killed_is_never_a_pass(
    tmp_path: Path, make: Callable[[], Artifact]
) -> None:
    before = children()
    what = command("sh", "-c", "(setsid sleep 60 &); kill -9 $PPID; sleep 60")
    began = time.monotonic()
    outcome = do(tmp_path, make(), what, OlderLandlock())
    assert time.monotonic() - began < 3
    assert verdict(outcome) == (CAPABILITY, Code.SUPERVISOR_LOST, ExitCode.CAPABILITY)
    assert not outcome.record.supervisor.alive
    assert outcome.record.lanes["connect"].tier.word == "none"
    assert children() == before


def test_a_violation_before_the_supervisor_was_killed_stands(tmp_path: Path) -> None:
    code = CONNECT + "import os, time\ntime.sleep(0.2)\nos.kill(os.getppid(), 9)\ntime.sleep(60)"
    outcome = do(tmp_path, never(), python(code), OlderLandlock())
    assert verdict(outcome) == (FAIL, None, ExitCode.NEGATIVE)
    assert not outcome.record.supervisor.alive


def test_a_supervisor_that_is_stopped_is_given_up(tmp_path: Path) -> None:
    what = command("sh", "-c", "kill -STOP $PPID; sleep 60", timeout=None)
    began = time.monotonic()
    outcome = do(tmp_path, never(), what, OlderLandlock())
    assert time.monotonic() - began < 6
    assert verdict(outcome) == (CAPABILITY, Code.SUPERVISOR_LOST, ExitCode.CAPABILITY)


def test_a_recorder_that_is_killed_takes_the_tree_with_it_and_leaves_no_pass(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "pid"
    recorder = os.fork()
    if recorder == 0:
        try:
            run(
                never(),
                command("sh", "-c", f"echo $$ > {mark}; sleep 60"),
                record_root=str(tmp_path),
                proven=True,
            )
        finally:
            os._exit(0)
    end = time.monotonic() + 5
    while not (mark.exists() and mark.read_text().strip()):
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(recorder, signal.SIGKILL)
    os.waitpid(recorder, 0)
    while os.path.exists(f"/proc/{mark.read_text().strip()}"):
        assert time.monotonic() < end
        time.sleep(0.01)
    (folder,) = run_folders(str(tmp_path))
    assert [problem.kind for problem in verify_record(folder).problems] == ["torn"]


# --- what stops a run before it starts ---


def started(mark: Path) -> Command:
    return python(MARK.format(path=str(mark)))


FAULTS = [
    ("notification_sizes", EPERM, Code.NOTIFICATION_SIZES),
    ("set_subreaper", EPERM, Code.SUBREAPER),
    ("set_no_new_privs", EPERM, Code.NO_NEW_PRIVS),
    ("shut_in", EPERM, Code.DOMAIN),
    ("install_filter", EPERM, Code.FILTER_INSTALL),
    ("set_dumpable", EPERM, Code.UNDUMPABLE),
    ("children", EACCES, Code.CHILD_PROCESS),
    ("pidfd_open", EMFILE, Code.CHILD_HANDLE),
    ("pidfd_getfd", EPERM, Code.CHILD_DESCRIPTOR),
    ("receive", EPERM, Code.LISTENER_RECEIVE),
    ("read_memory", EPERM, Code.CHILD_MEMORY),
    ("id_valid", EPERM, Code.LISTENER_VALID),
    ("send", EPERM, Code.LISTENER_SEND),
    ("connect", EPERM, Code.PERFORM),
    ("close_range", EPERM, Code.DESCRIPTORS),
    ("kill", EPERM, Code.ENDING),
]


@pytest.mark.parametrize(("call", "errno", "code"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_mechanism_call_that_fails_stops_the_run_before_the_command(
    tmp_path: Path, call: str, errno: int, code: Code
) -> None:
    mark = tmp_path / "mark"
    outcome = do(tmp_path, never(), started(mark), FaultyKernel({call: errno}))
    assert verdict(outcome) == (CAPABILITY, code, ExitCode.CAPABILITY)
    assert not mark.exists()
    assert outcome.record.lanes["connect"].tier.word == "none"
    assert outcome.record.lanes["connect"].file is None
    assert any(not row.ok for row in outcome.record.host.capabilities)


class LateKernel(Kernel):
    """A kernel that begins to refuse one call once the self-test is over, in this process or a child."""

    def __init__(self, call: str, errno: int) -> None:
        super().__init__()
        self._own = os.getpid()
        real = getattr(self, call)

        def refuse(*arguments: object, **options: object) -> object:
            probing = any(frame in _stack() for frame in ("selftest.py",))
            if probing:
                return real(*arguments, **options)
            raise OSError(errno, f"{call}: {os.strerror(errno)}")

        setattr(self, call, refuse)


def _stack() -> set[str]:
    found, frame = set(), sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        found.add(os.path.basename(frame.f_code.co_filename))
    return found


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        ("set_subreaper", {Code.SUBREAPER}),
        ("set_no_new_privs", {Code.NO_NEW_PRIVS}),
        ("shut_in", {Code.DOMAIN}),
        ("seclusion", {Code.DOMAIN}),
        ("install_filter", {Code.FILTER_INSTALL}),
        ("set_dumpable", {Code.UNDUMPABLE}),
        ("children", {Code.CHILD_PROCESS}),
        ("pidfd_open", {Code.CHILD_HANDLE}),
        ("pidfd_getfd", {Code.CHILD_DESCRIPTOR}),
        ("receive", {Code.LISTENER_RECEIVE}),
        ("read_memory", {Code.CHILD_MEMORY}),
        ("id_valid", {Code.LISTENER_VALID}),
        ("send", {Code.LISTENER_SEND}),
        ("close_range", {Code.DESCRIPTORS}),
    ],
)
def test_a_call_that_fails_only_in_the_run_itself_is_never_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, codes: set[Code]
) -> None:
    monkeypatch.setattr("flowproof.run.recorder._HANDSHAKE", 1.0)
    mark = tmp_path / "mark"
    outcome = do(tmp_path, never(), started(mark), LateKernel(call, EPERM))
    assert verdict(outcome)[0::2] == (CAPABILITY, ExitCode.CAPABILITY)
    assert outcome.record.controls[0].code in codes
    assert not mark.exists()


@pytest.mark.parametrize(
    ("symbol", "environ", "code"),
    [
        ("FP_TEST_HOST", None, Code.VARIABLE_UNSET),
        ("FP_TEST_HOST", "", Code.VARIABLE_UNSET),
        ("FP_TEST_HOST", "10.0.0.1, 10.0.0.2", Code.VARIABLE_INVALID),
    ],
)
def test_a_variable_that_cannot_be_bound_stops_the_run_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbol: str, environ: str | None, code: Code
) -> None:
    if environ is None:
        monkeypatch.delenv(symbol, raising=False)
    else:
        monkeypatch.setenv(symbol, environ)
    base = never()
    bound = replace(base, symbols=(Symbol(0, "target", "variable", symbol, (), ()),))
    mark = tmp_path / "mark"
    outcome = do(tmp_path, bound, started(mark))
    assert verdict(outcome) == (CAPABILITY, code, ExitCode.CAPABILITY)
    assert symbol in outcome.reasons[0]
    assert not mark.exists()
    assert "10.0.0.2" not in json.dumps(
        json.loads((Path(str(outcome.folder)) / "record.json").read_bytes())
    )


def test_an_empty_control_is_unasserted_and_its_command_never_starts(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    outcome = do(tmp_path, artifact(denied=Entry(), rest=Entry(), calls=()), started(mark))
    assert verdict(outcome) == (CAPABILITY, Code.UNASSERTED, ExitCode.CAPABILITY)
    assert not mark.exists()


def test_an_artifact_for_another_machine_is_refused(tmp_path: Path) -> None:
    base = never()
    assert base.program is not None
    other = replace(base, target="linux-other", program=replace(base.program, arch="other"))
    assert verdict(do(tmp_path, other, command("true")))[1] is Code.PLATFORM
    windows = replace(base, target="windows", program=None)
    assert verdict(do(tmp_path, windows, command("true")))[1] is Code.PLATFORM


def test_another_platform_says_so_and_exits_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowproof.run.recorder.sys.platform", "darwin")
    outcome = do(tmp_path, never(), command("true"))
    assert verdict(outcome) == (CAPABILITY, Code.PLATFORM, ExitCode.CAPABILITY)


def test_a_lane_that_the_runner_does_not_carry_stops_the_run(tmp_path: Path) -> None:
    outcome = do(tmp_path, replace(never(), lanes=("connect", "execute")), command("true"))
    assert verdict(outcome) == (CAPABILITY, Code.NOT_CARRIED, ExitCode.CAPABILITY)


def test_a_rule_that_the_artifact_does_not_carry_is_no_pass(tmp_path: Path) -> None:
    base = never()
    weak = replace(base, fidelity=(Fidelity("c.never", "over-permits", "exact", "by name"),))
    outcome = do(tmp_path, weak, command("true"))
    assert verdict(outcome) == (CAPABILITY, Code.NOT_CARRIED, ExitCode.CAPABILITY)
    assert outcome.record.fidelity[0].reason == "by name"
    dropped = do(tmp_path, replace(base, fidelity=()), command("true"))
    assert verdict(dropped)[1] is Code.NOT_CARRIED


def test_a_filter_whose_refusals_were_taken_out_is_caught_by_the_canary(tmp_path: Path) -> None:
    base = never()
    assert base.program is not None
    steps = base.program.instructions
    hollow = replace(base, program=replace(base.program, instructions=(replace(steps[-1]),)))
    mark = tmp_path / "mark"
    outcome = do(tmp_path, hollow, started(mark))
    assert verdict(outcome) == (CAPABILITY, Code.CANARY, ExitCode.CAPABILITY)
    assert not mark.exists()


# --- the record itself ---


def test_a_record_that_cannot_be_written_is_an_evidence_error_and_nothing_runs(
    tmp_path: Path,
) -> None:
    (tmp_path / ".flowproof").write_text("in the way")
    mark = tmp_path / "mark"
    outcome = run(never(), started(mark), record_root=str(tmp_path), proven=True)
    assert (outcome.exit_code, outcome.folder) == (ExitCode.EVIDENCE, None)
    told = outcome.record.controls[0].explanation
    assert "`--record`" in told  # running again alone would end the same way
    assert "cannot be written" in outcome.reasons[0]
    assert not mark.exists()


def test_a_record_folder_that_may_not_be_written_in_is_an_evidence_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)  # it is root's, or else it is nobody's to write in

    def work() -> list[object]:
        outcome = run(never(), command("true"), record_root=str(tmp_path), proven=True)
        return [int(outcome.exit_code), outcome.reasons[0]]

    code, reason = as_user(NOBODY, work)
    assert code == ExitCode.EVIDENCE
    assert "permission denied" in reason


def test_a_record_that_the_command_removes_is_an_evidence_error(tmp_path: Path) -> None:
    outcome = run(
        deny(),
        command("rm", "-rf", str(tmp_path / ".flowproof")),
        record_root=str(tmp_path),
        proven=True,
    )
    assert (outcome.exit_code, outcome.folder) == (ExitCode.EVIDENCE, None)


def test_a_record_that_the_command_forges_is_replaced(tmp_path: Path) -> None:
    code = f"import glob, os\nfor path in glob.glob({str(tmp_path)!r} + '/.flowproof/runs/*'):\n    for name in ('record.json', 'connect.jsonl'):\n        os.path.exists(path + '/' + name) and os.unlink(path + '/' + name)\n        open(path + '/' + name, 'w').write('forged')"
    outcome = do(tmp_path, deny(), python(code))
    assert verdict(outcome)[0] is PASS


def test_a_finished_record_holds_no_argument_no_value_and_no_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FP_SECRET", "hunter2-from-outside")
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    tool = home / "work" / "tool"
    tool.symlink_to(PYTHON)
    monkeypatch.setenv("HOME", str(home))
    what = command(
        str(tool),
        "-c",
        CONNECT,
        "secret-argument",
        cwd=str(home / "work"),
        env={"TOKEN": "hunter2-added"},
        prompt="hunter2-prompt",
    )
    outcome = do(tmp_path, never(), what)
    assert outcome.folder is not None
    text = "".join(path.read_text() for path in Path(outcome.folder).iterdir())
    assert not re.search(r"hunter2|secret-argument", text)
    assert str(home) not in text


def test_a_run_that_was_started_is_incomplete_until_it_is_over(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    what = command(
        "sh",
        "-c",
        f"cp {tmp_path}/.flowproof/runs/*/record.json {copy}; ls -A {tmp_path}/.flowproof/runs/*/ | wc -l > {copy}.n",
    )
    do(tmp_path, deny(), what)
    early = json.loads(copy.read_bytes())
    assert early["run"]["complete"] is False
    assert early["exit"]["code"] == ExitCode.EVIDENCE
    RECORD.validate(early)
    assert Path(f"{copy}.n").read_text().strip() == "1"


def test_the_addresses_that_a_name_was_bound_to_are_in_the_record(tmp_path: Path) -> None:
    allow, rest = (
        rule("c.allow", "allow", "allow connect to db.example"),
        rule("c.rest", "never", "never connect to anything else"),
    )
    entry = Entry(otherwise=(1,), watch_otherwise=(1,))
    name = Symbol(0, "target", "name", "db.example", ("tcp",), ((1, 1),))
    found = replace(
        artifact(allow, rest, denied=entry, rest=entry, symbols=(name,)),
        hosts={"db.example": ("10.0.0.7",)},
    )
    outcome = do(tmp_path, found, command("true"))
    assert verdict(outcome) == (PASS, None, ExitCode.OK)
    assert outcome.record.names == {"db.example": ("10.0.0.7",)}


def test_runs_of_a_set_carry_its_id_and_shard(tmp_path: Path) -> None:
    outcome = checked(
        run(
            deny(),
            command("true"),
            record_root=str(tmp_path),
            proven=True,
            run_set="ci-7",
            shard="1/2",
        )
    )
    assert (outcome.record.run.set, outcome.record.run.shard) == ("ci-7", "1/2")


def test_progress_is_told_only_once_the_filter_is_in_force(tmp_path: Path) -> None:
    told: list[tuple[float, int, int]] = []

    def tell(seconds: float, through: int, refused: int) -> None:
        told.append((seconds, through, refused))

    run(deny(), command("true"), record_root=str(tmp_path), proven=True, progress=tell)
    assert told
    assert all(seconds >= 0 for seconds, _, _ in told)
    told.clear()
    run(deny(), command("no-such-program"), record_root=str(tmp_path), proven=True, progress=tell)
    run(
        deny(),
        command("true"),
        record_root=str(tmp_path),
        proven=True,
        progress=tell,
        kernel=FaultyKernel({"send": EPERM}),
    )
    assert told == []


def test_progress_counts_what_was_let_through_and_what_was_refused(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    program = (
        "import socket\n"
        "for host in ('127.0.0.1', '192.0.2.1', '192.0.2.2'):\n"
        "    with socket.socket() as s:\n"
        "        s.connect_ex((host, 9))\n"
    )
    run(
        deny(),
        command(sys.executable, "-c", program),
        record_root=str(tmp_path),
        proven=True,
        progress=lambda _, through, refused: told.append((through, refused)),
    )
    assert told[-1] == (1, 2)


def test_a_run_leaves_no_process_no_descriptor_and_a_dumpable_recorder(tmp_path: Path) -> None:
    do(tmp_path, deny(), command("true"))
    before, files = children(), sorted(os.listdir("/proc/self/fd"))
    for _ in range(2):
        do(tmp_path, deny(), command("true"))
    assert sorted(os.listdir("/proc/self/fd")) == files
    assert children() == before
    assert os.stat("/proc/self/mem").st_uid == os.getuid()


# --- without any privilege ---


def unprivileged(tmp_path: Path, make: Callable[[], Artifact], code: str) -> list[Any]:
    tmp_path.chmod(0o777)
    parent = tmp_path.parent
    while parent != Path("/tmp") and parent != Path("/"):
        if os.stat(parent).st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o055)
        parent = parent.parent

    def work() -> list[Any]:
        outcome = do(tmp_path, make(), python(code))
        control = outcome.record.controls[0]
        faults = [[fault.code.value, fault.count] for fault in outcome.record.faults]
        return [
            control.verdict.value,
            control.code and control.code.value,
            int(outcome.exit_code),
            faults,
        ]

    found: list[Any] = as_user(NOBODY, work)
    return found


@pytest.mark.parametrize(
    ("make", "code", "want"),
    [
        (never, "pass", ["pass", None, 0, []]),
        (never, CONNECT, ["fail", None, 1, []]),
        (deny, CONNECT, ["pass", None, 0, []]),
        (expect_no, "raise SystemExit(3)", ["capability-error", "COMMAND_EXIT", 3, []]),
    ],
)
def test_a_user_without_capabilities_gets_the_same_verdicts(
    tmp_path: Path, make: Callable[[], Artifact], code: str, want: list[object]
) -> None:
    assert unprivileged(tmp_path, make, code) == want


def test_a_process_whose_memory_is_shut_is_a_fault_and_never_a_pass(tmp_path: Path) -> None:
    code = f"import ctypes, socket\ns = socket.socket()\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nassert s.connect_ex(({DENIED!r}, 9)) == 1"
    found = unprivileged(tmp_path, never, code)
    assert found[0] == "capability-error"
    assert found[1] in ("CHILD_MEMORY", "CHILD_DESCRIPTOR")
    assert found[2] == ExitCode.CAPABILITY
    assert found[3]


def test_a_run_inside_a_run_is_busy_and_its_command_never_starts(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    inner = (
        "import sys\nsys.path[:0] = {paths!r}\nfrom runnable import never, python\nfrom flowproof.run.recorder import run\n"
        "o = run(never(), python({code!r}), record_root={root!r}, proven=True)\nprint(o.record.controls[0].code.value, int(o.exit_code))\n"
    ).format(
        paths=[str(Path(__file__).parent), str(Path(__file__).parents[2])],
        code=MARK.format(path=str(mark)),
        root=str(tmp_path / "inner"),
    )
    (tmp_path / "inner").mkdir()
    what = command(PYTHON, "-c", inner, env={"PYTHONDONTWRITEBYTECODE": "1"})
    outcome = do(tmp_path, deny(), what)
    assert outcome.record.command.end == End("exit", 0)
    (folder,) = run_folders(str(tmp_path / "inner"))
    stored = verify_record(folder)
    assert stored.record is not None
    assert stored.record.controls[0].code is Code.LISTENER_BUSY
    assert stored.record.exit.code is ExitCode.CAPABILITY
    assert not mark.exists()


def test_all_calls_of_the_lane_are_trapped_in_these_tests() -> None:
    program = never().program
    assert program is not None
    assert tuple(call.call for call in program.trapped) == CALLS
