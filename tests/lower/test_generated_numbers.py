"""The generator's own check: the numbers are those of the headers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "gen_syscalls.py"

needs_headers = pytest.mark.skipif(
    not Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").exists() and not os.environ.get("CI"),
    reason="kernel headers are not installed: apt-get install linux-libc-dev libc6-dev",
)


@needs_headers
def test_numbers_agree_with_the_headers_of_this_machine() -> None:
    answer = subprocess.run(
        [sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")


@needs_headers
@pytest.mark.parametrize("release", [None, "9.9.9"])
def test_a_number_that_differs_is_found(tmp_path: Path, release: str | None) -> None:
    """Of the stated release the whole text counts; of another one, each number."""
    copy = tmp_path / "flowproof" / "lower" / "seccomp" / "numbers.py"
    copy.parent.mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / TOOL.name).write_bytes(TOOL.read_bytes())
    text = (ROOT / "flowproof" / "lower" / "seccomp" / "numbers.py").read_text(encoding="utf-8")
    if release is not None:
        stated = text.split('HEADERS = "')[1].split('"')[0]
        text = text.replace(stated, release)
    for wrong in (text.replace('"connect": 42', '"connect": 43'), text):
        copy.write_text(wrong, encoding="utf-8")
        answer = subprocess.run(
            [sys.executable, str(tmp_path / "tools" / TOOL.name), "--check"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == (0 if wrong is text else 1), answer.stderr
