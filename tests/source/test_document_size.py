"""What a document may hold is bounded, and the bound is named where it is passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowproof.diagnostics import Report
from flowproof.source import compose
from flowproof.source.suite import load

HEAD = "policy: p\nrules:\n"


def codes_of(text: str, folder: Path) -> list[str]:
    path = folder / "p.policy.yaml"
    path.write_text(text, encoding="utf-8")
    report = Report()
    load(str(path), report)
    return [f"{found.code}:{found.span.line if found.span else None}" for found in report.errors]


def test_a_document_of_too_many_values_is_refused_at_the_first_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compose, "NODES", 9)
    rules = [f"  r{number}: deny connect to 10.0.0.{number}\n" for number in range(1, 9)]
    assert codes_of(HEAD + "".join(rules[:2]), tmp_path) == []
    assert codes_of(HEAD + "".join(rules), tmp_path) == ["FP202:6"]


def test_a_value_of_too_many_characters_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = "deny connect to 10.0.0.1, 10.0.0.2"
    monkeypatch.setattr(compose, "LENGTH", len(sentence))
    assert codes_of(f"{HEAD}  a: {sentence}\n", tmp_path) == []
    assert codes_of(f"{HEAD}  a: {sentence}1\n", tmp_path) == ["FP202:3"]
