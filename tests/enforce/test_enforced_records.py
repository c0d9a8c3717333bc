"""What a real run leaves on disk: where, what never, and that an audit comes to the same verdict."""

from __future__ import annotations

import json

import pytest
from evidence import FAIL, PASS, Record, newest_record
from stage import Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

ALLOWED = ("tcp", "10.99.0.1", "9000")
DENIED = ("tcp", "10.99.0.2", "9000")


def run_beside(stage: Stage, *acts: str, env: dict[str, str] | None = None) -> tuple[Ran, Record]:
    """Run without ``--record``: the record lies beside the flow."""
    path = stage.flow(Y0, stage.program("reach.py", *acts))
    ran = stage.execute(stage.product.flowproof("run", str(path), "--format", "json"), env=env)
    record = newest_record(stage.folder / ".flowproof" / "runs")
    assert record is not None, ran
    return ran, record


def audit(stage: Stage) -> Ran:
    return stage.execute(stage.product.flowproof("audit", str(stage.folder), "--format", "json"))


@pytest.mark.parametrize(("acts", "verdict", "code"), [(ALLOWED, PASS, 0), (DENIED, FAIL, 1)])
def test_audit_comes_to_the_verdict_of_the_run(
    stage: Stage, acts: tuple[str, ...], verdict: str, code: int
) -> None:
    ran, record = run_beside(stage, *acts)
    assert (record.verdict, ran.code) == (verdict, code), ran
    audited = audit(stage)
    assert audited.code == code, audited
    assert json.loads(audited.stdout)["exit"]["code"] == code, audited


@pytest.mark.parametrize("acts", [ALLOWED, DENIED])
def test_altered_lane_is_no_evidence(plain_stage: Stage, acts: tuple[str, ...]) -> None:
    _, record = run_beside(plain_stage, *acts)
    lane = record.folder / "connect.jsonl"
    lane.write_bytes(lane.read_bytes().replace(b"10.99.0", b"10.98.0"))
    assert audit(plain_stage).code == 4


def test_altered_verdict_is_no_evidence(plain_stage: Stage) -> None:
    _, record = run_beside(plain_stage, *DENIED)
    (record.folder / "record.json").write_text(
        record.text.replace('"verdict":"fail"', '"verdict":"pass"'), encoding="utf-8"
    )
    assert audit(plain_stage).code == 4


def test_record_holds_no_environment_value_and_no_argument(stage: Stage) -> None:
    secret = "hunter2-of-the-environment"
    ran, record = run_beside(stage, *ALLOWED, "sleep", "0.0625", "-", env={"API_KEY": secret})
    assert ran.code == 0, ran
    everything = record.text + (record.folder / "connect.jsonl").read_text(encoding="utf-8")
    assert secret not in everything
    assert "0.0625" not in everything
    assert str(stage.folder) not in everything, "paths are written with ${cwd} put back"


def test_retry_loop_does_not_fill_the_record(stage: Stage) -> None:
    ran, record = run_beside(stage, *(DENIED * 200))
    events = [e for e in record.lane("connect") if e.get("handling") == "refused"]
    assert len(events) < 100, len(events)
    counted = [int(str(e.get("count", 1))) for e in events]
    assert sum(counted) == 200, events
    assert ran.code == 1, ran
