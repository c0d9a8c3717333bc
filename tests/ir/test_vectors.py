"""The language as examples: events and their expected handling, by the reference meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowproof.diagnostics import Report
from flowproof.ir.evaluate import evaluate
from flowproof.ir.events import parse_event
from flowproof.ir.model import Policy
from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load

VECTORS: list[dict[str, Any]] = [
    vector
    for name in ("connect.json", "files.json")
    for vector in json.loads(
        (Path(__file__).parents[1] / "vectors" / name).read_text(encoding="utf-8")
    )
]


def policy_of(vector: dict[str, Any], folder: Path) -> Policy:
    for name, text in vector["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    report = Report()
    suite = load(str(folder / vector["path"]), report)
    assert suite is not None, list(report)
    (resolved,) = resolve_suite(suite, report)
    assert not report.errors
    return resolved.policy


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["id"]))
def test_vector_is_judged_as_the_page_says(vector: dict[str, Any], tmp_path: Path) -> None:
    policy = policy_of(vector, tmp_path)
    report = Report()
    event = parse_event(vector["event"], report)
    assert event is not None, list(report)
    judged = evaluate(policy, event)
    assert {
        "handling": judged.handling,
        "by": judged.by,
        "asserting": list(judged.asserting),
        "verdict": judged.verdict,
    } == {key: value for key, value in vector["expect"].items() if key != "event"}


def test_every_vector_has_an_id_of_its_own() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS) > 300
