"""Every example of the language through the command line: exit codes, places, and words that are printed."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from flowproof.cli.main import main

VECTORS = Path(__file__).parents[1] / "vectors"


CASES = [
    pytest.param(vector, id=f"{path.stem}:{vector['id']}")
    for path in sorted(VECTORS.glob("*.json"))
    for vector in json.loads(path.read_text(encoding="utf-8"))
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, vector: dict[str, object]) -> None:
    files = {name: text.encode() for name, text in vector.get("files", {}).items()}  # type: ignore[attr-defined]  # JSON
    files |= {
        name: base64.b64decode(text)
        for name, text in vector.get("files_b64", {}).items()  # type: ignore[attr-defined]  # JSON
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("vector", CASES)
def test_the_command_line_answers_as_the_vector_says(
    vector: dict[str, object], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(place, vector)
    path, event = str(vector["path"]), vector.get("event")
    if "expect" in vector:
        assert main(["explain", path, str(event), "--format", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        expected = vector["expect"]
        assert isinstance(expected, dict)
        assert {key: answer[key] for key in expected} == expected
        return
    if event is not None:
        code = main(["explain", path, str(event)])
    elif vector["command"] == "compile":
        code = main(["compile", path, "--target", "linux-x86_64"])
    else:
        code = main(["check", path])
    printed = capsys.readouterr()
    text = printed.out + printed.err
    assert code == vector["exit"], text
    errors = vector.get("errors", [])
    assert isinstance(errors, list)
    for error in errors:
        place_text = ":".join(
            str(error[key]) for key in ("file", "line", "column") if error.get(key) is not None
        )
        assert f"{place_text}:" in text
        for word in error["mentions"]:
            assert word in text
