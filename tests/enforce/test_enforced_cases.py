"""The cases of the Linux behaviour list that are more than one attempt at a denied address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evidence import CAPABILITY, FAIL, PASS
from missing import missing
from namespace import ROOT, Namespace
from stage import Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

case = pytest.mark.case


def mapping(found: object) -> dict[str, Any]:
    assert isinstance(found, dict), found
    return found


@case("C01")
def test_unspec_datagrams_see_an_error_and_the_dissolve_does_not(stage: Stage) -> None:
    ran = stage.contained(
        stage.flow(Y0, stage.program("unspec.py", "10.99.0.2", "9000", "10.99.0.1"))
    )
    assert ran.report["sendto"] in {"EAFNOSUPPORT", "ECONNREFUSED"}, ran
    assert ran.report["sendmsg"] in {"EAFNOSUPPORT", "ECONNREFUSED"}, ran
    assert (ran.report["connect"], ran.report["dissolve"]) == ("0", "0"), ran
    assert ran.arrivals == [], ran


@case("C03")
def test_mapped_address_is_recorded_as_its_v4_address(stage: Stage) -> None:
    program = stage.program("mapped.py", "9000", "10.99.0.2", "10.99.0.1")
    ran = stage.contained(stage.flow(Y0, program))
    assert ran.report == {"::ffff:10.99.0.2": "ECONNREFUSED", "::ffff:10.99.0.1": "ok"}, ran
    assert len(ran.record.denied("10.99.0.2:9000")) == 1, ran.record.lane("connect")
    assert "::ffff:" not in ran.record.text


@case("C04")
def test_name_is_looked_up_through_the_loopback_stub_and_nothing_is_counted(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("resolving.py", "stub.flow.test")))
    assert ran.report["found"] == ["10.99.0.1", "fd00:99::1"], ran
    assert float(str(ran.report["seconds"])) < 1, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
    assert "127.0.0.53" in ran.record.text, "the stub outside the run is named"


@case("C06")
def test_interfaces_are_listed_over_netlink(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("resolving.py", "stub.flow.test")))
    assert ran.report["interfaces"] == "ok", ran


@case("C05")
def test_sendmmsg_says_how_many_it_sent(stage: Stage) -> None:
    program = stage.program("partial.py", "10.99.0.1", "10.99.0.2", "9000")
    ran = stage.contained(stage.flow(Y0, program))
    assert ran.report["udp"] == {"returned": "1", "lengths": [5, 0]}, ran
    assert ran.report["unix"] == {"returned": "2", "lengths": [3, 5]}, ran


@case("C07")
def test_descriptors_and_connections_pass_between_processes_of_the_run(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("pass_fd.py")))
    assert ran.report == {"send_fds": "take this", "connection": "through a sent connection"}, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C09")
def test_blocking_send_does_not_hold_up_its_reader(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("blocking_send.py")))
    for how in ("send", "sendmsg"):
        seen = mapping(ran.report[how])
        assert seen["status"] == 0, ran
        assert seen["seconds"] < 2, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C09")
def test_blocked_connects_hold_up_nobody_and_end_by_a_signal(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("blocked.py", "10.99.0.1", "9000")))
    assert ran.report["quick"] == ["ok"], ran
    assert float(str(ran.report["slowest"])) < 0.5, ran
    assert ran.report["waiting"] == [True] * 3, ran
    assert ran.report["interrupted"] == "EINTR", ran
    assert 0.25 < float(str(ran.report["seconds"])) < 1, ran
    assert ran.ended - float(str(ran.report["ended"])) < 0.5, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C11")
@pytest.mark.parametrize("call", ["send", "sendmsg"])
def test_interrupted_sends_are_sent_once(stage: Stage, built: dict[str, Path], call: str) -> None:
    ran = stage.contained(stage.flow(Y0, stage.built(built["timer"], call, "10.99.0.1", "9000")))
    (arrival,) = ran.arrivals
    assert arrival.bytes == 2_000_000, ran
    assert ran.report["failed"] == 0, ran
    assert int(str(ran.report["ticks"])) > 100, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C13")
def test_interrupted_connect_completes_once(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("interrupted.py")))
    assert ran.report["connect"] == "EINTR", ran
    assert (ran.report["ready"], ran.report["error"]) == (True, 0), ran
    assert (ran.report["accepted"], ran.report["received"]) == (1, ["once"]), ran
    assert ran.arrivals == [], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C15")
def test_nonblocking_connects_keep_their_semantics(stage: Stage) -> None:
    program = stage.program("nonblocking.py", "9000", "10.99.0.1", "10.99.0.2")
    ran = stage.contained(stage.flow(Y0, program))
    allowed, denied = mapping(ran.report["10.99.0.1"]), mapping(ran.report["10.99.0.2"])
    assert allowed["asyncio"] == "ok", ran
    assert allowed["poll"]["first"] in {"EINPROGRESS", "ok"}, ran
    assert (allowed["poll"]["ready"], allowed["poll"]["error"]) == (True, "ok"), ran
    assert allowed["poll"]["again"] in {"EISCONN", "ok"}, ran
    assert (denied["asyncio"], denied["poll"]["first"]) == ("ECONNREFUSED", "ECONNREFUSED"), ran
    assert denied["poll"]["seconds"] < 0.5, ran


@case("C20")
@case("C18")
def test_other_families_are_refused_and_counted(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("families.py")))
    assert set(mapping(ran.report["refused"]).values()) == {"EPERM"}, ran
    assert set(mapping(ran.report["left"]).values()) == {"ok"}, ran
    assert ran.report["pair"] == "EPERM", ran
    families = {str(event.get("destination")) for event in ran.record.refused}
    assert {"packet", "raw", "vsock", "mptcp", "sctp", "xdp"} <= families, families
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@case("C21")
def test_io_uring_is_refused_and_not_counted(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("uring.py")))
    assert set(ran.report.values()) == {"EPERM"}, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_no_source_route_leads_by_way_of_a_denied_address(stage: Stage) -> None:
    program = stage.program(
        "routed.py", "9000", "10.99.0.1", "fd00:99::1", "10.99.0.2", "fd00:99::2"
    )
    bare = stage.bare(program)
    assert bare.report["segments"] == "ok", bare  # the kernel takes it, of any user
    ran = stage.contained(stage.flow(Y0, program))
    assert set(ran.report.values()) == {"EPERM"}, ran


def test_nothing_for_loopback_leaves_by_an_interface_of_the_program(stage: Stage) -> None:
    program = stage.program("interfaces.py", "9000")
    assert set(stage.bare(program).report.values()) == {"ok"}  # the kernel takes it, of any user
    ran = stage.contained(stage.flow(Y0, program))
    assert set(ran.report.values()) == {"EPERM"}, ran
    assert ran.arrivals == [], ran


@case("C22")
def test_foreign_calls_are_refused_and_counted(stage: Stage, built: dict[str, Path]) -> None:
    if "foreign" not in built:
        missing("x86_64 and `gcc`, to build foreign.c")
    ran = stage.contained(stage.flow(Y0, stage.built(built["foreign"], "10.99.0.2", "9000")))
    assert ran.reached("10.99.0.2") == 0, ran
    assert set(ran.report.values()) == {-1}, ran  # EPERM of every foreign call
    assert [e for e in ran.record.refused if "foreign" in str(e.values())], ran.record.lane(
        "connect"
    )
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@case("C23")
def test_outside_unix_socket_is_refused_and_counted(stage: Stage, namespace: Namespace) -> None:
    path = namespace.outside_socket
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", "unix", path, "-")))
    assert ran.report[f"unix {path} -"] == "ECONNREFUSED", ran
    assert ran.arrivals == [], ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


def asked(stage: Stage, rules: dict[str, str]) -> Ran:
    """Run a program that asks a broker outside for a connection to the denied address."""
    path = str(stage.folder / "broker.sock")
    broker = stage.program("outside.py", "broker", path, "10.99.0.2", "9000", "--")
    return stage.contained(stage.flow(rules, stage.program("ask_broker.py", path)), before=broker)


@case("C23")
def test_broker_outside_is_not_reached(stage: Stage) -> None:
    ran = asked(stage, Y0)
    assert ran.report == {"connect": "ECONNREFUSED", "sent": "not asked"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    (event,) = ran.record.refused
    assert str(event["destination"]).endswith("/broker.sock"), event
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@case("C23")
def test_broker_outside_that_a_rule_allows_is_told_as_a_way_around(stage: Stage) -> None:
    path = stage.folder / "broker.sock"
    ran = asked(stage, {**Y0, "probe.broker": f"allow connect to unix:{path}"})
    assert ran.report == {"connect": "ok", "sent": "ok"}, ran
    assert [(a.to, a.first) for a in ran.arrivals] == [("10.99.0.2:9000", "through a broker")], ran
    (through,) = ran.record.through
    assert (through["protocol"], str(through["destination"])[-12:]) == ("unix", "/broker.sock"), ran
    assert "except through" in ran.stdout + ran.stderr, ran


def test_allowed_socket_of_the_run_itself_is_no_way_around(stage: Stage) -> None:
    path = str(stage.folder / "own.sock")
    code = (
        "import socket; s = socket.socket(socket.AF_UNIX);"
        f"s.bind({path!r}); s.listen(1); socket.socket(socket.AF_UNIX).connect({path!r})"
    )
    rules = {**Y0, "probe.own": f"allow connect to unix:{path}"}
    ran = stage.contained(stage.flow(rules, [stage.product.python, "-c", code]))
    assert ran.record.through == [], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C25")
def test_inherited_connection_is_gone(stage: Stage) -> None:
    words = stage.program("inherited.py", "write", "7")
    path = stage.flow(Y0, words)
    before = stage.program("inherited.py", "open", "7", "10.99.0.2", "9000")
    ran = stage.contained(path, before=before)
    assert ran.report == {"write": "EBADF"}, ran
    assert [a.bytes for a in ran.arrivals] == [0], ran  # the connection of the wrapper, and no byte
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C26")
def test_listens_off_loopback_are_refused_and_named(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("listening.py")))
    loopback = {"loopback", "loopback6"}
    assert {k: v for k, v in ran.report.items() if k in loopback} == dict.fromkeys(
        loopback, "ok"
    ), ran
    assert {v for k, v in ran.report.items() if k not in loopback} == {"EPERM"}, ran
    assert {str(e.get("operation")) for e in ran.record.refused} == {"listen"}, ran.record.refused
    assert len(ran.record.refused) == 4, ran.record.refused
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C26")
def test_listen_that_a_rule_asserts_over_fails(stage: Stage) -> None:
    rules = {"probe.no-inbound": "never listen except loopback"}
    ran = stage.contained(stage.flow(rules, stage.program("listening.py")))
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
    assert ran.report["loopback"] == "ok", ran
    assert ran.report["unbound"] == "EPERM", ran


@case("C27")
def test_survivor_is_ended_and_reported(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("survivor.py", "10.99.0.1", "9000")))
    assert ran.report.get("left") == "a daemon", ran
    assert ran.ended - float(str(ran.report["ended"])) < 0.5, ran
    later = stage.bare(["sleep", "2.5"])  # the daemon would have sent by now
    assert later.reached("10.99.0.1") == 0, later
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran
    assert ran.record.mentions("SURVIVORS"), ran.record.text


@case("C30")
def test_unreadable_program_is_a_fault_and_never_green(plain_stage: Stage) -> None:
    program = plain_stage.program("nondumpable.py", "10.99.0.2", "9000")
    ran = plain_stage.contained(plain_stage.flow(Y0, program))
    assert ran.report == {"prctl": 0, "connect": "EPERM"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    assert ran.record.lane("faults"), ran
    assert ran.record.mentions("CHILD_MEMORY") or ran.record.mentions("CHILD_DESCRIPTOR"), ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


@case("C30")
def test_unreadable_program_is_readable_with_capabilities(root_stage: Stage) -> None:
    assert root_stage.identity == ROOT
    program = root_stage.program("nondumpable.py", "10.99.0.2", "9000")
    ran = root_stage.contained(root_stage.flow(Y0, program))
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
    assert ran.record.denied("10.99.0.2:9000"), ran


@case("C34")
def test_empty_allow_list_leaves_loopback_and_nothing_else(stage: Stage) -> None:
    acts = (
        ("tcp", "10.99.0.2", "9000"),
        ("udp", "10.99.0.2", "9000"),
        ("tcp", "fd00:99::2", "9000"),
        ("udp", "fd00:99::2", "9000"),
        ("tcp", "10.99.0.1", "9000"),
        ("tcp", "127.0.0.1", "9000"),
        ("udp", "::1", "9000"),
    )
    words = stage.program("reach.py", *(word for act in acts for word in act))
    ran = stage.contained(stage.flow({}, words, agent={"allow_egress": []}))
    assert ran.reached("10.99.0.2", "fd00:99::2", "10.99.0.1") == 0, ran
    assert ran.reached("127.0.0.1") == 1, ran
    assert ran.reached("::1") == 1, ran
    assert {v for k, v in ran.report.items() if "99" in k} == {"ECONNREFUSED"}, ran
    assert len(ran.record.denied("[fd00:99::2]:9000")) == 2, ran.record.lane("connect")
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C38")
def test_udp_connect_without_a_send_is_a_probe(stage: Stage) -> None:
    words = stage.program("reach.py", "udp-probe", "10.99.0.2", "9000")
    ran = stage.contained(stage.flow(Y0, words))
    (event,) = ran.record.denied("10.99.0.2:9000")
    assert (event.get("operation"), event.get("protocol")) == ("probe", "udp"), event
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@case("C39")
def test_unspecified_address_is_loopback(stage: Stage) -> None:
    words = stage.program("reach.py", "tcp", "0.0.0.0", "9000", "tcp", "::", "9000")
    ran = stage.contained(stage.flow(Y0, words))
    assert (ran.reached("127.0.0.1"), ran.reached("::1")) == (1, 1), ran
    assert ran.record.refused == [], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
