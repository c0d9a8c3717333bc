"""A run's folder: written whole or not at all, read back with every kind of damage told apart."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from flowproof.canonical import canonical, digest
from flowproof.exit_codes import ExitCode
from flowproof.record import codec, model, store
from flowproof.record.codes import Code
from flowproof.record.evidence import Stored, read, run_folders, verify_record
from flowproof.record.lanes import LANE_OF_ACTION, LANES
from flowproof.record.model import (
    CanaryRow,
    CapabilityRow,
    CommandInfo,
    ControlRow,
    End,
    Exit,
    Hits,
    Host,
    LaneInfo,
    Place,
    PolicyInfo,
    RuleRow,
    RunInfo,
    RunRecord,
    Source,
    Supervision,
    Tier,
    Tool,
    Verdict,
)
from flowproof.record.store import RunFolder, UnwritableRecord, new_run_id, record_bytes
from flowproof.record.verdict import facts_of, judge
from flowproof.resources import data
from flowproof.values import Value, replace

SCHEMA = jsonschema.Draft202012Validator(json.loads(data("schema", "run-record.schema.json")))
Change = Callable[[dict[str, Any]], object]
SHA = "sha256:" + "0" * 64
EVENT = {
    "kind": "event",
    "n": 1,
    "ms": 5,
    "pid": 7,
    "program": "/usr/bin/curl",
    "operation": "connect",
    "protocol": "tcp",
    "destination": "10.99.0.2",
    "port": 9000,
    "name": None,
    "handling": "refused",
    "by": {"rule": "c.deny", "claim": "containment"},
    "asserting": [],
    "observing": [],
    "note": None,
}


def record(lanes: dict[str, LaneInfo], *, complete: bool, hits: Hits) -> RunRecord:
    rule = RuleRow(
        id="c.deny",
        verb="deny",
        claim="containment",
        action="connect",
        lane="connect",
        kind="authored",
        sentence="deny connect to anything else",
        because="it has no business there",
        place=Place("flows/a.flow.yaml", 3, 5, None),
        refusing="exact",
        counting=None,
        hits=hits,
        verdict=None,
        code=None,
        explanation="",
    )
    draft = RunRecord(
        run=RunInfo(
            "2026-11-29T13-40-00Z-9f3c21", None, "1/2", "2026-11-29T13:40:00Z", None, complete
        ),
        command=CommandInfo("agent", SHA, 0, 600000, started=True, end=End("exit", 0)),
        tool=Tool("flowproof", "0", "3.11.2"),
        host=Host(
            "linux", "6.18.0", "x86_64", 1000, (CapabilityRow("platform", True, None, "Linux"),)
        ),
        policy=PolicyInfo(
            "c",
            "A control",
            "linux-x86_64",
            SHA,
            SHA,
            SHA,
            "by hand",
            "proven",
            (Source("a.flow.yaml", SHA),),
        ),
        lanes=lanes,
        supervisor=Supervision(alive=True, received=3, answered=3, lost=0),
        canary=CanaryRow(
            "connect",
            "udp",
            "192.0.2.1",
            9,
            "refused",
            "refused",
            "ECONNREFUSED",
            "c.deny",
            held=True,
        ),
        blocked=(),
        fidelity=(),
        faults=(),
        survivors=(),
        names={"db.example": ("10.99.0.2",)},
        through=(),
        rules=(rule,),
        controls=(),
        exit=Exit(ExitCode.OK, "", ()),
    )
    judgement = judge("c", facts_of(draft, {}, ()))
    ruled = judgement.rules[0]
    control = judgement.control
    assert control.verdict is not None
    return replace(
        draft,
        rules=(
            replace(rule, verdict=ruled.verdict, code=ruled.code, explanation=ruled.explanation),
        ),
        controls=(
            ControlRow("c", "A control", control.verdict, control.code, control.explanation),
        ),
        exit=judgement.exit,
    )


def write_run(root: Path, lines: int = 1) -> Path:
    """Write a run that passed, with *lines* refused attempts, and return its folder."""
    folder = RunFolder(str(root), new_run_id(1_800_000_000))
    lane, faults = folder.open_lane("connect"), folder.open_lane("faults")
    for _ in range(lines):
        lane.write(EVENT)
    folder.link_lanes()
    tier = Tier("enforced", "seccomp user notification")
    infos = {
        f.name.removesuffix(".jsonl"): LaneInfo(tier, f.name, f.sha256, f.lines, truncated=False)
        for f in (lane, faults)
    }
    found = record(infos, complete=True, hits=Hits(refused=lines))
    name = os.path.basename(folder.path)
    folder.write(replace(found, run=replace(found.run, id=name)))
    folder.check_place()
    folder.close()
    return Path(folder.path)


def kinds(stored: Stored) -> list[str]:
    return [problem.kind for problem in stored.problems]


def rewrite(path: Path, change: Change) -> None:
    """Change a record's content and give it the digest of what it now holds."""
    shape = json.loads(path.read_bytes())
    del shape["digest"]
    change(shape)
    path.write_bytes(canonical({**shape, "digest": digest(canonical(shape))}) + b"\n")


def test_a_finished_run_reads_back_whole_and_its_verdicts_hold(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    stored = verify_record(str(folder))
    assert stored.problems == ()
    assert stored.record is not None
    assert stored.record.controls[0].verdict is Verdict.PASS
    assert stored.lanes["connect"] == (EVENT,)
    assert sorted(path.name for path in folder.iterdir()) == [
        "connect.jsonl",
        "faults.jsonl",
        "record.json",
    ]
    assert run_folders(str(tmp_path)) == (str(folder),)


def test_what_is_written_is_canonical_and_fits_the_schema(tmp_path: Path) -> None:
    written = (write_run(tmp_path) / "record.json").read_bytes()
    shape = json.loads(written)
    SCHEMA.validate(shape)
    assert written == canonical(shape) + b"\n"


def test_a_record_survives_the_way_to_json_and_back() -> None:
    before = record({}, complete=True, hits=Hits())
    assert codec.from_json(codec.to_json(before)) == before


def test_every_field_of_every_part_has_a_decoder() -> None:
    parts = [
        part
        for name in model.__all__
        if isinstance(part := getattr(model, name), type) and issubclass(part, Value)
    ]
    assert len(parts) > 15
    for part in parts:
        assert tuple(codec._FIELDS[part]) == part.__fields__, part


def test_lanes_have_no_name_until_they_are_linked(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path), "r")
    lane = folder.open_lane("connect")
    lane.write(EVENT)
    assert os.listdir(folder.path) == []
    folder.link_lanes()
    assert os.listdir(folder.path) == ["connect.jsonl"]
    folder.close()


def test_lanes_are_copied_where_the_filesystem_has_no_unnamed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    folder = RunFolder(str(tmp_path), "r")
    lane = folder.open_lane("connect")
    lane.write(EVENT)
    assert os.listdir(folder.path) == []
    folder.link_lanes()
    assert os.listdir(folder.path) == ["connect.jsonl"]
    assert digest((tmp_path / store.RUNS / "r" / "connect.jsonl").read_bytes()) == lane.sha256
    folder.close()


def test_a_file_that_the_run_put_in_the_place_of_a_lane_is_replaced(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path), "r")
    lane = folder.open_lane("connect")
    (Path(folder.path) / "connect.jsonl").write_text("forged\n")
    lane.write(EVENT)
    folder.link_lanes()
    assert "forged" not in (Path(folder.path) / "connect.jsonl").read_text()
    folder.close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / ".flowproof").write_text("a file")
    with pytest.raises(UnwritableRecord, match="cannot be written"):
        RunFolder(str(tmp_path), "r")


def test_a_folder_that_is_replaced_during_the_run_is_said(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path), "r")
    os.rename(folder.path, folder.path + ".away")
    os.mkdir(folder.path)
    with pytest.raises(UnwritableRecord, match="was replaced"):
        folder.check_place()
    folder.close()


def test_a_folder_that_is_removed_during_the_run_is_said(tmp_path: Path) -> None:
    folder = RunFolder(str(tmp_path), "r")
    folder.open_lane("connect").write(EVENT)
    os.rmdir(folder.path)
    with pytest.raises(UnwritableRecord, match="no such file"):
        folder.link_lanes()
    with pytest.raises(UnwritableRecord, match="no such file"):
        folder.write(record({}, complete=True, hits=Hits()))
    folder.close()


def test_a_lane_that_could_not_be_written_is_said_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(str(tmp_path), "r")
    folder.open_lane("connect").write(EVENT)

    def full(_file: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(UnwritableRecord, match="no space left"):
            folder.link_lanes()
    folder.close()


def test_a_run_without_a_record_is_missing(tmp_path: Path) -> None:
    assert kinds(read(str(tmp_path))) == ["missing"]


@pytest.mark.parametrize("keep", [0, 1, 400])
def test_a_record_that_was_cut_off_is_torn(tmp_path: Path, keep: int) -> None:
    path = write_run(tmp_path) / "record.json"
    path.write_bytes(path.read_bytes()[:keep])
    assert kinds(read(str(path.parent))) == ["torn"]


def test_a_record_that_was_never_finished_is_torn(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    (folder / "record.json").write_bytes(record_bytes(record({}, complete=False, hits=Hits())))
    stored = verify_record(str(folder))
    assert kinds(stored) == ["torn"]
    assert stored.record is not None
    assert stored.record.controls[0].code is Code.RECORD_TORN
    assert stored.record.exit.code is ExitCode.EVIDENCE


def test_a_record_with_a_changed_byte_is_altered(tmp_path: Path) -> None:
    path = write_run(tmp_path) / "record.json"
    path.write_bytes(path.read_bytes().replace(b'"uid":1000', b'"uid":1001'))
    assert kinds(read(str(path.parent))) == ["altered"]


@pytest.mark.parametrize("extra", [b"\n", b" ", b"{}"])
def test_a_record_with_something_behind_it_is_no_evidence(tmp_path: Path, extra: bytes) -> None:
    path = write_run(tmp_path) / "record.json"
    path.write_bytes(path.read_bytes() + extra)
    assert kinds(read(str(path.parent))) in (["altered"], ["torn"])


def test_a_record_with_a_name_given_twice_is_altered(tmp_path: Path) -> None:
    path = write_run(tmp_path) / "record.json"
    path.write_bytes(path.read_bytes().replace(b'"uid":1000', b'"uid":0,"uid":1000'))
    assert kinds(read(str(path.parent))) == ["altered"]


@pytest.mark.parametrize(
    "change",
    [
        lambda shape: shape.update(schema="other"),
        lambda shape: shape.pop("exit"),
        lambda shape: shape.update(more=1),
        lambda shape: shape["run"].update(complete="yes"),
        lambda shape: shape["supervisor"].update(received=True),
        lambda shape: shape["rules"][0].update(verdict="PASS"),
        lambda shape: shape["exit"].update(code=9),
        lambda shape: shape.update(lanes=[]),
        lambda shape: shape["lanes"].update(x=shape["lanes"]["connect"]),
        lambda shape: shape["lanes"]["connect"]["tier"].update(word="fine"),
    ],
)
def test_a_record_of_another_shape_is_malformed(tmp_path: Path, change: Change) -> None:
    path = write_run(tmp_path) / "record.json"
    rewrite(path, change)
    assert kinds(verify_record(str(path.parent))) == ["malformed"]


def test_a_missing_lane_is_missing(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    (folder / "connect.jsonl").unlink()
    assert kinds(verify_record(str(folder))) == ["missing"]


def test_a_cut_lane_is_torn(tmp_path: Path) -> None:
    folder = write_run(tmp_path, lines=3)
    lane = folder / "connect.jsonl"
    lane.write_bytes(b"".join(lane.read_bytes().splitlines(keepends=True)[:2]))
    assert kinds(verify_record(str(folder))) == ["torn"]
    lane.write_bytes(lane.read_bytes()[:-9])
    assert kinds(verify_record(str(folder))) == ["torn"]


def test_an_altered_lane_is_altered(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    lane = folder / "connect.jsonl"
    lane.write_bytes(lane.read_bytes().replace(b"10.99.0.2", b"10.99.0.1"))
    assert kinds(verify_record(str(folder))) == ["altered"]


def differing(tmp_path: Path, change: Change) -> list[str]:
    path = write_run(tmp_path) / "record.json"
    rewrite(path, change)
    stored = verify_record(str(path.parent))
    assert set(kinds(stored)) == {"differs"}
    return [problem.detail for problem in stored.problems]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda s: s["rules"][0].update(verdict="fail"), "verdict on `c.deny`"),
        (lambda s: s["rules"][0]["hits"].update(refused=0), "hits of `c.deny`"),
        (lambda s: s["controls"][0].update(verdict="fail"), "verdict on the control"),
        (lambda s: s.update(controls=[]), "verdict on the control"),
        (lambda s: s["exit"].update(code=1), "exit code"),
        (lambda s: s["supervisor"].update(answered=2), "verdict on `c.deny`"),
        (lambda s: s["canary"].update(held=False), "verdict on `c.deny`"),
        (lambda s: s.update(canary=None), "verdict on `c.deny`"),
        (lambda s: s["supervisor"].update(alive=False), "verdict on `c.deny`"),
        (lambda s: s["lanes"]["connect"]["tier"].update(word="observed"), "verdict on `c.deny`"),
        (lambda s: s["rules"][0].update(refusing="unsupported"), "verdict on `c.deny`"),
        (lambda s: s["command"].update(end={"how": "exit", "value": 3}), "exit code"),
        (
            lambda s: s["faults"].append({"code": "PERFORM", "lane": None, "count": 1}),
            "faults are not",
        ),
        (
            lambda s: s["through"].append(
                {"protocol": "tcp", "destination": "127.0.0.1", "port": 1, "count": 1}
            ),
            "loopback listeners",
        ),
        (lambda s: s["rules"][0].update(id="c.other"), "`c.deny` is in a lane and in no rule"),
        (lambda s: s["run"].update(id="2099"), "the record of run `2099` in the folder"),
        (lambda s: s["lanes"]["faults"].update(file=None), "lane `faults` has no file"),
        (lambda s: s["lanes"].pop("faults"), "lane `faults` has no file"),
    ],
)
def test_a_verdict_that_its_own_facts_do_not_give_differs(
    tmp_path: Path, change: Change, detail: str
) -> None:
    assert any(detail in found for found in differing(tmp_path, change))


def test_a_lane_that_was_left_out_of_the_record_differs(tmp_path: Path) -> None:
    assert differing(tmp_path, lambda shape: shape["lanes"]["connect"].update(file=None))


def test_a_lane_that_was_left_out_with_all_that_it_amounts_to_differs(tmp_path: Path) -> None:
    def forget(shape: dict[str, Any]) -> None:
        shape["lanes"]["connect"].update(file=None, sha256=None, lines=0)
        shape["rules"][0]["hits"].update(refused=0)

    assert differing(tmp_path, forget) == [
        "the command started, and the lane `connect` has no file"
    ]


def test_a_lane_that_no_rule_needs_may_be_absent_and_one_that_a_rule_needs_not(
    tmp_path: Path,
) -> None:
    def about_files(shape: Any) -> None:  # noqa: ANN401  JSON
        shape["rules"][0].update(lane="files")

    assert "the command started, and the lane `files` has no file" in differing(
        tmp_path, about_files
    )


def test_a_record_under_the_name_of_another_run_differs(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    later = folder.rename(folder.with_name("2099-01-01T00-00-00.000000Z-000000"))
    assert kinds(verify_record(str(later))) == ["differs"]


def test_run_ids_sort_by_time_and_differ() -> None:
    assert new_run_id(1_800_000_000) < new_run_id(1_800_000_001)
    assert new_run_id(1_800_000_000) != new_run_id(1_800_000_000)


def test_the_schemas_name_the_codes_lanes_and_actions_that_there_are() -> None:
    run = json.loads(data("schema", "run-record.schema.json"))
    lane = json.loads(data("schema", "lane-event.schema.json"))
    codes = sorted(code.value for code in Code)
    assert run["$defs"]["code"]["enum"] == codes
    assert lane["$defs"]["code"]["enum"] == codes
    assert run["properties"]["lanes"]["propertyNames"]["enum"] == list(LANES)
    assert set(run["$defs"]["rule"]["properties"]["action"]["enum"]) == set(LANE_OF_ACTION)
    assert run["$id"] == model.SCHEMA
