"""`flowproof run ARTIFACT`: what an artifact says of itself is no proof, and nothing is green by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from handmade_runs import rule, write_run

from flowproof.artifact.model import Artifact
from flowproof.cli.commands import run as module
from flowproof.cli.main import main
from flowproof.record.evidence import read
from flowproof.record.model import RunRecord
from flowproof.run import recorder
from flowproof.run.command import Command
from flowproof.run.recorder import Outcome

PACK = """\
policy: p
rules:
  api: allow connect to 203.0.113.0/24:443
  rest: never connect to anything else
"""
TARGET = "linux-x86_64"


class Recorder:
    """Stands where the recorder does, and leaves the record of a run in which all went well."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: list[RunRecord] = []

    def __call__(
        self, artifact: Artifact, command: Command, *, proven: bool = False, **_options: object
    ) -> Outcome:
        assert command.argv == ("true",)
        proof = "proven" if proven else "claimed"
        folder = str(write_run(self.folder, artifact.control, (rule("rest"),), proof=proof))
        record = read(folder).record
        assert record is not None
        self.records.append(record)
        return Outcome(record, folder, record.exit.code, record.exit.because)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    stand_in = Recorder(tmp_path / "records")
    monkeypatch.setattr(recorder, "run", stand_in)
    monkeypatch.setattr(module, "_target", lambda: TARGET)
    return stand_in


@pytest.fixture
def pack(tmp_path: Path) -> str:
    path = tmp_path / "p.policy.yaml"
    path.write_text(PACK)
    return str(path)


@pytest.fixture
def artifact(tmp_path: Path, pack: str, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["compile", pack, "--target", TARGET, "--emit", "json"]) == 0
    path = tmp_path / "p.json"
    path.write_text(capsys.readouterr().out)
    return path


def _lying(path: Path) -> None:
    """Let everything through, and keep every word and digest."""
    held: dict[str, Any] = json.loads(path.read_text())
    for entry in held["tables"]["entries"]:
        entry.pop("otherwise", None)
        entry.pop("watch_otherwise", None)
    assert held["verification"].startswith("verified (")
    path.write_text(json.dumps(held))


def test_a_claimed_proof_is_a_capability_error_and_says_how_to_prove_it(
    recorded: Recorder, artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(artifact), "--", "true"]) == 3
    err = capsys.readouterr().err
    assert "what it says of itself" in err
    assert "--policy" in err
    assert "NOT_PROVEN" in err
    (record,) = recorded.records
    assert record.policy.proof == "claimed"


def test_a_lying_artifact_is_not_green(recorded: Recorder, artifact: Path) -> None:
    _lying(artifact)
    assert main(["run", str(artifact), "--", "true"]) == 3
    assert recorded.records[0].controls[0].verdict.value == "capability-error"


def test_an_artifact_that_is_proved_first_is_green(
    recorded: Recorder, artifact: Path, pack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(artifact), "--policy", pack, "--", "true"]) == 0
    assert f"`{artifact}` means `{pack}`" in capsys.readouterr().err
    assert recorded.records[0].policy.proof == "proven"


def test_a_lying_artifact_does_not_run_where_its_policy_is_given(
    recorded: Recorder, artifact: Path, pack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _lying(artifact)
    assert main(["run", str(artifact), "--policy", pack, "--format", "json", "--", "true"]) == 1
    assert recorded.records == []
    told = capsys.readouterr()
    assert "policy   refused by rest, counted by rest" in told.err
    assert json.loads(told.out)["exit"]["code"] == 1


def test_an_artifact_of_another_policy_does_not_run(
    recorded: Recorder, artifact: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.policy.yaml"
    other.write_text(PACK.replace("443", "444"))
    assert main(["run", str(artifact), "--policy", str(other), "--", "true"]) == 1
    assert main(["run", str(artifact), "--policy", str(artifact), "--", "true"]) == 2
    assert recorded.records == []


def test_an_unverified_artifact_may_run_and_is_not_green(
    recorded: Recorder, pack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compile", pack, "--target", TARGET, "--emit", "json", "--no-verify"]
    assert main(words) == 0
    path = tmp_path / "u.json"
    path.write_text(capsys.readouterr().out)
    assert main(["run", str(path), "--", "true"]) == 3
    assert recorded.records == []
    assert main(["run", str(path), "--allow-unverified", "--", "true"]) == 3
    assert len(recorded.records) == 1
    assert main(["run", str(path), "--policy", pack, "--", "true"]) == 0


def test_a_policy_to_prove_against_is_for_artifacts_alone(
    recorded: Recorder, pack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", pack, "--policy", pack, "--", "true"]) == 2
    assert "a flow is proved anyway" in capsys.readouterr().err
    assert recorded.records == []


def test_a_flow_is_run_as_proven(recorded: Recorder, pack: str) -> None:
    assert main(["run", pack, "--", "true"]) == 0
    assert recorded.records[0].policy.proof == "proven"


def test_the_words_of_an_artifact_are_printed_as_words(
    recorded: Recorder, artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = json.loads(artifact.read_text())
    held["verification"] = "\x1b[32mverified (all of it)"
    artifact.write_text(json.dumps(held))
    assert main(["run", str(artifact), "--", "true"]) == 3
    assert recorded.records == []
    assert "\x1b" not in capsys.readouterr().err
