"""Public bug reports of other tools that concern a run, each tried for real: what arrived, the verdict, the exit.

Cited as repository#number; the rows of one test each are compared with the list in tests/reports.
"""

from __future__ import annotations

import json
import os

import pytest
from disarming import disarmed
from evidence import CAPABILITY, FAIL, PASS
from outer_filters import MECHANISM, calls
from stage import CONTROL, NEVER_ELSE, Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

ALLOWED = ("tcp", "10.99.0.1", "9000")
DENIED = ("tcp", "10.99.0.2", "9000")


def verdict_and_exit(ran: Ran) -> tuple[str, int]:
    return ran.record.verdict, ran.code


def tier(ran: Ran) -> object:
    lanes = ran.record.data["lanes"]
    assert isinstance(lanes, dict)
    return lanes["connect"]["tier"]


def without(stage: Stage, call: str) -> list[str]:
    """Return the words that put a run inside a filter that refuses *call*."""
    words, _code = MECHANISM[call]
    return stage.program("outer.py", words)


# --- supervisors by user notification


def test_suns_01_sendmsg_is_trapped_and_no_part_of_the_handoff(stage: Stage) -> None:
    """containers/crun#1002."""
    ran = stage.contained(stage.flow(Y0, stage.program("pass_fd.py")))
    assert verdict_and_exit(ran) == (PASS, 0), ran  # its descriptors went by sendmsg


def test_suns_03_an_interrupted_target_is_no_fault(stage: Stage) -> None:
    """containers/crun#526."""
    ran = stage.contained(stage.flow(Y0, stage.program("storm.py", *ALLOWED[1:], "400", "0.001")))
    assert ran.report["others"] == [], ran
    assert ran.report["ok"] == ran.reached("10.99.0.1") == 400, ran
    assert isinstance(ran.report["signals"], int)
    assert ran.report["signals"] > 20, "too few signals to show anything"
    assert ran.record.data["faults"] == [], ran.record.text
    assert verdict_and_exit(ran) == (PASS, 0), ran


def test_suns_05_a_descriptor_that_cannot_be_had_is_refused_and_a_fault(
    plain_stage: Stage,
) -> None:
    """multikernel/sandlock#80."""
    program = plain_stage.program("nondumpable.py", *ALLOWED[1:])
    ran = plain_stage.contained(plain_stage.flow(Y0, program))
    assert ran.report["connect"] == "EPERM", ran
    assert ran.reached("10.99.0.1") == 0, "it went on unmediated"
    assert ran.record.data["faults"], ran.record.text
    assert verdict_and_exit(ran) == (CAPABILITY, 3), ran


def test_suns_07_both_words_of_a_pointer_and_each_message_of_a_batch_are_judged(
    stage: Stage,
) -> None:
    """nolabs-ai/nono#1096."""
    ran = stage.contained(stage.flow(Y0, stage.program("aligned.py", "10.99.0.1", *DENIED[1:])))
    assert ran.report == {"denied": "ECONNREFUSED", "allowed": "7", "batch": "1"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    assert ran.reached("10.99.0.1", protocol="udp") == 2, ran
    assert verdict_and_exit(ran) == (FAIL, 1), ran
    assert len(ran.record.denied("10.99.0.2:9000")) == 2, ran.record.text


def test_suns_09_fast_open_is_a_connect(stage: Stage) -> None:
    """landlock-lsm/linux#41."""
    ran = stage.contained(stage.flow(Y0, stage.program("fast_open.py", *DENIED[1:])))
    assert set(ran.report.values()) == {"ECONNREFUSED"}, ran
    assert ran.reached("10.99.0.2") == 0, ran
    assert len(ran.record.denied("10.99.0.2:9000")) == 3, ran.record.text
    assert verdict_and_exit(ran) == (FAIL, 1), ran


def test_suns_12_a_thread_reaches_what_its_process_may_reach(stage: Stage) -> None:
    """automators-com/flowproof b819dcb (D5)."""
    ran = stage.contained(stage.flow(Y0, stage.program("threads.py", *ALLOWED[1:], "12")))
    assert ran.report == {"seen": ["ok"] * 12}, ran
    assert ran.reached("10.99.0.1") == 12, ran
    assert verdict_and_exit(ran) == (PASS, 0), ran


def test_suns_14_what_could_not_be_read_is_no_pass_though_nothing_was_recorded(
    plain_stage: Stage,
) -> None:
    """automators-com/flowproof 9e38373: loopback alone was tried, and could not be seen to be loopback."""
    program = plain_stage.program("nondumpable.py", "127.0.0.1", "9000")
    ran = plain_stage.contained(plain_stage.flow(NEVER_ELSE, program))
    assert ran.record.refused == [] or "unreadable" in ran.record.text, ran.record.text
    assert verdict_and_exit(ran) == (CAPABILITY, 3), ran


# --- false green


def test_fg_01_a_flow_of_bad_bytes_is_a_mistake_and_no_clean_answer(stage: Stage) -> None:
    """sattyamjjain/agent-audit-kit#743."""
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    path.write_bytes(b"\xff\xfe" + path.read_bytes())
    for command in ("check", "compile", "run", "audit"):
        where = str(path.parent) if command == "audit" else str(path)
        target = ("--target", "linux-x86_64") if command == "compile" else ()
        ran = stage.execute(stage.product.flowproof(command, where, *target))
        assert ran.code == 2, (command, ran)
        assert "error[FP201]" in ran.stdout + ran.stderr, (command, ran)
        assert ran.report == {}, (command, ran)


def test_fg_02_a_control_without_rules_is_no_pass(stage: Stage) -> None:
    """awslabs/automated-security-helper#535."""
    ran = stage.contained(stage.flow({}, stage.program("reach.py", *ALLOWED)))
    assert verdict_and_exit(ran) == (CAPABILITY, 3), ran


def test_fg_02_a_pass_without_an_event_rests_on_a_call_that_was_refused(stage: Stage) -> None:
    """The same: nothing was tried, and the record says by what the lane is known to have worked."""
    ran = stage.contained(stage.flow(NEVER_ELSE, ["true"]))
    assert verdict_and_exit(ran) == (PASS, 0), ran
    canary = ran.record.data["canary"]
    assert isinstance(canary, dict)
    assert (canary["seen"], canary["held"]) == ("refused", True), canary
    audited = stage.execute(
        stage.product.flowproof("audit", str(stage.folder / "records"), "--format", "json")
    )
    (control,) = json.loads(audited.stdout)["controls"]
    assert control["coverage"]["unmet"] == [f"{CONTROL}.rest"], control


def test_fg_04_a_command_that_crashes_at_once_is_no_pass(stage: Stage) -> None:
    """martymcenroe/AssemblyZero#2546."""
    ran = stage.contained(stage.flow(NEVER_ELSE, ["sh", "-c", "exit 1"]))
    assert verdict_and_exit(ran) == (CAPABILITY, 3), ran
    assert ran.record.mentions("COMMAND_EXIT"), ran.record.text


def test_fg_06_a_run_whose_supervisor_died_did_not_complete(stage: Stage) -> None:
    """scottcrosby-securebine/kali-mcp-server#31."""
    ran = stage.contained(stage.flow(Y0, stage.program("kill_parent.py", *DENIED[1:])))
    if ran.report["killed"] == "EPERM":  # a Landlock domain with a signal scope
        assert verdict_and_exit(ran) == (FAIL, 1), ran
    else:
        assert verdict_and_exit(ran) == (CAPABILITY, 3), ran
    assert ran.reached("10.99.0.2") == 0, ran


def test_fg_08_a_run_on_a_host_that_cannot_enforce_leaves_another_record(stage: Stage) -> None:
    """automators-com/flowproof c35d2d7."""
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    able = stage.contained(path)
    unable = stage.contained(path, before=without(stage, "pidfd_getfd"))
    assert verdict_and_exit(able) == (PASS, 0), able
    assert verdict_and_exit(unable) == (CAPABILITY, 3), unable
    assert tier(able) != tier(unable)
    assert '"tier": "enforced"' not in unable.record.text
    assert unable.record.data["host"] != able.record.data["host"], "it names what is missing"


# --- egress agents of CI


@pytest.mark.parametrize("call", ["seccomp", "ioctl NOTIF_RECV", "process_vm_readv"])
def test_cea_03_a_mechanism_that_is_not_there_never_stays_green(stage: Stage, call: str) -> None:
    """step-security/harden-runner#124."""
    ran = stage.contained(
        stage.flow(Y0, stage.program("reach.py", *ALLOWED)), before=without(stage, call)
    )
    assert verdict_and_exit(ran) == (CAPABILITY, 3), ran
    assert ran.report == {}, "it ran unmonitored"


def test_cea_04_a_program_that_swallows_its_error_fails_all_the_same(stage: Stage) -> None:
    """step-security/harden-runner#70."""
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", *DENIED, "exit", "0", "-")))
    assert ran.report[" ".join(DENIED)] == "ECONNREFUSED", ran
    assert verdict_and_exit(ran) == (FAIL, 1), ran


def test_cea_06_no_list_an_empty_list_and_one_that_observes_are_told_apart(stage: Stage) -> None:
    """arcjet/arcjet-js#6245."""
    program = stage.program("reach.py", *DENIED)
    nothing = stage.contained(stage.flow({}, program))
    assert verdict_and_exit(nothing) == (CAPABILITY, 3), nothing
    empty = stage.contained(stage.flow({}, program, agent={"allow_egress": []}))
    assert (empty.reached("10.99.0.2"), empty.record.verdict) == (0, PASS), empty
    observing = stage.flow({"probe.see": "observe connect to anything else"}, program)
    observed = stage.contained(observing)
    assert observed.reached("10.99.0.2") == 1, observed
    rule = observed.record.rule("probe.see")
    assert (rule["claim"], rule["verdict"]) == ("report", None), rule
    assert verdict_and_exit(observed) == (CAPABILITY, 3), "a report is no pass"


def test_cea_08_a_refused_address_without_a_name_is_recorded(stage: Stage) -> None:
    """Automattic/vip-go-mu-plugins#2815."""
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", *DENIED)))
    (event,) = ran.record.denied("10.99.0.2:9000")
    assert event["name"] is None, event


def test_cea_11_one_enforced_control_does_not_speak_for_the_other(stage: Stage) -> None:
    """prowler-cloud/py-ocsf-models#274."""
    command = stage.program("reach.py", *DENIED)
    for name, rule in (
        ("a", "deny connect to anything else"),
        ("b", "observe connect to anything"),
    ):
        control = {"id": name, "rules": {f"{name}.rest": rule}}
        stage.flow(None, command, name=f"suite/{name}.flow.yaml", control=control)
    suite = stage.folder / "suite"
    words = ("run", str(suite), "--record", str(suite), "--format", "json")
    assert stage.execute(stage.product.flowproof(*words)).code == 3
    audited = stage.execute(stage.product.flowproof("audit", str(suite), "--format", "json"))
    controls = {row["id"]: row["verdict"] for row in json.loads(audited.stdout)["controls"]}
    assert controls == {"a": PASS, "b": CAPABILITY}, audited
    assert audited.code == 3, audited


# --- sandboxes for agents


def test_asn_01_a_filter_that_refuses_nothing_never_starts_the_command(stage: Stage) -> None:
    """anthropics/claude-code#78608."""
    ran = disarmed(stage, Y0, "program", stage.program("reach.py", *DENIED))
    assert (ran.report, ran.arrivals) == ({}, []), ran
    assert verdict_and_exit(ran) == (CAPABILITY, 3), ran
    assert ran.record.mentions("CANARY"), ran.record.text


def test_asn_02_each_run_has_its_own_probe(stage: Stage) -> None:
    """anthropics/claude-code#77045."""
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    for _ in range(2):
        ran = stage.contained(path)
        canary = ran.record.data["canary"]
        assert isinstance(canary, dict)
        assert canary["held"] is True, canary
        broken = disarmed(stage, Y0, "program", stage.program("reach.py", *ALLOWED))
        assert verdict_and_exit(broken) == (CAPABILITY, 3), broken


def test_asn_05_a_lookup_off_the_host_is_refused_and_recorded(stage: Stage) -> None:
    """anthropic-experimental/sandbox-runtime#88."""
    program = stage.program("reach.py", "udp", "10.99.0.2", "53")
    ran = stage.contained(stage.flow({}, program, agent={"allow_egress": []}))
    assert ran.reached("10.99.0.2") == 0, ran
    (event,) = ran.record.denied("10.99.0.2:53")
    assert event["protocol"] == "udp", event


def test_asn_06_what_was_not_enforced_says_why_and_shows_no_pass(stage: Stage) -> None:
    """anthropics/claude-code#84833."""
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    records = str(stage.folder / "records")
    words = stage.product.flowproof("run", str(path), "--record", records, "--verbose")
    ran = stage.execute([*without(stage, "pidfd_getfd"), *words])
    assert ran.code == 3, ran
    assert f"{CONTROL}.rest: capability-error, not shown (CHILD_DESCRIPTOR)" in ran.stderr, ran
    assert "SYS_PTRACE" in ran.stderr, "it does not say what to change"
    assert "pass" not in ran.stderr.split(), ran


def test_asn_07_a_client_that_knows_no_proxy_is_refused(stage: Stage) -> None:
    """nolabs-ai/nono#713."""
    path = stage.flow(Y0, stage.program("reach.py", *DENIED))
    ran = stage.contained(path, env={"http_proxy": "http://127.0.0.1:9000", "no_proxy": "*"})
    assert ran.reached("10.99.0.2") == 0, ran
    assert verdict_and_exit(ran) == (FAIL, 1), ran


def test_asn_10_a_sandbox_that_is_not_there_is_an_error_in_a_line(stage: Stage) -> None:
    """avala-ai/agent-code#342: here the artifact is for a machine that this is not."""
    other = "linux-aarch64" if os.uname().machine == "x86_64" else "linux-x86_64"
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    compiled = stage.folder / "other.json"
    words = ("compile", str(path), "--target", other, "--emit", "json")
    made = stage.execute(stage.product.flowproof(*words))
    compiled.write_text(made.stdout, encoding="utf-8")
    command = ("run", str(compiled), "--", *stage.program("reach.py", *ALLOWED))
    ran = stage.execute(stage.product.flowproof(*command))
    assert ran.code == 3, ran
    assert "PLATFORM" in ran.stderr, ran
    assert (ran.report, ran.arrivals) == ({}, []), ran


def test_asn_11_what_is_missing_is_named_and_no_flag_is_ignored(stage: Stage) -> None:
    """openai/codex#9292."""
    path = stage.flow(Y0, stage.program("reach.py", *ALLOWED))
    doctor = stage.execute([*without(stage, "seccomp"), *stage.product.flowproof("doctor")])
    assert doctor.code == 3, doctor
    assert "seccomp" in doctor.stdout, doctor
    ran = stage.execute(stage.product.flowproof("run", str(path), "--sandbox"))
    assert ran.code == 2, ran
    assert (ran.report, ran.arrivals) == ({}, []), ran


def test_asn_13_no_user_namespace_is_needed(stage: Stage) -> None:
    """openai/codex#15057."""
    outer = stage.program("outer.py", calls("unshare"))
    ran = stage.contained(stage.flow(Y0, stage.program("reach.py", *ALLOWED)), before=outer)
    assert verdict_and_exit(ran) == (PASS, 0), ran


def test_asn_14_a_refused_lookup_is_called_one(stage: Stage) -> None:
    """openai/codex#22387."""
    path = stage.flow(Y0, stage.program("reach.py", "udp", "10.99.0.2", "53"))
    words = stage.product.flowproof("run", str(path), "--record", str(stage.folder / "records"))
    ran = stage.execute(words)
    assert "refused: send udp 10.99.0.2:53 (DNS)" in ran.stderr, ran
    assert "allow connect udp to 10.99.0.2:53" in ran.stderr, ran
