"""The command as a process: exit codes, and what happens when something unexpected does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flowproof import __version__
from flowproof.cli import main as module
from flowproof.cli.main import main

ROOT = Path(__file__).parents[2]


def flowproof(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "flowproof", *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )


def test_the_version_is_the_package_version() -> None:
    done = flowproof("--version")
    assert (done.returncode, done.stdout) == (0, f"flowproof {__version__}\n")


def test_the_version_is_answered_before_anything_is_imported() -> None:
    code = (
        "import sys; before = set(sys.modules); from flowproof.cli.main import main;"
        "main(['--version']); print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.splitlines()[-1].split() == [
        "__future__",
        "flowproof",
        "flowproof.cli",
        "flowproof.cli.main",
    ]


def test_no_command_and_an_unknown_one_end_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["chek", "."]) == 2
    assert "did you mean `check`?" in capsys.readouterr().err


def test_help_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["run", "--help"]) == 0
    assert "--expect-exit N|any" in capsys.readouterr().out


def _fail(*_: object) -> int:
    raise ZeroDivisionError("the moon is full")


def test_a_bug_ends_with_70_and_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_run", _fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("FLOWPROOF_TRACEBACK", raising=False)
    assert main(["check", "."]) == 70
    told = capsys.readouterr().err
    assert "this is a bug in flowproof" in told
    assert "Traceback" not in told
    (kept,) = tmp_path.iterdir()
    assert str(kept) in told
    assert "the moon is full" in kept.read_text()


def test_a_bug_shows_its_traceback_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_run", _fail)
    monkeypatch.setenv("FLOWPROOF_TRACEBACK", "1")
    assert main(["check", "."]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_as_the_signal_does() -> None:
    code = (
        "import flowproof.cli.main as m\n"
        "def stop(*_): raise KeyboardInterrupt\n"
        "m._run = stop\n"
        "raise SystemExit(m.main(['check', '.']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == b""


def test_a_full_disk_is_no_answer() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this platform has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flowproof", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
        )
    assert done.returncode == 4
    assert "No space left" in done.stderr


def test_a_reader_that_goes_away_changes_no_exit_code() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "flowproof", "--help"],
            stdout=write,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
