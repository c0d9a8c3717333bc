"""Random policies: meaning, program, tables, filter set and bound run agree at every boundary."""

from __future__ import annotations

import random

import pytest
from authored import policy
from comparison import (
    Judge,
    Seen,
    compare,
    compare_filters,
    compare_program,
    compare_tables,
    events,
    random_policy,
)

from flowproof.artifact.model import Artifact, Entry, Program
from flowproof.lower.backend import compile_policy
from flowproof.run.decide import Decisions
from flowproof.values import replace
from flowproof.verify.wfp import Ambiguous


@pytest.mark.timeout(300)
def test_random_policies_become_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    seen = Seen()
    for seed in range(200):
        rng = random.Random(seed)
        compare(random_policy(rng), seen, rng)
    with capsys.disabled():
        print(f"\n{seen}")
    assert seen.policies == 200
    assert len(seen.programs) >= 6
    assert len(seen.tables) >= 150
    assert seen.windows >= 25
    assert seen.bound >= 25


# A comparison is worth what it catches.

CONTROL = policy(
    {
        "api": "allow connect tcp to 10.0.0.0/24:443",
        "look": "observe connect udp to private",
        "no-db": "never connect to 10.0.0.9, unix:/run/x.sock",
        "rest": "deny connect to anything else",
        "srv": "allow listen on anything:8080",
    }
)


def _artifact(target: str = "linux-x86_64") -> Artifact:
    return compile_policy(CONTROL, target)


def _compare_entry(at: int, entry: Entry) -> None:
    artifact = _artifact()
    entries = list(artifact.tables.entries)
    entries[at] = entry
    tables = replace(artifact.tables, entries=tuple(entries))
    changed = replace(artifact, tables=tables)
    compare_tables(CONTROL, changed, Decisions(tables, changed.rules), Judge(CONTROL), Seen())


@pytest.mark.parametrize("at", range(len(_artifact().tables.entries)))
def test_an_entry_that_is_changed_is_caught(at: int) -> None:
    artifact = _artifact()
    entry = artifact.tables.entries[at]
    _compare_entry(at, entry)
    decided = entry.decide(artifact.rules)
    if not decided.refused or decided.asserting:
        with pytest.raises(AssertionError):
            _compare_entry(at, replace(entry, refuse=(3,), watch=()))
    if decided.refused:
        with pytest.raises(AssertionError):
            _compare_entry(at, replace(entry, refuse=(), otherwise=()))


def test_a_bound_that_is_moved_by_one_is_caught() -> None:
    artifact = _artifact()
    for name, plane in artifact.tables.planes.items():
        for at in range(1, len(plane.starts)):
            starts = list(plane.starts)
            starts[at] += 1
            planes = {**artifact.tables.planes, name: replace(plane, starts=tuple(starts))}
            tables = replace(artifact.tables, planes=planes)
            decisions = Decisions(tables, artifact.rules)
            with pytest.raises(AssertionError):
                compare_tables(CONTROL, artifact, decisions, Judge(CONTROL), Seen())


def _compare(program: Program) -> None:
    compare_program(program, CONTROL, Judge(CONTROL), Seen())


def test_a_constant_that_is_off_by_one_is_caught() -> None:
    program = _artifact().program
    assert program is not None
    _compare(program)
    for at, step in enumerate(program.instructions):
        for k in {step.k + 1, max(step.k - 1, 0)} - {step.k}:
            steps = list(program.instructions)
            steps[at] = replace(step, k=k)
            with pytest.raises((AssertionError, ValueError)):
                _compare(replace(program, instructions=tuple(steps)))


def test_a_branch_the_wrong_way_round_is_caught() -> None:
    program = _artifact().program
    assert program is not None
    for at, step in enumerate(program.instructions):
        if step.jt != step.jf:
            steps = list(program.instructions)
            steps[at] = replace(step, jt=step.jf, jf=step.jt)
            with pytest.raises(AssertionError):
                _compare(replace(program, instructions=tuple(steps)))


def test_a_filter_that_is_dropped_or_turned_is_caught() -> None:
    artifact = _artifact("windows")
    assert artifact.filters is not None
    filters = artifact.filters["filters"]
    assert isinstance(filters, list)
    held = [event for event, _ in events(CONTROL, artifact)]
    compare_filters(artifact, Judge(CONTROL), held)
    for at, one in enumerate(filters):
        if "RECV_ACCEPT" in one["layer"] or one["name"] == "other protocols":
            continue  # nothing of the language is an event there: see the tests of the filter set
        changes: list[dict[str, object] | None] = [
            {**one, "action": "permit" if one["action"] == "block" else "block"}
        ]
        if one["rules"] not in ([], ["p.default.connect"]):  # the author's catch-all stands over it
            changes.append(None)
        for changed in changes:
            left = [*filters[:at], *([changed] if changed else []), *filters[at + 1 :]]
            turned = replace(artifact, filters={**artifact.filters, "filters": left})
            with pytest.raises((AssertionError, Ambiguous)):
                compare_filters(turned, Judge(CONTROL), held)
