"""Files that are none, and names that no text is: no command hangs on one or takes it for a bug of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from handmade_runs import rule, write_run

ROOT = Path(__file__).parents[2]
FLOW = """\
name: Tidy up
agent:
  command: "true"
control:
  id: bot.a
  uses: [{uses}]
  rules:
    bot.a.rest: deny connect to anything else
"""
EVENT = "connect tcp 192.0.2.1:443"
KINDS = ("pipe", "socket", "device")


def flowproof(cwd: Path, *words: str) -> tuple[int, str]:
    """Return the exit code and everything said; a command that waits is ended."""
    done = subprocess.run(
        [sys.executable, "-m", "flowproof", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="backslashreplace",
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        check=False,
        timeout=15,
    )
    return done.returncode, done.stdout


def make(path: Path, kind: str) -> None:
    """Put at *path* what is no regular file."""
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        case _:
            path.symlink_to("/dev/zero")  # a device without an end


COMMANDS = (
    ("check", "{}"),
    ("run", "{}"),
    ("explain", "{}", EVENT),
    ("fmt", "--check", "{}"),
    ("compile", "--target", "linux-x86_64", "{}"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_flow_that_is_no_regular_file_is_refused(
    tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    make(tmp_path / "a.flow.yaml", kind)
    code, said = flowproof(tmp_path, *(word.format("a.flow.yaml") for word in command))
    assert (code, "FP230" in said, f"it is a {kind} and no file" in said) == (2, True, True), said


def test_a_pack_that_is_a_pipe_is_refused_at_each_use_of_it(tmp_path: Path) -> None:
    make(tmp_path / "x.policy.yaml", "pipe")
    (tmp_path / "a.flow.yaml").write_text(FLOW.format(uses="x.policy.yaml, ./x.policy.yaml"))
    for command in COMMANDS:
        code, said = flowproof(tmp_path, *(word.format("a.flow.yaml") for word in command))
        assert code == 2, said
        assert "a.flow.yaml:6:10" in said
        assert said.count("it is a pipe and no file") == 2


@pytest.mark.parametrize(
    "words", [("check", "."), ("run", "."), ("fmt", "--check", "."), ("audit", ".")]
)
def test_a_pipe_among_the_files_of_a_folder_is_refused(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    make(tmp_path / "a.flow.yaml", "pipe")
    make(tmp_path / "b.policy.yaml", "pipe")
    code, said = flowproof(tmp_path, *words)
    assert (code, "it is a pipe and no file" in said) == (2, True), said


@pytest.mark.parametrize("kind", KINDS)
def test_a_hosts_file_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "hosts", kind)
    (tmp_path / "a.flow.yaml").write_text(FLOW.format(uses=""))
    words = ("compile", "--target", "linux-x86_64", "--hosts", "hosts", "a.flow.yaml")
    code, said = flowproof(tmp_path, *words)
    assert (code, "FP602" in said, f"it is a {kind} and no file" in said) == (2, True, True), said


@pytest.mark.parametrize("kind", KINDS)
def test_an_artifact_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "a.json", kind)
    (tmp_path / "a.flow.yaml").write_text(FLOW.format(uses=""))
    for words in (("verify", "a.json", "a.flow.yaml"), ("run", "a.json", "--", "true")):
        code, said = flowproof(tmp_path, *words)
        assert (code, f"it is a {kind} and no file" in said) == (2, True), said


@pytest.mark.parametrize("name", ["record.json", "connect.jsonl"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_a_record_that_is_no_regular_file_is_no_evidence(
    tmp_path: Path, name: str, kind: str
) -> None:
    folder = write_run(tmp_path, "bot.a", (rule("bot.a.rest"),))
    assert flowproof(tmp_path, "audit", ".")[0] == 0
    (folder / name).unlink()
    place = os.getcwd()
    os.chdir(folder)  # the address of a socket is short
    try:
        make(Path(name), kind)
    finally:
        os.chdir(place)
    code, said = flowproof(tmp_path, "audit", ".")
    assert (code, f"it is a {kind} and no file" in said) == (4, True), said


NAME = os.fsdecode(b"bad\xff.flow.yaml")
SPELT = r"bad\udcff"
EVERY = (
    *COMMANDS,
    ("check", "--format", "json", "{}"),
    ("explain", "--format", "json", "{}", EVENT),
    ("fmt", "{}"),
    ("fmt", "--diff", "{}"),
    ("fmt", "--write", "{}"),
    ("run", "--format", "json", "{}"),
    *(
        ("compile", "--target", "linux-x86_64", "--emit", form, "{}")
        for form in ("listing", "ir", "json", "bin")
    ),
    ("compile", "--target", "linux-x86_64", "-o", "out", "{}"),
)


@pytest.fixture
def unnamed(tmp_path: Path) -> Path:
    """Return a folder, itself of such a name, with a flow and a pack whose names are not UTF-8."""
    folder = tmp_path / os.fsdecode(b"\xfe")
    folder.mkdir()
    text = FLOW.format(uses=r'"p.policy.yaml"').replace("deny connect", "deny   connect")
    (folder / NAME).write_text(text)
    (folder / "p.policy.yaml").write_text("policy: p\nrules:\n  p.m: never connect to metadata\n")
    return folder


@pytest.mark.parametrize("command", EVERY, ids=lambda command: " ".join(command[:-1]))
def test_a_name_that_is_not_utf_8_is_read_like_any_other(
    unnamed: Path, command: tuple[str, ...]
) -> None:
    for name in (NAME, str(unnamed / NAME)):
        code, said = flowproof(unnamed, *(word.format(name) for word in command))
        wanted = 1 if "--diff" in command or "--check" in command else 0
        assert (code, "bug" in said) == (wanted, False), said


def test_such_a_name_is_spelt_in_what_is_said_and_kept(unnamed: Path) -> None:
    assert SPELT in flowproof(unnamed, "explain", NAME, EVENT)[1]
    assert SPELT in flowproof(unnamed, "run", NAME)[1]
    for words in (("check", NAME), ("explain", NAME, EVENT), ("run", NAME), ("audit", ".")):
        said = flowproof(unnamed, *words, "--format", "json")[1]
        assert r"bad\\udcff" in said  # as a text of seven characters: a lone surrogate is no JSON
        assert r"bad\udcff" not in said.replace("\\\\", "")
    (record, *_) = (unnamed / ".flowproof" / "runs").glob("*/record.json")
    assert rb"bad\\udcff.flow.yaml" in record.read_bytes()
    (unnamed / NAME).write_text("name: 1\ncontrol: 2\n")
    for words in (("check", NAME), ("run", NAME), ("fmt", NAME), ("audit", ".")):
        code, said = flowproof(unnamed, *words)
        assert (code, SPELT in said) == (2, True), said


def test_runs_from_a_folder_of_such_a_name_are_found_again(unnamed: Path) -> None:
    assert flowproof(unnamed.parent, "run", str(unnamed / NAME))[0] == 0
    assert (unnamed / ".flowproof" / "runs").is_dir()
    assert [path.name for path in unnamed.parent.iterdir()] == [unnamed.name]
    for words in (("audit", str(unnamed)), ("audit", "."), ("audit", "--format", "json", ".")):
        code, said = flowproof(unnamed.parent, *words)
        assert code == 0, said


@pytest.mark.parametrize(
    "words",
    [("check", "{}"), ("run", "{}"), ("explain", "{}"), ("audit", "{}"), ("{}",), ("fmt", "{}")],
)
def test_such_a_name_of_nothing_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    for name in (b"\xff", b"\xff.flow.yaml", b"\xff.policy.yaml"):
        code, said = flowproof(tmp_path, *(word.format(os.fsdecode(name)) for word in words))
        assert (code, r"\udcff" in said) == (2, True), said
