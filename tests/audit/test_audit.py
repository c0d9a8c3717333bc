"""The audit of a folder: verdicts judged anew, evidence held against what is declared today."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from handmade_runs import event, rule, write_run

from flowproof.audit.formats.as_json import report_data
from flowproof.audit.formats.as_text import report_text
from flowproof.audit.report import Audit, audit
from flowproof.cli.console import printable
from flowproof.diagnostics import Report
from flowproof.ir.resolve import resolve_suite
from flowproof.ir.serialize import digest
from flowproof.record.model import Verdict
from flowproof.record.store import is_run_id, new_run_id
from flowproof.resources import data
from flowproof.source.suite import load

FLOW = """\
name: Tidy up
agent:
  command: python3 bot.py
control:
  id: bot.{name}
  title: The bot reaches nothing
  rules:
    bot.{name}.rest: never connect to anything else
"""

RULES = (rule("bot.a.rest"),)
SCHEMA = json.loads(data("schema", "report.schema.json"))


def flow(folder: Path, name: str = "a", text: str = FLOW) -> str:
    """Write a flow and return the digest of what it means."""
    path = folder / f"{name}.flow.yaml"
    path.write_text(text.format(name=name), encoding="utf-8")
    report = Report()
    suite = load(str(path), report)
    assert suite is not None
    (resolved,) = resolve_suite(suite, report)
    return digest(resolved.policy)


def audited(folder: Path, run: str | None = None) -> Audit:
    report = Report()
    found = audit(str(folder), run, report)
    assert not report.errors
    jsonschema.validate(report_data(found), SCHEMA)
    assert report_text(found, printable)
    return found


@pytest.mark.parametrize("proof", ["claimed", "none"])
def test_a_claimed_proof_is_no_pass_and_is_told_as_a_claim(tmp_path: Path, proof: str) -> None:
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path), proof=proof)
    found = audited(tmp_path)
    assert found.controls[0].verdict is Verdict.CAPABILITY_ERROR
    assert "it then proves the artifact before it runs" in report_text(found, printable)
    told = report_data(found)
    assert found.exit.code == 3
    assert f'"proof": "{proof}"' in json.dumps(told)


def test_a_sound_record_of_a_pass_ends_with_0(tmp_path: Path) -> None:
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path))
    found = audited(tmp_path)
    assert found.exit.code == 0
    assert [(c.id, c.verdict, c.evidence) for c in found.controls] == [
        ("bot.a", Verdict.PASS, "sound")
    ]


def test_a_failed_control_ends_with_1_and_says_which_rule(tmp_path: Path) -> None:
    lines = (event(RULES, "bot.a.rest"),)
    write_run(tmp_path, "bot.a", RULES, lines, ir=flow(tmp_path))
    found = audited(tmp_path)
    assert found.exit.code == 1
    assert "bot.a.rest" in found.exit.reason
    assert "it tried once" in report_text(found, printable)


def test_a_capability_error_ends_with_3(tmp_path: Path) -> None:
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path), tier="none")
    found = audited(tmp_path)
    assert found.exit.code == 3
    assert found.controls[0].verdict is Verdict.CAPABILITY_ERROR


def test_a_command_that_ended_otherwise_ends_with_1_where_the_control_held(tmp_path: Path) -> None:
    rules = (rule("bot.a.rest", "deny"),)
    write_run(tmp_path, "bot.a", rules, ir=flow(tmp_path), end=3)
    found = audited(tmp_path)
    assert (found.exit.code, found.controls[0].verdict) == (1, Verdict.PASS)


def test_a_declared_control_without_a_record_ends_with_4(tmp_path: Path) -> None:
    flow(tmp_path, "b")
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path))
    found = audited(tmp_path)
    assert found.exit.code == 4
    assert [(c.id, c.evidence) for c in found.controls] == [
        ("bot.a", "sound"),
        ("bot.b", "missing"),
    ]
    assert found.controls[1].verdict is Verdict.CAPABILITY_ERROR


def test_a_record_of_another_meaning_is_stale_and_ends_with_4(tmp_path: Path) -> None:
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path))
    flow(tmp_path, "a", FLOW.replace("never connect", "deny connect"))
    found = audited(tmp_path)
    assert (found.exit.code, found.controls[0].evidence) == (4, "stale")


def test_a_reformatted_flow_is_not_stale(tmp_path: Path) -> None:
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path))
    flow(tmp_path, "a", "# a comment\n" + FLOW.replace("never connect to", "never   connect   to"))
    assert audited(tmp_path).exit.code == 0


def test_the_newest_run_counts(tmp_path: Path) -> None:
    ir = flow(tmp_path)
    write_run(tmp_path, "bot.a", RULES, (event(RULES, "bot.a.rest"),), ir=ir)
    write_run(tmp_path, "bot.a", RULES, ir=ir)
    assert audited(tmp_path).exit.code == 0


def test_of_two_runs_in_one_second_the_later_one_counts(tmp_path: Path) -> None:
    ir = flow(tmp_path)
    ids = [new_run_id(1_795_960_800.25), new_run_id(1_795_960_800.75)]
    failing = (event(RULES, "bot.a.rest"),)
    write_run(tmp_path, "bot.a", RULES, failing, ir=ir, run_id=ids[1])
    write_run(tmp_path, "bot.a", RULES, ir=ir, run_id=ids[0])
    assert audited(tmp_path).exit.code == 1


def test_one_run_can_be_asked_for(tmp_path: Path) -> None:
    ir = flow(tmp_path)
    flow(tmp_path, "b")
    old = write_run(tmp_path, "bot.a", RULES, (event(RULES, "bot.a.rest"),), ir=ir)
    write_run(tmp_path, "bot.a", RULES, ir=ir)
    found = audited(tmp_path, old.name)
    assert (found.exit.code, len(found.controls)) == (1, 1)


def test_a_run_that_is_not_there_ends_with_4(tmp_path: Path) -> None:
    write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path))
    found = audited(tmp_path, "2026-01-01T00-00-00Z-000000")
    assert found.exit.code == 4


def test_a_lane_with_a_line_taken_out_is_no_evidence(tmp_path: Path) -> None:
    lines = (event(RULES, "bot.a.rest"), event(RULES, "bot.a.rest", port=80))
    folder = write_run(tmp_path, "bot.a", RULES, lines, ir=flow(tmp_path))
    lane = folder / "connect.jsonl"
    lane.write_bytes(lane.read_bytes().splitlines(keepends=True)[0])
    found = audited(tmp_path)
    assert (found.exit.code, found.controls[0].evidence) == (4, "torn")
    assert found.controls[0].verdict is Verdict.CAPABILITY_ERROR


def test_a_record_whose_verdict_was_turned_is_no_evidence(tmp_path: Path) -> None:
    lines = (event(RULES, "bot.a.rest"),)
    folder = write_run(tmp_path, "bot.a", RULES, lines, ir=flow(tmp_path))
    record = folder / "record.json"
    record.write_text(record.read_text().replace('"verdict":"fail"', '"verdict":"pass"'))
    found = audited(tmp_path)
    assert found.exit.code == 4
    assert found.controls[0].verdict is Verdict.CAPABILITY_ERROR


def test_a_record_that_was_never_finished_is_no_evidence(tmp_path: Path) -> None:
    ir = flow(tmp_path)
    folder = write_run(tmp_path, "bot.a", RULES, ir=ir)
    (folder / "record.json").write_text('{"schema": "flowproof/run-rec')
    found = audited(tmp_path)
    assert found.exit.code == 4
    assert "torn" in found.exit.reason + " ".join(found.exit.because)


def test_a_torn_record_older_than_every_sound_one_is_let_be(tmp_path: Path) -> None:
    ir = flow(tmp_path)
    folder = write_run(tmp_path, "bot.a", RULES, ir=ir)
    (folder / "record.json").write_text("{")
    write_run(tmp_path, "bot.a", RULES, ir=ir)
    assert audited(tmp_path).exit.code == 0


def test_an_empty_folder_is_no_evidence(tmp_path: Path) -> None:
    found = audited(tmp_path)
    assert found.exit.code == 4
    assert "no flow and no record" in found.exit.reason


def test_records_alone_are_judged_and_their_age_is_said_to_be_unknown(tmp_path: Path) -> None:
    write_run(tmp_path, "bot.a", RULES)
    found = audited(tmp_path)
    assert found.exit.code == 0
    assert "cannot be told" in found.notes[0]


def test_a_control_that_nothing_declares_any_more_is_listed_and_not_judged(tmp_path: Path) -> None:
    lines = (event(RULES, "bot.a.rest"),)
    write_run(tmp_path, "bot.a", RULES, lines)
    write_run(tmp_path, "bot.b", (rule("bot.b.rest"),), ir=flow(tmp_path, "b"))
    found = audited(tmp_path)
    assert [c.id for c in found.controls] == ["bot.b"]
    assert found.exit.code == 0
    # bot.a is older than all that was asked for, so it is not even read
    write_run(tmp_path, "bot.a", RULES, lines)
    found = audited(tmp_path)
    assert [c.id for c in found.retired] == ["bot.a"]
    assert found.exit.code == 0


def test_a_flow_in_a_subfolder_has_its_records_beside_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write_run(tmp_path / "deep", "bot.a", RULES, ir=flow(tmp_path / "deep"))
    assert audited(tmp_path).exit.code == 0


def test_evidence_goes_before_a_failure_and_the_failure_stays_a_reason(tmp_path: Path) -> None:
    flow(tmp_path, "b")
    write_run(tmp_path, "bot.a", RULES, (event(RULES, "bot.a.rest"),), ir=flow(tmp_path))
    found = audited(tmp_path)
    assert found.exit.code == 4
    assert any("bot.a.rest" in reason for reason in found.exit.because)


def test_words_of_a_file_cannot_drive_the_terminal(tmp_path: Path) -> None:
    evil = (rule("bot.a.rest", sentence="never \x1b[2J connect\nexit 0: forged"),)
    write_run(tmp_path, "bot.a", evil)
    text = report_text(audited(tmp_path), printable)
    assert "\x1b" not in text
    assert "exit 0: forged" not in text.splitlines()


@pytest.mark.parametrize("state", ["pass", "enforced"])
def test_the_schema_refuses_what_is_no_state(state: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"state": state}, SCHEMA["$defs"]["control"]["properties"]["evidence"])


def _a_file(path: Path) -> None:
    path.write_text("gone")


def _a_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def _a_circle_of_links(path: Path) -> None:
    path.symlink_to(path.name)


def _an_empty_folder(path: Path) -> None:
    path.mkdir()


def _a_link_to_the_older_run(path: Path) -> None:
    path.symlink_to(min(path.parent.iterdir()).name)


@pytest.mark.parametrize(
    "put",
    [_a_file, _a_dangling_link, _a_circle_of_links, _an_empty_folder, _a_link_to_the_older_run],
)
def test_an_older_pass_does_not_count_for_a_run_that_was_replaced(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    ir = flow(tmp_path)
    write_run(tmp_path, "bot.a", RULES, ir=ir)
    newest = write_run(tmp_path, "bot.a", RULES, (event(RULES, "bot.a.rest"),), ir=ir)
    assert audited(tmp_path).exit.code == 1
    shutil.rmtree(newest)
    put(newest)
    assert audited(tmp_path).exit.code == 4
    assert audited(tmp_path, newest.name).exit.code == 4


def test_what_has_no_name_of_a_run_is_no_run(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "bot.a", RULES, ir=flow(tmp_path))
    (folder.parent / ".gitignore").write_text("*")
    (folder.parent / "zzz").symlink_to("nowhere")
    assert audited(tmp_path).exit.code == 0


@pytest.mark.parametrize("put", [_a_file, _a_dangling_link, _a_circle_of_links])
def test_a_folder_of_runs_that_was_replaced_is_no_evidence(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    write_run(below, "bot.a", RULES, ir=flow(below))
    assert audited(tmp_path).exit.code == 0
    (tmp_path / ".flowproof").mkdir()
    put(tmp_path / ".flowproof" / "runs")  # where `--record` had put a newer one
    assert audited(tmp_path).exit.code == 4


def test_every_id_of_a_run_is_known_for_one() -> None:
    assert is_run_id(new_run_id(0.0))
    assert is_run_id(new_run_id(1796000000.5))
