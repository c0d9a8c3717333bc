"""The examples, run for real: one passes, one fails and says why, and the audit agrees with both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flowproof.cli.commands import doctor
from flowproof.cli.main import main
from flowproof.record.codes import Code
from flowproof.run.selftest import self_test
from flowproof.run.steps import Capability, first_failure

pytestmark = pytest.mark.enforce

ROOT = Path(__file__).parents[2]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    failure = first_failure(self_test())
    if failure is not None:
        pytest.skip(f"this machine cannot enforce: {failure.id}: {failure.detail}")
    for name in ("examples", "policies"):
        ignored = shutil.ignore_patterns(".flowproof", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    return tmp_path / "examples"


def flowproof(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flowproof", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=60,
    )


def test_the_bot_that_keeps_to_itself_passes(examples: Path) -> None:
    done = flowproof("run", examples / "summary.flow.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "The exports of last year are to be archived by Friday.\n"
    assert "notes.summary: pass" in done.stderr


def test_the_bot_that_reports_its_usage_fails_whatever_its_own_exit_code(examples: Path) -> None:
    done = flowproof("run", examples / "usage-report.flow.yaml")
    assert done.returncode == 1, done.stderr
    assert "notes.usage-report: fail" in done.stderr
    assert "refused: tcp 192.0.2.1:443" in done.stderr
    assert "usage-report.flow.yaml:14: `notes.usage-report.nothing-else` counts it" in done.stderr
    assert "allow connect tcp to 192.0.2.1:443" in done.stderr


def test_the_audit_of_the_examples_agrees_with_their_runs(examples: Path) -> None:
    assert flowproof("run", examples).returncode == 1
    done = flowproof("audit", examples, "--format", "json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    found = {control["id"]: control for control in report["controls"]}
    assert found["notes.summary"]["verdict"] == "pass"
    assert found["notes.usage-report"]["verdict"] == "fail"
    assert all(control["evidence"]["state"] == "sound" for control in found.values())
    assert found["notes.summary"]["run"]["tiers"]["connect"]["word"] == "enforced"


def test_a_changed_flow_makes_its_record_stale(examples: Path) -> None:
    flow = examples / "summary.flow.yaml"
    assert flowproof("run", flow).returncode == 0
    (examples / "usage-report.flow.yaml").unlink()
    assert flowproof("audit", examples).returncode == 0
    flow.write_text(flow.read_text().replace("never connect to", "deny connect to"))
    done = flowproof("audit", examples)
    assert done.returncode == 4
    assert "stale" in done.stdout


def test_json_leaves_standard_output_to_the_answer(examples: Path) -> None:
    done = flowproof("run", examples / "summary.flow.yaml", "--format", "json")
    assert json.loads(done.stdout)["runs"][0]["verdict"] == "pass"
    assert "archived by Friday" in done.stderr


def test_records_can_lie_elsewhere_and_are_audited_there(examples: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "records"
    done = flowproof("run", examples / "summary.flow.yaml", "--record", elsewhere)
    assert done.returncode == 0
    assert not (examples / ".flowproof").exists()
    done = flowproof("audit", elsewhere)
    assert done.returncode == 0
    assert "notes.summary: pass" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--", "sh", "-c", "exit 3"), 3),
        (("--expect-exit", "3", "--", "sh", "-c", "exit 3"), 0),
        (("--expect-exit", "any", "--", "sh", "-c", "exit 3"), 0),
        (("--expect-exit", "any", "--", "sh", "-c", "kill -9 $$"), 3),
        (("--timeout", "1s", "--", "sleep", "20"), 3),
        (("--", "no-such-program-anywhere"), 3),
    ],
)
def test_a_never_needs_the_expected_end(examples: Path, words: tuple[str, ...], code: int) -> None:
    done = flowproof("run", examples / "summary.flow.yaml", *words)
    assert done.returncode == code, done.stderr


def test_containment_holds_whatever_the_end_and_the_end_is_still_a_1(examples: Path) -> None:
    flow = examples / "summary.flow.yaml"
    text = flow.read_text().replace("never connect to", "deny connect to")
    flow.write_text(text.replace("  uses: [../policies/baseline.policy.yaml]\n", ""))
    done = flowproof("run", flow, "--", "sh", "-c", "exit 3")
    assert done.returncode == 1
    assert "notes.summary: pass" in done.stderr


def test_the_doctor_says_that_this_machine_can(examples: Path) -> None:
    done = flowproof("doctor")
    assert done.returncode == 0
    assert "enforced" in done.stdout.splitlines()[0]


def test_the_doctor_says_what_a_machine_cannot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Capability("pidfd.listener", ok=False, code=Code.CHILD_DESCRIPTOR, detail="EPERM")
    monkeypatch.setattr(doctor, "self_test", lambda: (row,))
    assert main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "none (CHILD_DESCRIPTOR)" in out
    assert "CAP_SYS_PTRACE" in out
    assert main(["doctor", "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["exit"]["code"] == 3


def test_a_record_folder_that_cannot_be_written_ends_with_4(examples: Path) -> None:
    marker = examples / "ran"
    words = ("--record", os.devnull, "--", "touch", str(marker))
    done = flowproof("run", examples / "summary.flow.yaml", *words)
    assert done.returncode == 4
    assert not marker.exists()
