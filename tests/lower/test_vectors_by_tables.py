"""The language as examples, once more: what the decision tables of the serialised artifact say of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from authored import load_policy

from flowproof.artifact import codec
from flowproof.artifact.model import Decision
from flowproof.diagnostics import Report
from flowproof.ir.events import (
    Connect,
    ConnectName,
    Event,
    Family,
    Foreign,
    Listen,
    Unix,
    parse_event,
)
from flowproof.lower.backend import compile_policy
from flowproof.run.decide import Decisions

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "connect.json").read_text(encoding="utf-8")
)


def event_of(vector: dict[str, Any]) -> Event:
    report = Report()
    event = parse_event(vector["event"], report)
    assert event is not None, list(report)
    return event


BY_ADDRESS = [vector for vector in VECTORS if not isinstance(event_of(vector), ConnectName)]
BY_NAME = [vector for vector in VECTORS if isinstance(event_of(vector), ConnectName)]


def decide(decisions: Decisions, event: Event) -> Decision:
    match event:
        case Connect():
            return decisions.address(f"{event.protocol}{event.family}", event.address, event.port)
        case Listen():
            plane = f"listen{'' if event.address else '-any'}{event.family}"
            return decisions.address(plane, event.address, event.port)
        case Family():
            return decisions.special("families")
        case Foreign():
            return decisions.special("foreign-abi")
        case Unix():
            for path, outside, inside in decisions.unix:
                if path == event.path:
                    return inside if event.inside else outside
            # An inside socket that no rule names is let through before any table is asked.
            return Decision(False, None, (), ()) if event.inside else decisions.special("unix")
        case _:
            raise AssertionError(event)


@pytest.mark.parametrize("vector", BY_ADDRESS, ids=lambda vector: str(vector["id"]))
def test_tables_say_what_the_page_says(vector: dict[str, Any], tmp_path: Path) -> None:
    for name, text in vector["files"].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    policy = load_policy(str(tmp_path), vector["path"])
    event = event_of(vector)
    artifact = codec.loads(codec.dumps(compile_policy(policy, "linux-x86_64")))
    if not artifact.lanes:  # nothing is trapped: no event comes to the tables
        assert (vector["expect"]["handling"], vector["expect"]["asserting"]) == ("let-through", [])
        return
    decision = decide(Decisions(artifact.tables, artifact.rules), event)
    ids = [rule.id for rule in artifact.rules]
    asserting = () if isinstance(event, Connect) and event.probe else decision.asserting
    assert {
        "handling": "refused" if decision.refused else "let-through",
        "by": None if decision.by is None else ids[decision.by],
        "asserting": [ids[at] for at in asserting],
    } == {name: vector["expect"][name] for name in ("handling", "by", "asserting")}


def test_vectors_by_name_wait_for_a_binding() -> None:
    """An event by an unbound name is `explain`'s: a run decides addresses. The rest is all here."""
    assert len(BY_ADDRESS) + len(BY_NAME) == len(VECTORS)
    assert len(BY_ADDRESS) > 180
    for vector in BY_NAME:
        assert any(letter.isalpha() for letter in vector["event"].split()[-1])
