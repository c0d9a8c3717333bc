"""`flowproof doctor`: what is there, what is missing, what that costs and how to get it."""

from __future__ import annotations

import json
import os
import sys
from errno import EINVAL, ENOENT, EPERM
from typing import Any, NoReturn

import pytest

from flowproof.cli.main import main
from flowproof.record.codes import ADVICE, Code
from flowproof.run.extras import extras
from flowproof.run.kernel import Kernel, WaitKillableError
from flowproof.run.steps import STEPS

pytestmark = pytest.mark.enforce

CONNECT = "connect (connections, datagrams and listening sockets): "
UNPRIVILEGED = ["process.shut-memory"] if os.geteuid() else []
"""What a user without CAP_SYS_PTRACE never has."""
ALL = "no command is started, and every verdict is capability-error"


def refuse(monkeypatch: pytest.MonkeyPatch, call: str, errno: int = EPERM) -> None:
    def refused(*_arguments: object, **_options: object) -> NoReturn:
        raise OSError(errno, f"{call}: {os.strerror(errno)}")

    monkeypatch.setattr(Kernel, call, refused)


def printed(capsys: pytest.CaptureFixture[str], code: int) -> list[str]:
    assert main(["doctor"]) == code
    return capsys.readouterr().out.splitlines()


def data(capsys: pytest.CaptureFixture[str], code: int) -> Any:  # noqa: ANN401  what JSON holds
    assert main(["doctor", "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_what_holds_is_called_enforced(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, 0)
    assert CONNECT + "enforced" in lines
    found = [line.split() for line in lines if line.startswith("  ok")]
    assert [words[1] for words in found][: len(STEPS)] == [step for step, _code, _shows in STEPS]
    absent = [line.split()[1] for line in lines if line.startswith("  absent")]
    assert absent == UNPRIVILEGED
    assert sum("cost:" in line for line in lines) == len(absent)


def test_what_holds_has_no_cost_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, 0)
    assert found["lanes"]["connect"] == "enforced"
    assert [row["id"] for row in found["capabilities"]] == [step for step, _code, _ in STEPS]
    assert all(row["ok"] and row["detail"] and row["cost"] is None for row in found["capabilities"])
    assert [row["id"] for row in found["extras"] if not row["ok"]] == UNPRIVILEGED
    assert all(
        row["ok"] == (row["cost"] is None) == (row["help"] is None) for row in found["extras"]
    )
    assert found["exit"]["code"] == 0


MISSING = [
    ("notification_sizes", "seccomp.sizes", Code.NOTIFICATION_SIZES),
    ("set_subreaper", "process.subreaper", Code.SUBREAPER),
    ("set_no_new_privs", "process.no-new-privs", Code.NO_NEW_PRIVS),
    ("shut_in", "process.domain", Code.DOMAIN),
    ("install_filter", "seccomp.install", Code.FILTER_INSTALL),
    ("set_dumpable", "process.dumpable", Code.UNDUMPABLE),
    ("children", "process.children", Code.CHILD_PROCESS),
    ("pidfd_open", "pidfd.open", Code.CHILD_HANDLE),
    ("pidfd_getfd", "pidfd.listener", Code.CHILD_DESCRIPTOR),
    ("receive", "seccomp.receive", Code.LISTENER_RECEIVE),
    ("read_memory", "process.memory", Code.CHILD_MEMORY),
    ("id_valid", "seccomp.valid", Code.LISTENER_VALID),
    ("send", "seccomp.refuse", Code.LISTENER_SEND),
    ("connect", "seccomp.perform", Code.PERFORM),
    ("close_range", "descriptors.close", Code.DESCRIPTORS),
    ("kill", "process.end", Code.ENDING),
]


@pytest.mark.parametrize(("call", "step", "code"), MISSING, ids=[row[0] for row in MISSING])
def test_a_missing_step_says_what_it_costs_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: str,
    step: str,
    code: Code,
) -> None:
    refuse(monkeypatch, call)
    lines = printed(capsys, 3)
    assert f"{CONNECT}none ({code.value})" in lines
    (at,) = [at for at, line in enumerate(lines) if line.startswith("  not ok") and step in line]
    assert f"{code.value}: {call}" in lines[at] or call in ("children", "close_range")
    assert lines[at + 1].strip() == f"cost: {ALL}"
    assert lines[at + 2].strip() == f"help: {ADVICE[code]}"
    found = data(capsys, 3)
    (row,) = [row for row in found["capabilities"] if row["id"] == step]
    assert (row["ok"], row["code"], row["cost"], row["help"]) == (
        False,
        code.value,
        ALL,
        ADVICE[code],
    )
    assert found["exit"]["because"] == [f"{code.value}: {row['detail']}"]


def test_each_step_that_stops_a_run_is_staged_above() -> None:
    staged = {step for _call, step, _code in MISSING}
    known = {step for step, _code, _shows in STEPS}
    # Not by one call: the platform, the two that only lower the tier, and a second pidfd_getfd.
    beside = {"platform", "reach.processes", "reach.signals", "pidfd.descriptor"}
    assert staged | beside == known


def test_steps_behind_a_missing_one_are_not_blamed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse(monkeypatch, "pidfd_open")
    lines = printed(capsys, 3)
    assert sum("cost:" in line for line in lines if "Linux 6.9" not in line) >= 1
    behind = [line for line in lines if line.endswith("not reached")]
    assert len(behind) == len(STEPS) - [step for step, _, _ in STEPS].index("pidfd.open") - 1
    assert not any(code.value in line for line in behind for code in Code)


def test_an_old_kernel_is_told_to_be_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def old(*_arguments: object, **_options: object) -> NoReturn:
        raise WaitKillableError(EINVAL, "seccomp: WAIT_KILLABLE_RECV is not known")

    monkeypatch.setattr(Kernel, "install_filter", old)
    text = "\n".join(printed(capsys, 3))
    assert "WAIT_KILLABLE: " in text
    assert "help: use Linux 5.19 or newer" in text


def test_another_platform_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    lines = printed(capsys, 3)
    assert f"{CONNECT}none (PLATFORM)" in lines
    assert not any(line.startswith("besides") for line in lines)


def test_nothing_is_enforced_where_other_processes_are_within_reach(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Kernel, "seclusion", lambda _kernel: None)
    lines = printed(capsys, 3)
    assert f"{CONNECT}none (NOT_SECLUDED)" in lines
    text = "\n".join(lines)
    assert "the command could use ptrace, process_vm_readv, pidfd_getfd" in text
    assert "cost: a command runs, and no verdict but a fail is given" in text
    assert f"help: {ADVICE[Code.NOT_SECLUDED]}" in text


def test_a_lane_is_only_observed_where_the_supervisor_can_be_signalled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Kernel().landlock()
    monkeypatch.setattr(Kernel, "landlock", lambda _kernel: min(real, 5))
    lines = printed(capsys, 3)
    assert f"{CONNECT}observed (NOT_SHIELDED)" in lines
    text = "\n".join(lines)
    assert "cost: a command runs, `deny` and `never` are capability-error" in text
    assert "help: run on Linux 6.12 or newer" in text


def test_yama_is_named_where_it_may_be_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Kernel, "ptrace_scope", lambda _kernel: 2)
    refuse(monkeypatch, "pidfd_getfd")
    text = "\n".join(printed(capsys, 3))
    assert "CHILD_DESCRIPTOR: pidfd_getfd: EPERM (Yama's ptrace_scope is 2)" in text
    assert "set Yama's ptrace_scope to 0 or 1" in text


EXTRAS = [
    ("set_dumpable", EPERM, "process.shut-memory"),
    ("write_memory", EPERM, "process.write"),
    ("tgkill", EPERM, "thread.interrupt"),
    ("unix_sockets", ENOENT, "unix.sockets"),
    ("raise_descriptor_limit", EPERM, "descriptors.limit"),
    ("thread_handles", EPERM, "pidfd.thread"),
]


@pytest.mark.parametrize(("call", "errno", "identity"), EXTRAS, ids=[row[0] for row in EXTRAS])
def test_what_is_missing_besides_says_the_same_and_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: str,
    errno: int,
    identity: str,
) -> None:
    refuse(monkeypatch, call, errno)
    code = 3 if call == "set_dumpable" else 0  # that one is a step as well
    lines = printed(capsys, code)
    (at,) = [at for at, line in enumerate(lines) if line.startswith(f"  absent  {identity}")]
    assert lines[at + 1].strip().startswith("cost: ")
    assert lines[at + 2].strip().startswith("help: ")
    (row,) = [row for row in data(capsys, code)["extras"] if row["id"] == identity]
    assert not row["ok"]
    assert row["cost"]
    assert row["help"]


def test_a_kernel_without_lists_of_children_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: "children" not in path and real(path))
    (row,) = [row for row in extras(Kernel()) if row.id == "process.child-list"]
    assert (row.ok, row.detail) == (False, "this kernel has none")


def test_a_thread_without_a_handle_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "thread_handles", lambda _kernel: False)
    (row,) = [row for row in extras(Kernel()) if row.id == "pidfd.thread"]
    assert not row.ok


def test_the_doctor_leaves_no_process_and_no_descriptor(capsys: pytest.CaptureFixture[str]) -> None:
    before = (sorted(os.listdir("/proc/self/fd")), Kernel().children(os.getpid()))
    printed(capsys, 0)
    assert (sorted(os.listdir("/proc/self/fd")), Kernel().children(os.getpid())) == before
