"""Diagnostics as data: every finding of `check --format json` has the shape that its schema says."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from flowproof.cli.main import main
from flowproof.resources import data

SCHEMA = json.loads(data("schema", "diagnostics.schema.json"))
VALID = Draft202012Validator(SCHEMA)
VECTORS = Path(__file__).parents[1] / "vectors"


def answer(capsys: pytest.CaptureFixture[str], *paths: str) -> dict[str, Any]:
    code = main(["check", *paths, "--format", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["exit"]["code"] == code
    assert [error.message for error in VALID.iter_errors(found)] == []
    return found


def test_the_schema_refuses_what_lacks_a_member() -> None:
    whole = {"schema": "flowproof/diagnostics/v1", "controls": [], "diagnostics": []}
    assert not VALID.is_valid(whole)
    exit_ = {"code": 0, "reason": "r", "because": []}
    assert VALID.is_valid({**whole, "exit": exit_})
    assert not VALID.is_valid({**whole, "exit": {**exit_, "code": 70}})


def test_a_finding_has_its_place_its_text_its_way_out_and_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.flow.yaml").write_text(
        "name: é\ncontrol:\n  id: t.f\n  rules:\n    t.f.a: deni connect to ::1\n"
    )
    (found,) = answer(capsys, "x.flow.yaml")["diagnostics"]
    assert found == {
        "code": "FP302",
        "severity": "error",
        "message": "`deni` is no word of the language here",
        "help": "did you mean `deny`?",
        "page": "docs/codes/FP302.md",
        "file": "x.flow.yaml",
        "line": 5,
        "column": 12,
        "end_line": 5,
        "end_column": 16,
        "text": "deni",
        "related": [],
    }


def test_further_places_are_given_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.flow.yaml").write_text(
        "name: T\ncontrol: {id: t.f, rules: {a: deny connect to ::1}}\nname: U\n"
    )
    (found,) = answer(capsys, "x.flow.yaml")["diagnostics"]
    (related,) = found["related"]
    assert (found["line"], found["text"]) == (3, "name")
    assert (related["file"], related["line"], related["column"]) == ("x.flow.yaml", 1, 1)
    assert related["message"] == "`name` is given here"


def test_a_finding_without_a_file_has_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = answer(capsys, "missing.flow.yaml")["diagnostics"]
    assert found["file"] is found["line"] is found["text"] is None
    assert found["message"] == "`missing.flow.yaml` cannot be read: there is no such file"


def test_every_refused_vector_is_told_in_that_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = set()
    for vector in json.loads((VECTORS / "errors.json").read_text(encoding="utf-8")):
        folder = tmp_path / vector["id"]
        contents = {name: text.encode() for name, text in vector.get("files", {}).items()}
        contents |= {k: base64.b64decode(v) for k, v in vector.get("files_b64", {}).items()}
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        monkeypatch.chdir(folder)
        for found in answer(capsys, vector["path"])["diagnostics"]:
            codes.add(found["code"])
            if found["file"] is not None and found["line"] == found["end_line"]:
                line = Path(found["file"]).read_bytes().decode("utf-8-sig", "replace")
                assert found["text"] in line
    assert len(codes) > 40
