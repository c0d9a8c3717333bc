"""A bounded run of the fuzzer: bombs, then mutations of vectors from a fixed seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_input_of_a_bounded_run_breaks_a_promise() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--count", "300", "--seed", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 inputs" in done.stdout


def test_a_broken_promise_is_found(tmp_path: Path) -> None:
    """The fuzzer is red where it should be: with a reader that raises."""
    script = (
        "import sys; sys.argv = ['fuzz', '--count', '3', '--seed', '1']\n"
        "from tests import fuzz\n"
        "def broken(*_): raise RecursionError('staged')\n"
        "fuzz.load = broken\n"
        "sys.exit(fuzz.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.count("FOUND") == 3
    assert "staged" in done.stdout
