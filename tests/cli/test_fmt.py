"""`flowproof fmt`: what it prints, what it writes, and what it never touches."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from flowproof.cli.main import main
from flowproof.fmt.document import MeaningMovedError, formatted
from flowproof.source.suite import LoadedFlow

GOOD = "name: T\ncontrol:\n  id: t.f\n  rules:\n    t.f.a: deny connect to 10.0.0.1  # why\n"
LOOSE = GOOD.replace("deny connect to", "deny  connect  to")
WRONG = GOOD.replace("deny connect", "deni connect")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_files_form_goes_to_standard_output(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "x.flow.yaml").write_text(LOOSE, newline="\r\n")
    assert main(["fmt", "x.flow.yaml"]) == 0
    assert capfdbinary.readouterr().out == GOOD.replace("\n", "\r\n").encode()
    assert (folder / "x.flow.yaml").read_bytes() == LOOSE.replace("\n", "\r\n").encode()


def test_several_files_need_an_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.flow.yaml", "b.flow.yaml"):
        (folder / name).write_text(GOOD)
    assert main(["fmt", "."]) == 2
    assert "`--check`" in capsys.readouterr().err
    assert main(["fmt", ".", "--check", "--write"]) == 2
    assert main(["fmt", ".", "--check=yes"]) == 2
    assert "takes no value" in capsys.readouterr().err


def test_check_names_what_would_change(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.flow.yaml").write_text(GOOD)
    assert main(["fmt", ".", "--check"]) == 0
    assert capsys.readouterr().out == ""
    (folder / "sub").mkdir()
    (folder / "sub" / "p.policy.yaml").write_text('policy: p\nrules: {a: "deny connect to ::1"}\n')
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "b.flow.yaml").write_text(LOOSE)
    assert main(["fmt", ".", "--check"]) == 1
    assert capsys.readouterr().out == f"would format {os.path.join('.', 'sub', 'p.policy.yaml')}\n"


def test_diff_shows_the_lines_that_would_change(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.flow.yaml").write_text(LOOSE)
    assert main(["fmt", "x.flow.yaml", "--diff"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[0] in "+-"] == [
        "--- x.flow.yaml",
        "+++ x.flow.yaml (formatted)",
        "-    t.f.a: deny  connect  to 10.0.0.1  # why",
        "+    t.f.a: deny connect to 10.0.0.1  # why",
    ]
    assert (folder / "x.flow.yaml").read_text() == LOOSE


def test_write_changes_the_file_behind_a_link_and_keeps_its_mode(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "real.flow.yaml"
    path.write_text(LOOSE)
    path.chmod(0o640)
    (folder / "x.flow.yaml").symlink_to("real.flow.yaml")
    assert main(["fmt", "x.flow.yaml", "--write"]) == 0
    assert capsys.readouterr().out == "formatted x.flow.yaml\n"
    assert (folder / "x.flow.yaml").is_symlink()
    assert path.read_text() == GOOD
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(entry.name for entry in folder.iterdir()) == ["real.flow.yaml", "x.flow.yaml"]
    assert main(["fmt", "x.flow.yaml", "--write"]) == 0
    assert capsys.readouterr().out == ""


def test_a_file_with_errors_is_not_touched_and_the_others_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "good.flow.yaml").write_text(LOOSE)
    (folder / "wrong.flow.yaml").write_text(WRONG)
    assert main(["fmt", ".", "--write"]) == 2
    assert "did you mean `deny`?" in capsys.readouterr().err
    assert (folder / "good.flow.yaml").read_text() == GOOD
    assert (folder / "wrong.flow.yaml").read_text() == WRONG
    assert main(["fmt", "wrong.flow.yaml"]) == 2
    assert capsys.readouterr().out == ""
    assert main(["fmt", "missing.flow.yaml"]) == 2


def test_a_folder_with_nothing_to_format_is_said(folder: Path) -> None:
    assert main(["fmt", str(folder), "--check"]) == 4


def test_a_form_with_another_meaning_is_a_bug_and_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.flow.yaml").write_text(LOOSE)
    (folder / "b.flow.yaml").write_text(LOOSE)

    def wrong(loaded: LoadedFlow, data: bytes, before: str) -> bytes:
        new = formatted(loaded, data, before)
        if "b.flow" in loaded.flow.path:
            raise MeaningMovedError("moved")
        return new

    monkeypatch.setattr("flowproof.cli.commands.fmt.formatted", wrong)
    monkeypatch.setenv("FLOWPROOF_TRACEBACK", "1")
    assert main(["fmt", ".", "--write"]) == 70
    assert "bug in flowproof" in capsys.readouterr().err
    assert (folder / "a.flow.yaml").read_text() == LOOSE


def test_a_file_that_cannot_be_replaced_is_said_and_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "x.flow.yaml").write_text(LOOSE)

    def refused(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refused)
    assert main(["fmt", "x.flow.yaml", "--write"]) == 4
    assert "cannot write `x.flow.yaml`" in capsys.readouterr().err
    assert [entry.name for entry in folder.iterdir()] == ["x.flow.yaml"]
    assert (folder / "x.flow.yaml").read_text() == LOOSE
