"""The lane of files in a record: what its verdicts need, how its lines read, and that they are bounded."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from flowproof.exit_codes import ExitCode
from flowproof.record import tally as limits
from flowproof.record.codes import Code
from flowproof.record.faults import FILE_CALLS, LANE_OF_CALL
from flowproof.record.lanes import lane_of_event
from flowproof.record.model import End, FaultCount, Hits, Tier, Verdict
from flowproof.record.redact import Folders
from flowproof.record.tally import LISTED, RuleRef, Tally, recount
from flowproof.record.verdict import Facts, RuleFacts, judge
from flowproof.resources import data
from flowproof.run.calls.files import FILE_CALLS as HANDLERS
from flowproof.values import replace

SCHEMA = jsonschema.Draft202012Validator(json.loads(data("schema", "lane-event.schema.json")))
FOLDERS = Folders.of("/home/u/work", "/home/u", "/tmp")
RULES = (RuleRef("a.files", "behaviour"), RuleRef("b.look", "report"))
OBSERVED = Tier("observed", "seccomp user notification, Landlock")
FILES = RuleFacts("r", "expect no", "files", "authored", None, "observed", 0)


def facts(**changes: object) -> Facts:
    rule = changes.pop("rule", FILES)
    base = Facts(
        rules=(rule,),  # type: ignore[arg-type]  # a rule, as the table below has it
        tiers={"files": OBSERVED},
        started=True,
        canary=None,
        alive=True,
        received=7,
        answered=7,
        lost=0,
        faults=(),
        meanings=(),
        end=End("exit", 0),
        expect_exit=0,
        survivors=0,
        blocked=(),
        complete=True,
        proof="proven",
        file_canary=True,
    )
    return replace(base, **changes)


def ruled(**changes: object) -> tuple[Verdict | None, Code | None]:
    ruling = judge("c", facts(**changes)).rules[0]
    return ruling.verdict, ruling.code


def test_an_observed_lane_without_an_event_is_a_pass_of_behaviour() -> None:
    assert ruled() == (Verdict.PASS, None)
    judgement = judge("c", facts())
    assert judgement.rules[0].explanation == "observed, and no attempt was made"
    assert judgement.exit.code is ExitCode.OK


def test_a_counted_event_fails_whatever_else_went_wrong() -> None:
    rule = replace(FILES, counted=1)
    assert ruled(rule=rule) == (Verdict.FAIL, None)
    assert ruled(rule=rule, file_canary=None, alive=False) == (Verdict.FAIL, None)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"file_canary": None}, Code.CANARY),
        ({"file_canary": False}, Code.CANARY),
        ({"file_canary": None, "canary": True}, Code.CANARY),
        ({"faults": (FaultCount(Code.PATH, "files", 1),)}, Code.PATH),
        ({"faults": (FaultCount(Code.LISTENER_RECEIVE, None, 1),)}, Code.LISTENER_RECEIVE),
        ({"tiers": {}}, Code.NOT_OBSERVED),
        ({"tiers": {"files": Tier("none", "why", Code.NOT_SECLUDED)}}, Code.NOT_SECLUDED),
        ({"rule": replace(FILES, counting="unsupported")}, Code.NOT_CARRIED),
        ({"rule": replace(FILES, counting=None)}, Code.NOT_CARRIED),
        ({"end": End("exit", 1)}, Code.COMMAND_EXIT),
        ({"end": End("signal", 9)}, Code.COMMAND_SIGNAL),
        ({"end": End("timeout", 9)}, Code.COMMAND_TIMEOUT),
        ({"survivors": 1}, Code.SURVIVORS),
        ({"answered": 6}, Code.UNANSWERED),
        ({"lost": 1}, Code.EVENTS_LOST),
        ({"alive": False}, Code.SUPERVISOR_LOST),
        ({"complete": False}, Code.RECORD_TORN),
    ],
)
def test_without_one_piece_of_evidence_it_is_no_pass(
    changes: dict[str, object], code: Code
) -> None:
    assert ruled(**changes) == (Verdict.CAPABILITY_ERROR, code)
    assert judge("c", facts(**changes)).exit.code in (ExitCode.CAPABILITY, ExitCode.EVIDENCE)


@pytest.mark.parametrize("changes", [{"canary": False}, {"canary": None}])
def test_the_known_call_of_the_other_lane_is_not_its_evidence(changes: dict[str, object]) -> None:
    assert ruled(**changes) == (Verdict.PASS, None)
    fault = {"faults": (FaultCount(Code.CHILD_MEMORY, "connect", 1),)}
    assert ruled(**fault) == (Verdict.PASS, None)


def test_a_refusal_never_rests_on_an_observed_lane() -> None:
    deny = replace(FILES, verb="deny", refusing="exact", counting=None)
    assert ruled(rule=deny) == (Verdict.CAPABILITY_ERROR, Code.NOT_ENFORCED)


# --- lines


def attempt(
    operation: str = "delete",
    where: str = "/home/u/work/a.txt",
    asserting: tuple[int, ...] = (0,),
    observing: tuple[int, ...] = (),
    note: str | None = None,
) -> tuple[Any, ...]:
    head = (5, 77, "/home/u/work/agent", operation, "file", where, None)
    return (*head, False, None, asserting, observing, note)


def lines_of(*attempts: tuple[Any, ...]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    tally = Tally(RULES, {}, FOLDERS, lines.append, files=True)
    for one in attempts:
        tally.attempt(*one)
    tally.finish()
    for line in lines:
        SCHEMA.validate(line)
    return lines


def test_a_counted_attempt_is_a_line_with_its_path() -> None:
    (line,) = lines_of(attempt(note="no effect: nothing is there"))
    assert line == {
        "kind": "event",
        "n": 1,
        "ms": 5,
        "pid": 77,
        "program": "${cwd}/agent",
        "operation": "delete",
        "path": "${cwd}/a.txt",
        "to": None,
        "handling": "let-through",
        "by": None,
        "asserting": [{"rule": "a.files", "claim": "behaviour"}],
        "observing": [],
        "note": "no effect: nothing is there",
    }


def test_both_ends_of_a_rename_are_redacted() -> None:
    (line,) = lines_of(attempt("rename", "/home/u/x\0/tmp/y"))
    assert (line["path"], line["to"]) == ("${home}/x", "${tmp}/y")


def test_what_is_only_told_is_seen_once_and_counted() -> None:
    lines = lines_of(*[attempt(asserting=(), observing=(1,))] * 3)
    assert [line["kind"] for line in lines] == ["let-through", "seen"]
    assert recount(lines).hits == {"b.look": Hits(observed=3)}


def test_a_loop_and_a_sweep_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(*[attempt()] * 100)
    assert [line["kind"] for line in lines] == ["event"] * LISTED + ["more"]
    assert recount(lines).hits == {"a.files": Hits(counted=100)}
    monkeypatch.setattr(limits, "DESTINATIONS", 10)
    lines = lines_of(*[attempt(where=f"/srv/{at}") for at in range(50)])
    assert (lines[-1]["kind"], lines[-1]["path"], lines[-1]["count"]) == ("more", None, 40)
    assert recount(lines).hits == {"a.files": Hits(counted=50)}


def test_files_are_no_loopback_listeners() -> None:
    assert recount(lines_of(attempt(where="/127.0.0.1"))).through == ()


@pytest.mark.parametrize(
    ("operation", "engaged", "lane"),
    [
        ("delete", ("connect", "files"), "files"),
        ("rename", ("files",), "files"),
        ("connect", ("connect", "files"), "connect"),
        ("foreign", ("connect", "files"), "connect"),
        ("foreign", ("files",), "files"),
    ],
)
def test_an_attempt_is_written_to_its_lane(
    operation: str, engaged: tuple[str, ...], lane: str
) -> None:
    assert lane_of_event(operation, engaged) == lane


def test_every_handled_call_s_faults_are_of_the_lane_of_files() -> None:
    assert set(FILE_CALLS) == set(HANDLERS)
    assert {LANE_OF_CALL[call] for call in HANDLERS} == {"files"}
