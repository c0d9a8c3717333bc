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


FLOW = """\
name: Tidy up
agent:
  command: {python} probe.py
control:
  id: bot.a
  rules:
    bot.a.rest: deny connect to anything else
"""


def _without(descriptors: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run flowproof with some of its standard descriptors closed, as a shell's `>&-` leaves them."""
    shell = f'exec "$@" {descriptors}'
    return subprocess.run(
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-m", "flowproof", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=60,
    )


@pytest.fixture
def probed(tmp_path: Path) -> Path:
    """Return a folder with a flow whose command writes down what its descriptors are."""
    (tmp_path / "a.flow.yaml").write_text(FLOW.format(python=sys.executable))
    (tmp_path / "probe.py").write_text(
        "import os\n"
        "found = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]\n"
        "open('found.txt', 'w').write(' '.join(found))\n"
        "os.write(1, b'out'), os.write(2, b'err')\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("--help",),
        ("check", "--format", "json", "a.flow.yaml"),
        ("explain", "a.flow.yaml", "connect tcp 192.0.2.1:443"),
        ("compile", "--target", "linux-x86_64", "--emit", "listing", "a.flow.yaml"),
        ("fmt", "a.flow.yaml"),
        ("audit", "."),
    ],
)
def test_an_answer_to_a_closed_descriptor_is_no_answer(
    probed: Path, words: tuple[str, ...]
) -> None:
    done = _without(">&-", *words, cwd=probed)
    assert done.returncode == 4, done.stderr
    assert "cannot write the answer: it is closed" in done.stderr
    assert _without(">&- 2>&-", *words, cwd=probed).returncode == 4
    assert _without("<&- >&- 2>&-", *words, cwd=probed).returncode == 4


def test_what_is_told_to_a_closed_standard_error_changes_no_exit_code(probed: Path) -> None:
    done = _without("2>&-", "check", "none.flow.yaml", cwd=probed)
    assert (done.returncode, done.stderr) == (2, "")
    done = _without("2>&- <&-", "check", "a.flow.yaml", cwd=probed)
    assert done.returncode == flowproof("check", str(probed / "a.flow.yaml")).returncode


def test_a_full_disk_is_no_answer_of_the_version() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flowproof", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
        )
    assert (done.returncode, "No space left" in done.stderr) == (4, True)


@pytest.mark.skipif(sys.platform != "linux", reason="what /proc says of descriptors")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_finds_the_null_device_where_a_descriptor_was_closed(
    probed: Path, closed: str
) -> None:
    done = _without(closed, "run", "a.flow.yaml", cwd=probed)
    assert done.returncode == 0, done.stderr
    found = (probed / "found.txt").read_text().split()
    for number, sign in enumerate(("<&-", ">&-", "2>&-")):
        if sign in closed.split():
            assert found[number] == "/dev/null", found
