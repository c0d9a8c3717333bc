"""Runs as their records lie on disk, made by hand: the audit is judged without a runner."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from flowproof.exit_codes import ExitCode
from flowproof.record import model
from flowproof.record.evidence import rejudge
from flowproof.record.model import Hits
from flowproof.record.store import RunFolder
from flowproof.record.tally import recount
from flowproof.values import replace

IR = "sha256:" + "1" * 64
_MOMENTS = itertools.count(1)

Line = dict[str, object]


def rule(rule_id: str, verb: str = "never", **changes: object) -> model.RuleRow:
    """A rule that the artifact carries exactly."""
    claims = {
        "allow": "none",
        "observe": "report",
        "expect no": "behaviour",
        "deny": "containment",
        "never": "containment+behaviour",
    }
    row = model.RuleRow(
        id=rule_id,
        verb=verb,
        claim=claims[verb],
        action="connect",
        lane="connect",
        kind="authored",
        sentence=f"{verb} connect to anything else",
        because=None,
        place=model.Place("bot.flow.yaml", 9, 5, None),
        refusing="exact" if verb in ("deny", "never") else None,
        counting="exact" if verb in ("never", "expect no") else None,
        hits=Hits(),
        verdict=None,
        code=None,
        explanation="",
    )
    return replace(row, **changes)


def event(
    rules: Iterable[model.RuleRow], by: str, *, refused: bool = True, **changes: object
) -> Line:
    """An attempt at 192.0.2.1:443 that the rule *by* handled, counted by every rule that asserts."""
    rows = {row.id: row for row in rules}
    named = {"rule": by, "claim": rows[by].claim}
    return {
        "kind": "event",
        "n": 1,
        "ms": 12,
        "pid": 4711,
        "program": "python3",
        "operation": "connect",
        "protocol": "tcp",
        "destination": "192.0.2.1",
        "port": 443,
        "name": None,
        "handling": "refused" if refused else "let-through",
        "by": named,
        "asserting": [
            {"rule": row.id, "claim": row.claim}
            for row in rows.values()
            if row.verb in ("never", "expect no")
        ],
        "observing": [],
        "note": None,
        **changes,
    }


EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The digest of a lane without a line."""


def write_run(
    root: Path,
    control: str,
    rules: tuple[model.RuleRow, ...],
    lines: tuple[Line, ...] = (),
    *,
    ir: str = IR,
    run_id: str | None = None,
    tier: str = "enforced",
    end: int = 0,
    proof: str = "proven",
    **changes: object,
) -> Path:
    """Write the record that these facts amount to, and return its folder."""
    run_id = run_id or f"2026-11-29T13-40-00.{next(_MOMENTS):06}Z-0f0f0f"
    folder = RunFolder(str(root), run_id)
    lane, _faults = folder.open_lane("connect"), folder.open_lane("faults")
    for line in lines:
        lane.write(line)
    record = _record(
        control, rules, ir, run_id, model.Tier(tier, "by hand"), lane.sha256, len(lines)
    )
    record = replace(record, policy=replace(record.policy, proof=proof))
    record = replace(record, command=replace(record.command, end=model.End("exit", end)))
    record = judged(replace(record, **changes), {"connect": lines})
    folder.link_lanes()
    folder.write(record)
    folder.close()
    return Path(folder.path)


def judged(
    record: model.RunRecord, lanes: Mapping[str, tuple[Mapping[str, object], ...]]
) -> model.RunRecord:
    """Return *record* with the hits and verdicts that *lanes* amount to."""
    found = recount(lanes["connect"])
    record = replace(
        record,
        rules=tuple(replace(row, hits=found.hits.get(row.id, Hits())) for row in record.rules),
        through=found.through,
    )
    judgement = rejudge(record, lanes)
    control = judgement.control
    assert control.verdict is not None
    return replace(
        record,
        rules=tuple(
            replace(row, verdict=r.verdict, code=r.code, explanation=r.explanation)
            for row, r in zip(record.rules, judgement.rules, strict=True)
        ),
        controls=(
            model.ControlRow(
                control.id, record.policy.title, control.verdict, control.code, control.explanation
            ),
        ),
        exit=judgement.exit,
    )


def _record(
    control: str,
    rules: tuple[model.RuleRow, ...],
    ir: str,
    run_id: str,
    tier: model.Tier,
    sha256: str,
    lines: int,
) -> model.RunRecord:
    digest = "sha256:" + "2" * 64
    return model.RunRecord(
        run=model.RunInfo(
            run_id, None, None, "2026-11-29T13:40:00Z", "2026-11-29T13:40:01Z", complete=True
        ),
        command=model.CommandInfo("Tidy up", digest, 0, 60_000, started=True, end=None),
        tool=model.Tool("flowproof", "0.1.0", "3.11.2"),
        host=model.Host("linux", "6.18", "x86_64", os.getuid(), ()),
        policy=model.PolicyInfo(
            control, "A title", "linux-x86_64", ir, digest, digest, "by hand", "proven", ()
        ),
        lanes={
            "connect": model.LaneInfo(tier, "connect.jsonl", sha256, lines, truncated=False),
            "faults": model.LaneInfo(tier, "faults.jsonl", EMPTY, 0, truncated=False),
        },
        supervisor=model.Supervision(alive=True, received=2, answered=2, lost=0),
        canary=model.CanaryRow(
            "connect", "udp", "192.0.2.1", 9, "refused", "refused", "ECONNREFUSED", None, held=True
        ),
        blocked=(),
        fidelity=(),
        faults=(),
        survivors=(),
        names={},
        through=(),
        rules=rules,
        controls=(),
        exit=model.Exit(ExitCode.OK, "", ()),
    )
