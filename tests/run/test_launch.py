"""The command's process as the command finds it: arguments, environment, descriptors, signals."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from runnable import command, deny, python

from flowproof.record.model import End
from flowproof.run.command import Command
from flowproof.run.recorder import Outcome, run

enforce = pytest.mark.enforce


def output(tmp_path: Path, found: Command, capfd: pytest.CaptureFixture[str]) -> str:
    outcome = run(deny(), found, record_root=str(tmp_path), proven=True)
    assert outcome.record.command.end == End("exit", 0), outcome.reasons
    return capfd.readouterr().out


@enforce
def test_the_arguments_arrive_as_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert output(tmp_path, command("printf", "%s|", "a b", "$HOME", "*"), capfd) == "a b|$HOME|*|"


@enforce
def test_the_environment_is_flowproofs_with_the_flows_additions(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTSIDE", "kept")
    found = command("sh", "-c", "echo $OUTSIDE $TZ", env={"TZ": "UTC"})
    assert output(tmp_path, found, capfd) == "kept UTC\n"


@enforce
def test_the_prompt_arrives_and_one_from_outside_does_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWPROOF_PROMPT", "stale")
    show = ("sh", "-c", "echo ${FLOWPROOF_PROMPT-none}")
    assert output(tmp_path, command(*show, prompt="Tidy up"), capfd) == "Tidy up\n"
    assert output(tmp_path, command(*show), capfd) == "none\n"


@enforce
def test_the_start_folder_is_the_commands(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "start").mkdir()
    found = command("sh", "-c", "pwd -P; echo $PWD", cwd=str(tmp_path / "start"))
    assert output(tmp_path, found, capfd) == f"{tmp_path}/start\n" * 2


@enforce
def test_the_program_is_searched_in_the_commands_own_path(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, mode, text in (("one", 0o644, ""), ("two", 0o755, "#!/bin/sh\necho found\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tool").write_text(text)
        (folder / "tool").chmod(mode)
    path = f"{tmp_path}/none:{tmp_path}/one:{tmp_path}/two:/bin"
    assert output(tmp_path, command("tool", env={"PATH": path}), capfd) == "found\n"


@enforce
def test_standard_output_goes_to_standard_error_where_asked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(
        deny(),
        command("echo", "hello"),
        record_root=str(tmp_path),
        proven=True,
        stdout_to_stderr=True,
    )
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


@enforce
def test_an_inherited_descriptor_is_closed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    os.dup2(write, 77, inheritable=True)
    code = "import os\nfound = sorted(map(int, os.listdir('/proc/self/fd')))\nprint([f for f in found if f > 3])\ntry:\n    os.write(77, b'out')\nexcept OSError as error:\n    print(error.errno)"
    assert output(tmp_path, python(code), capfd) == "[]\n9\n"
    for file in (read, write, 77):
        os.close(file)


@enforce
def test_the_signals_that_python_ignores_are_the_commands_own_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ignored = output(tmp_path, command("grep", "SigIgn", "/proc/self/status"), capfd)
    mask = int(ignored.split()[1], 16)
    assert not mask & (1 << 12 | 1 << 24)  # SIGPIPE, SIGXFSZ


@enforce
def test_the_command_cannot_trace_or_read_the_supervisor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import os\nprint(os.stat(f'/proc/{os.getppid()}/mem').st_uid, os.stat('/proc/self/mem').st_uid)"
    shown = output(tmp_path, python(code), capfd).split()
    assert shown == ["0", str(os.getuid())]  # a non-dumpable process is root's in /proc


@enforce
def test_a_kill_of_the_commands_own_group_reaches_only_the_command(tmp_path: Path) -> None:
    terminal = os.dup(0)
    with open(os.devnull, "rb") as nothing:  # away from a terminal, whatever pytest was started on
        os.dup2(nothing.fileno(), 0)
    try:
        outcome = ended(tmp_path, command("sh", "-c", "kill -9 0; sleep 5"))
    finally:
        os.dup2(terminal, 0)
        os.close(terminal)
    assert outcome.record.command.end == End("signal", 9)
    assert outcome.record.supervisor.alive


def ended(tmp_path: Path, found: Command) -> Outcome:
    return run(deny(), found, record_root=str(tmp_path), proven=True)


def test_a_command_without_a_program_is_refused() -> None:
    with pytest.raises(ValueError, match="program"):
        command()
    with pytest.raises(ValueError, match="NUL"):
        command("a\0b")
    with pytest.raises(ValueError, match="timeout"):
        command("a", timeout=0)


def test_the_arguments_are_digested_apart() -> None:
    assert command("a", "b c").sha256 != command("a", "b", "c").sha256


@pytest.mark.skipif(sys.platform == "win32", reason="paths are written otherwise there")
def test_a_program_with_a_slash_is_not_searched() -> None:
    assert command("./tool").programs({"PATH": "/bin"}) == ("./tool",)
    assert command("tool").programs({"PATH": "/bin::/x"}) == ("/bin/tool", "./tool", "/x/tool")
