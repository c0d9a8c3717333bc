"""The harness itself, uncontained: every probe reaches the servers, and the arrival log sees it.

It is the bare side of every enforcement test: a probe that reaches nothing bare would prove nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from missing import missing
from namespace import PLAIN, Namespace
from scenarios import SCENARIOS, Scenario
from stage import Stage

pytestmark = [pytest.mark.namespace]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
def test_bare_scenario_reaches_the_denied_address(
    scenario: Scenario, stage: Stage, built: dict[str, Path]
) -> None:
    ran = stage.bare(scenario.command(stage, built))
    assert ran.code == 0, ran
    for address in (*scenario.reaches, *scenario.denied):
        assert ran.reached(address), ran


def test_arrival_log_keeps_protocol_address_and_bytes(plain_stage: Stage) -> None:
    ran = plain_stage.bare(
        plain_stage.program("reach.py", "tcp", "fd00:99::2", "9001", "udp", "10.99.0.1", "9000")
    )
    seen = {(a.protocol, a.to): (a.times, a.bytes, a.first) for a in ran.arrivals}
    assert seen == {
        ("tcp", "[fd00:99::2]:9001"): (1, 9, "tcp probe"),
        ("udp", "10.99.0.1:9000"): (1, 9, "udp probe"),
    }


def test_arrival_log_is_empty_when_nothing_was_sent(plain_stage: Stage) -> None:
    assert plain_stage.bare(["true"]).arrivals == []


def test_plain_identity_has_no_capability(plain_stage: Stage) -> None:
    code = "print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapBnd'))])"
    ran = plain_stage.bare([plain_stage.product.python, "-c", code])
    assert ran.stdout.strip() == str(["0" * 16] * 2), ran


def test_namespace_has_no_link_but_its_loopback(plain_stage: Stage) -> None:
    code = "import socket; print(socket.if_nameindex())"
    ran = plain_stage.bare([plain_stage.product.python, "-c", code])
    names = ran.stdout
    assert "'lo'" in names, ran
    assert "eth" not in names, ran


def test_names_of_the_bound_hosts_file_reach_both_addresses(stage: Stage) -> None:
    ran = stage.bare(stage.program("reach.py", "tcp", "allowed.flow.test", "9000"))
    assert ran.reached("10.99.0.1") == 1, ran
    assert ran.reached("fd00:99::1") == 1, ran


def test_name_server_answers_with_both_families(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("resolving.py", "stub.flow.test"))
    assert ran.report["found"] == ["10.99.0.1", "fd00:99::1"], ran
    assert ran.reached("127.0.0.53") >= 2, ran


def test_outside_socket_hears_a_bare_program(stage: Stage, namespace: Namespace) -> None:
    ran = stage.bare(stage.program("reach.py", "unix", namespace.outside_socket, "-"))
    assert [(a.protocol, a.times) for a in ran.arrivals] == [("unix", 1)], ran


def test_descriptors_pass_bare(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("pass_fd.py"))
    assert ran.report == {"send_fds": "take this", "connection": "through a sent connection"}, ran


def test_blocking_send_completes_bare(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("blocking_send.py"))
    assert set(ran.report) == {"send", "sendmsg"}, ran


def test_connects_block_bare_and_end_by_a_signal(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("blocked.py", "10.99.0.1", "9000"))
    assert (ran.report["quick"], ran.report["waiting"]) == (["ok"], [True] * 3), ran
    assert ran.report["interrupted"] == "EINTR", ran


@pytest.mark.parametrize("call", ["send", "sendmsg"])
def test_interrupted_sends_arrive_bare(
    plain_stage: Stage, built: dict[str, Path], call: str
) -> None:
    ran = plain_stage.bare(plain_stage.built(built["timer"], call, "10.99.0.1", "9000"))
    assert ran.arrivals[0].bytes == 2_000_000, ran
    assert int(str(ran.report["ticks"])) > 20, ran


def test_interrupted_connect_completes_once_bare(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("interrupted.py"))
    assert (ran.report["connect"], ran.report["ready"], ran.report["accepted"]) == (
        "EINTR",
        True,
        1,
    ), ran


def test_processes_outside_act_bare(plain_stage: Stage) -> None:
    path = str(plain_stage.folder / "broker.sock")
    before = plain_stage.program("outside.py", "broker", path, "10.99.0.2", "9000", "--")
    ran = plain_stage.bare([*before, *plain_stage.program("ask_broker.py", path)])
    assert ran.report == {"connect": "ok", "sent": "ok"}, ran
    assert [(a.to, a.first) for a in ran.arrivals] == [("10.99.0.2:9000", "through a broker")], ran


def test_supervisor_and_record_are_reached_where_nothing_keeps_a_program_off(
    root_stage: Stage,
) -> None:
    """The bare side of C29: between plain processes each attempt succeeds (but for being stopped or ended)."""
    code = "import os, subprocess, sys;sys.exit(subprocess.call(sys.argv[1:], preexec_fn=None))"
    runs = root_stage.folder / "runs"
    runs.mkdir()
    (runs / "record.json").write_text("{}", encoding="utf-8")
    program = root_stage.program("tamper.py", "--without-kill", str(runs))
    python = root_stage.product.python
    ran = root_stage.bare([python, "-c", code, python, "-c", code, *program])
    supervisor = ran.report["supervisor"]
    assert isinstance(supervisor, dict)
    assert supervisor.pop("getfd") == "EBADF", (
        ran
    )  # past its last descriptor: the others were taken
    assert supervisor.pop("open") in {"ok", "ENXIO", "ENODEV"}, (
        ran
    )  # as far as files can be reopened
    assert supervisor.pop("writev") == "EFAULT", ran  # may be written; the address is another's
    assert set(supervisor.values()) == {"ok"}, ran
    assert ran.report["files"] == {"record.json": "written"}, ran


def test_signal_by_way_of_a_file_ends_a_process_bare(plain_stage: Stage) -> None:
    code = (
        f"import os, sys, time; sys.path.insert(0, {str(plain_stage.programs)!r});"
        "from tamper import signal_by_file;"
        "pid = os.fork() or time.sleep(20); signal_by_file(pid); print(os.waitpid(pid, 0)[1])"
    )
    ran = plain_stage.bare([plain_stage.product.python, "-c", code])
    assert ran.stdout.split() == ["9"], ran


def test_listens_succeed_bare(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("listening.py"))
    assert set(ran.report.values()) == {"ok"}, ran


def test_undumpable_program_reaches_bare(plain_stage: Stage) -> None:
    ran = plain_stage.bare(plain_stage.program("nondumpable.py", "10.99.0.2", "9000"))
    assert ran.report == {"prctl": 0, "connect": "ok"}, ran
    assert ran.reached("10.99.0.2") == 1, ran


def test_daemon_outlives_its_program_bare(plain_stage: Stage) -> None:
    program = plain_stage.program("survivor.py", "10.99.0.2", "9000")
    ran = plain_stage.bare(["sh", "-c", '"$@"; sleep 3', "sh", *program])
    assert ran.report.get("left") or "udp 10.99.0.2 9000" in ran.report, ran
    assert ran.reached("10.99.0.2") == 1, ran


def test_packet_sockets_open_for_root_bare(root_stage: Stage) -> None:
    ran = root_stage.bare(root_stage.program("families.py"))
    refused = ran.report["refused"]
    assert isinstance(refused, dict)
    assert {name: refused[name] for name in ("packet", "sock-packet", "raw", "raw6")} == {
        "packet": "ok",
        "sock-packet": "ok",
        "raw": "ok",
        "raw6": "ok",
    }, ran
    assert set(ran.report["left"].values()) == {"ok"}, ran  # type: ignore[attr-defined]  # a mapping of JSON


def test_foreign_calls_reach_bare(stage: Stage, built: dict[str, Path]) -> None:
    if "foreign" not in built:
        missing("x86_64 and `gcc`, to build foreign.c")
    ran = stage.bare(stage.built(built["foreign"], "10.99.0.2", "9000"))
    if ran.report.get("sendto") != 7:
        missing("a kernel that takes 32-bit calls (IA32 emulation)")
    assert ran.reached("10.99.0.2") == 1, ran


def test_outer_filter_refuses_its_call_and_no_other(plain_stage: Stage) -> None:
    getppid = {"x86_64": 110, "aarch64": 173}[__import__("os").uname().machine]
    code = (
        "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.getppid(), l.getpid() > 0)"
    )
    refused = [plain_stage.product.python, "-c", code]
    ran = plain_stage.bare(plain_stage.program("outer.py", str(getppid), *refused))
    assert ran.stdout.split() == ["-1", "True"], ran


def test_bare_identity_of_a_stage_is_the_one_asked_for(stage: Stage) -> None:
    ran = stage.bare(["sh", "-c", "grep CapEff /proc/self/status"])
    empty = ran.stdout.split()[-1] == "0" * 16
    assert empty == (stage.identity == PLAIN), ran
