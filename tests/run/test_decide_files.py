"""Bound rows against the reference meaning: the examples of the language, and random policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from authored import load_policy, policy
from hypothesis import given
from hypothesis import strategies as st

from flowproof.artifact import codec
from flowproof.artifact.model import Decision
from flowproof.diagnostics import Report
from flowproof.ir.evaluate import evaluate
from flowproof.ir.events import FileAttempt, parse_event
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy
from flowproof.run.decide_files import FileDecisions
from flowproof.values import replace

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "files.json").read_text(encoding="utf-8")
)
EVENTS = [vector for vector in VECTORS if "event" in vector]


def decisions(meant: Policy) -> FileDecisions:
    """Return the decisions of the rows, through the serialised artifact and as they are written."""
    artifact = codec.loads(codec.dumps(compile_policy(meant, "linux-x86_64")))
    return FileDecisions(artifact.tables.files, artifact.rules)


def decide(found: FileDecisions, event: FileAttempt) -> Decision:
    if event.destination is None:
        return found.single(event.operation, event.path)
    return found.rename(event.path, event.destination, replaces=event.replaces)


def told(meant: Policy, event: FileAttempt) -> set[str]:
    """Return the rules that `observe` or expect none of *event*, by the reference meaning."""
    twins = tuple(
        replace(rule, verb="expect no") if rule.verb == "observe" else rule for rule in meant.rules
    )
    asserting = set(evaluate(replace(meant, rules=twins), event).asserting)
    return {rule.id for rule in meant.rules if rule.verb in ("observe", "expect no")} & asserting


def compared(meant: Policy, event: FileAttempt) -> None:
    decision = decide(decisions(meant), event)
    ids = {meant.rules[at].id for at in (*decision.asserting, *decision.observing)}
    assert ids == told(meant, event), str(event)
    assert (decision.refused, decision.by) == (False, None)
    verbs = {meant.rules[at].verb for at in decision.asserting}
    assert verbs <= {"expect no"}


@pytest.mark.parametrize("vector", EVENTS, ids=lambda vector: str(vector["id"]))
def test_rows_count_what_the_page_counts(vector: dict[str, Any], tmp_path: Path) -> None:
    for name, text in vector["files"].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    meant = load_policy(str(tmp_path), vector["path"])
    event = parse_event(vector["event"], Report())
    assert isinstance(event, FileAttempt)
    compared(meant, event)
    # and with every rule that refuses turned into one that only counts
    turned = tuple(
        replace(rule, verb="expect no")
        if rule.action == "files" and rule.refuses and rule.kind == "authored"
        else rule
        for rule in meant.rules
    )
    compared(replace(meant, rules=turned), event)


PATHS = ("/a", "/a/b", "/ab", "/a/b/c.txt", "/a/c.txt", "/", "/x", "/x/.t", "/x/y/z")
WHERE = (
    "under /a",
    "under /a/b, /x",
    "under /",
    "at /a/*",
    "at /a/**",
    "at /**/*.txt, /x",
    "at /x/*/z",
    "anywhere",
    "anywhere else",
)
EXCEPT = ("", " except under /a/b", " except at /a/*.txt")
OPERATIONS = ("delete", "rename", "truncate", "write", "destroy", "delete, write")

sentences = st.builds(
    lambda verb, operations, where, excepted: f"{verb} {operations} {where}{excepted}",
    st.sampled_from(("observe", "expect no")),
    st.sampled_from(OPERATIONS),
    st.sampled_from(WHERE),
    st.just(""),
)
excepting = st.builds(
    lambda verb, operations, excepted: f"{verb} {operations} anywhere{excepted}",
    st.sampled_from(("observe", "expect no")),
    st.sampled_from(OPERATIONS),
    st.sampled_from(EXCEPT),
)
allows = st.sampled_from(
    ("allow delete under /a", "allow write at /x/*", "allow destroy under /a except under /a/b")
)
events = st.one_of(
    st.builds(
        FileAttempt, st.sampled_from(("delete", "truncate", "write")), st.sampled_from(PATHS)
    ),
    st.builds(
        FileAttempt,
        st.just("rename"),
        st.sampled_from(PATHS),
        st.sampled_from(PATHS),
        st.booleans(),
    ),
)


@given(
    st.lists(st.one_of(sentences, excepting), min_size=1, max_size=4),
    st.lists(allows, max_size=1),
    st.lists(events, min_size=1, max_size=8),
)
def test_rows_count_what_the_reference_meaning_counts(
    written: list[str], allowed: list[str], attempts: list[FileAttempt]
) -> None:
    meant = policy({f"r{at}": text for at, text in enumerate((*written, *allowed))})
    for event in attempts:
        compared(meant, event)


def test_many_folders_are_looked_up_and_mean_the_same() -> None:
    few, many = (
        decisions(
            policy({"r": "expect no delete under " + ", ".join(f"/d{at}" for at in range(n))})
        )
        for n in (2, 40)
    )
    for path in ("/d1", "/d1/x/y", "/d1x", "/", "/d"):
        assert few.single("delete", path).asserting == many.single("delete", path).asserting, path
    assert many.single("delete", "/d39/deep/er").asserting


def test_an_exchange_takes_out_of_a_folder_both_ways() -> None:
    found = decisions(policy({"r": "expect no delete under /a"}))
    for source, target in (("/a/x", "/b"), ("/b", "/a/x")):
        assert found.rename(source, target, replaces=False, exchange=True).asserting
    assert found.rename("/b", "/a/x", replaces=False).asserting == ()
    assert found.rename("/a/x", "/a/y", replaces=False, exchange=True).asserting == ()
