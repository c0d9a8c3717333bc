"""How a long run is getting on: whole lines on a terminal, rarer with time, and nothing anywhere else."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flowproof.cli.console import Console
from flowproof.cli.progress import due_after, progress

FLOW = """\
name: Takes its time
agent:
  command: [{python}, -c, "import time; print('begun', flush=True); time.sleep({seconds})"]
  timeout: 1m
control:
  id: t.slow
  rules:
    t.slow.rest: deny connect to anything else
"""


@pytest.fixture
def told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """Return the lines that a terminal gets of a run at these seconds."""

    def told(*seconds: float, file: str = "a.flow.yaml") -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr.isatty", lambda: True, raising=False)
            tell = progress(file, Console())
        assert tell is not None
        for number in seconds:
            tell(number, 40, 2)
        return capsys.readouterr().err.splitlines()

    return told


def test_there_is_no_progress_where_standard_error_is_no_terminal() -> None:
    assert progress("a.flow.yaml", Console()) is None


def test_there_is_no_progress_where_standard_error_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert progress("a.flow.yaml", Console()) is None


def test_a_short_run_says_nothing(told: Callable[..., list[str]]) -> None:
    assert told(0.0, 0.5, 9.9) == []


def test_a_line_says_how_long_and_how_much(told: Callable[..., list[str]]) -> None:
    assert told(10.2, 10.7, 75.0, 3725.0) == [
        "flowproof: a.flow.yaml: 10 s, 40 let through, 2 refused",
        "flowproof: a.flow.yaml: 1 min 15 s, 40 let through, 2 refused",
        "flowproof: a.flow.yaml: 1 h 2 min, 40 let through, 2 refused",
    ]


def test_a_control_character_of_a_file_name_does_not_reach_the_terminal(
    told: Callable[..., list[str]],
) -> None:
    (line,) = told(10.0, file="\x1b[2Ja.flow.yaml")
    assert "\x1b" not in line


def test_lines_get_rarer() -> None:
    due = [10.0]
    for _ in itertools.repeat(None, 17):
        due.append(due_after(due[-1]))
    assert due == [*range(10, 61, 10), *range(120, 601, 60), 1200, 1800, 2400]


def _flow(folder: Path, seconds: float) -> str:
    path = folder / "slow.flow.yaml"
    path.write_text(FLOW.format(python=sys.executable, seconds=seconds))
    return str(path)


@pytest.mark.enforce
def test_a_run_on_a_terminal_tells_its_progress_and_on_a_pipe_does_not(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "flowproof", "run", _flow(tmp_path, 11)]
    reader, terminal = pty.openpty()
    on_a_pipe = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    on_a_terminal = subprocess.run(words, stdout=subprocess.PIPE, stderr=terminal, check=False)
    os.close(terminal)
    said = os.read(reader, 65536).decode()
    os.close(reader)
    piped, quiet = on_a_pipe.communicate()
    assert (on_a_terminal.returncode, on_a_pipe.returncode) == (0, 0), (said, quiet)
    assert ": 10 s, 0 let through, 0 refused" in said
    assert b" s, 0 let through" not in quiet
    assert on_a_terminal.stdout == piped == b"begun\n"
