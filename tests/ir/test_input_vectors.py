"""Input that `check` accepts or refuses: every error of it, its place, and the words it must mention."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from flowproof.diagnostics import Diagnostic, Report
from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load

FOLDER = Path(__file__).parents[1] / "vectors"
ERRORS: list[dict[str, Any]] = json.loads((FOLDER / "errors.json").read_text(encoding="utf-8"))
ACCEPTED: list[dict[str, Any]] = json.loads((FOLDER / "accepted.json").read_text(encoding="utf-8"))
CHECKED = [vector for vector in ERRORS if vector["exit"] == 2]


def errors_of(
    vector: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Diagnostic, ...]:
    monkeypatch.chdir(folder)
    for name, text in vector["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    for name, encoded in vector.get("files_b64", {}).items():
        (folder / name).write_bytes(base64.b64decode(encoded))
    report = Report()
    suite = load(vector["path"], report)
    if suite is not None:
        resolve_suite(suite, report)
    return report.errors


def said(error: Diagnostic) -> str:
    return " ".join([error.message, error.help or "", *(text for _, text in error.related)])


def fits(error: Diagnostic, expected: dict[str, Any]) -> bool:
    span = error.span
    return (
        span is not None
        and expected["file"] in (None, span.file)
        and expected["line"] in (None, span.line)
        and expected["column"] in (None, span.column)
        and all(word in said(error) for word in expected["mentions"])
    )


@pytest.mark.parametrize("vector", CHECKED, ids=lambda vector: str(vector["id"]))
def test_each_error_is_found_at_its_place_and_no_other(
    vector: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = errors_of(vector, tmp_path, monkeypatch)
    shown = [(str(error.span), said(error)) for error in found]
    for expected in vector["errors"]:
        assert any(fits(error, expected) for error in found), (expected, shown)
    assert len(found) == len(vector["errors"]), shown
    assert all(error.exit == 2 for error in found)


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: str(vector["id"]))
def test_input_that_reads_well_is_accepted(
    vector: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert errors_of(vector, tmp_path, monkeypatch) == ()


def test_what_only_a_backend_refuses_is_no_error_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = [vector for vector in ERRORS if vector["exit"] == 3]
    assert len(compiled) + len(CHECKED) == len(ERRORS)
    for vector in compiled:
        folder = tmp_path / vector["id"]
        folder.mkdir()
        assert errors_of(vector, folder, monkeypatch) == ()
