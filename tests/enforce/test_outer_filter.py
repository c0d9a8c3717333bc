"""An outer filter that refuses one mechanism call: the tier changes, and nothing is green (C32).

Each refusal ends in capability-error with a code of its own and a sentence that says what to change, for a
plain user and for root alike; `doctor` says the same under the same filter.
"""

from __future__ import annotations

import json

import pytest
from evidence import CAPABILITY, PASS
from outer_filters import DOCKER, DOCKER_WITH_PTRACE, MECHANISM, YAMA, calls
from stage import Y0, Ran, Stage

from flowproof.record.codes import ADVICE, Code

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

REACH = ("reach.py", "tcp", "10.99.0.1", "9000")


def said(ran: Ran, code: Code) -> None:
    """Assert that a run says what is missing and what to change."""
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions(code.value), ran.record.text
    assert json.dumps(ADVICE[code])[1:-1] in ran.stdout, ran


@pytest.mark.case("C32")
@pytest.mark.parametrize("call", MECHANISM)
def test_refused_mechanism_call_stops_the_run_before_its_command(stage: Stage, call: str) -> None:
    words, code = MECHANISM[call]
    path = stage.flow(Y0, stage.program(*REACH))
    ran = stage.contained(path, before=stage.program("outer.py", words))
    assert ran.report == {}, f"the command started: {ran}"
    assert ran.arrivals == [], ran
    said(ran, code)


@pytest.mark.parametrize("call", MECHANISM)
def test_doctor_names_the_refused_call_its_cost_and_the_way_out(
    plain_stage: Stage, call: str
) -> None:
    words, code = MECHANISM[call]
    doctor = plain_stage.product.flowproof("doctor", "--format", "json")
    ran = plain_stage.bare([*plain_stage.program("outer.py", words), *doctor])
    found = json.loads(ran.stdout)
    assert (ran.code, found["lanes"]["connect"]) == (3, f"none ({code.value})"), ran
    (row,) = [row for row in found["capabilities"] if row["cost"]]
    assert (row["ok"], row["code"], row["help"]) == (False, code.value, ADVICE[code]), row
    assert found["exit"]["because"] == [f"{code.value}: {row['detail']}"], found["exit"]


@pytest.mark.parametrize(
    ("words", "identity"),
    [
        (calls("process_vm_writev"), "process.write"),
        (calls("tgkill"), "thread.interrupt"),
        (calls("socket:0:16"), "unix.sockets"),
        (calls("prlimit64"), "descriptors.limit"),
    ],
)
def test_doctor_names_what_only_some_runs_need(
    root_stage: Stage, words: str, identity: str
) -> None:
    doctor = root_stage.product.flowproof("doctor", "--format", "json")
    ran = root_stage.bare([*root_stage.program("outer.py", words), *doctor])
    found = json.loads(ran.stdout)
    assert (ran.code, found["lanes"]["connect"]) == (0, "enforced"), ran
    (row,) = [row for row in found["extras"] if not row["ok"]]
    assert row["id"] == identity, row
    assert "EPERM" in row["detail"], row
    assert row["cost"], row
    assert row["help"], row


def test_doctor_tells_a_plain_user_of_programs_that_shut_their_memory(plain_stage: Stage) -> None:
    doctor = plain_stage.product.flowproof("doctor", "--format", "json")
    ran = plain_stage.bare(doctor)
    (row,) = [row for row in json.loads(ran.stdout)["extras"] if not row["ok"]]
    assert (ran.code, row["id"]) == (0, "process.shut-memory"), ran
    assert "CAP_SYS_PTRACE" in row["help"], row


def test_thread_that_cannot_be_started_stops_the_run_before_its_command(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program(*REACH))
    ran = stage.contained(path, before=stage.program("outer.py", calls("clone3")))
    assert ran.report == {}, f"the command started: {ran}"
    said(ran, Code.THREADS)


def test_refused_listen_is_no_evidence_for_a_rule_about_it(stage: Stage) -> None:
    rules = {"probe.no-inbound": "deny listen except loopback"}
    path = stage.flow(rules, stage.program(*REACH))
    ran = stage.contained(path, before=stage.program("outer.py", calls("listen")))
    assert ran.report == {}, f"the command started: {ran}"
    said(ran, Code.CANARY)


INSIDE: dict[str, tuple[str, tuple[str, ...], str, Code]] = {
    "process_vm_writev": (
        calls("process_vm_writev"),
        ("partial.py", "10.99.0.1", "10.99.0.2", "9000"),
        "sendmmsg",
        Code.CHILD_RESULT,
    ),
    "tgkill": (
        calls("tgkill"),
        ("blocked.py", "10.99.0.1", "9000"),
        "connect",
        Code.INTERRUPTION,
    ),
    "getsockopt": (
        calls("getsockopt:1:1"),
        (*REACH, "unix", "{folder}/own.sock", "-"),
        "connect",
        Code.PERFORM,
    ),
}
"""What only some programs need → the filter, such a program, the call at fault, and its code."""


@pytest.mark.parametrize("call", INSIDE)
def test_refused_call_that_only_the_run_meets_is_a_fault(stage: Stage, call: str) -> None:
    words, program, at, code = INSIDE[call]
    command = stage.program(*(word.format(folder=stage.folder) for word in program))
    ran = stage.contained(stage.flow(Y0, command), before=stage.program("outer.py", words))
    faults = [(fault["call"], fault["code"]) for fault in ran.record.lane("faults")]
    assert (at, code.value) in faults, (faults, ran)
    assert ran.reached("10.99.0.2") == 0, ran
    said(ran, code)


def test_refused_look_at_unix_sockets_is_a_fault(stage: Stage) -> None:
    """Netlink is how the runner tells its own sockets from those outside."""
    path = str(stage.folder / "own.sock")
    code = (
        "import socket; s = socket.socket(socket.AF_UNIX);"
        f"s.bind({path!r}); s.listen(1); c = socket.socket(socket.AF_UNIX);"
        f"print(c.connect_ex({path!r}), file=__import__('sys').stderr)"
    )
    command = [stage.product.python, "-c", code]
    free = stage.contained(stage.flow(Y0, command))
    assert (free.record.verdict, free.code) == (PASS, 0), free
    (stage.folder / "own.sock").unlink()
    netlink = calls("socket:0:16")
    ran = stage.contained(stage.flow(Y0, command), before=stage.program("outer.py", netlink))
    assert ran.record.lane("faults"), ran
    said(ran, Code.SOCKET_LIST)


@pytest.mark.root
def test_refused_change_of_identity_is_a_fault(root_stage: Stage) -> None:
    """As root a unix socket is reached with the caller's own rights, which takes a setresuid."""
    path = str(root_stage.folder / "outside.sock")
    rules = {**Y0, "probe.broker": f"allow connect to unix:{path}"}
    code = (
        "import os, socket; os.setgroups([]); os.setgid(65534); os.setuid(65534);"
        f"print(socket.socket(socket.AF_UNIX).connect_ex({path!r}), file=__import__('sys').stderr)"
    )
    command = [root_stage.product.python, "-c", code]
    broker = root_stage.program("outside.py", "broker", path, "10.99.0.1", "9000", "--")
    outer = root_stage.program("outer.py", calls("setresuid"))
    ran = root_stage.contained(root_stage.flow(rules, command), before=[*broker, *outer])
    assert ran.record.lane("faults"), ran
    said(ran, Code.IDENTITY)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(calls("acct"), id="a call of nobody's"),
        pytest.param(calls("ptrace"), id="ptrace, which only the self-test tries"),
        pytest.param(calls("ioctl:1:0x40082104"), id="a favour: waking up on the same processor"),
        pytest.param(DOCKER_WITH_PTRACE, id="Docker's profile with SYS_PTRACE"),
    ],
)
def test_outer_filter_that_refuses_nothing_of_the_mechanism_changes_nothing(
    stage: Stage, words: str
) -> None:
    path = stage.flow(Y0, stage.program(*REACH))
    ran = stage.contained(path, before=stage.program("outer.py", words))
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_docker_without_ptrace_is_told_to_add_the_capability(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program(*REACH))
    ran = stage.contained(path, before=stage.program("outer.py", DOCKER))
    assert "CAP_SYS_PTRACE" in ran.stdout, ran


def test_yama_is_told_to_be_set_lower(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program(*REACH))
    ran = stage.contained(path, before=stage.program("outer.py", YAMA))
    assert "ptrace_scope" in ran.stdout, ran
