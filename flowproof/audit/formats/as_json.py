"""The control map as JSON, as ``schema/report.schema.json`` describes it."""

from __future__ import annotations

from flowproof.audit.claims import claim_words
from flowproof.record.codec import value_to_json
from flowproof.record.model import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.audit.controls import AuditedControl
    from flowproof.audit.report import Audit
    from flowproof.record.model import RuleRow, RunRecord

__all__ = ["REPORT_SCHEMA", "report_data"]

REPORT_SCHEMA = "flowproof/control-map/v1"


def report_data(audit: Audit) -> dict[str, object]:
    """Return the control map as JSON-shaped data."""
    return {
        "schema": REPORT_SCHEMA,
        "folder": audit.folder,
        "summary": {
            "controls": len(audit.controls),
            **{verdict.value: audit.count(verdict) for verdict in Verdict},
            "without_evidence": sum(control.evidence != "sound" for control in audit.controls),
        },
        "controls": [_control(control) for control in audit.controls],
        "retired": [_control(control) for control in audit.retired],
        "unreadable": [{"folder": folder, "detail": text} for folder, text in audit.unreadable],
        "notes": list(audit.notes),
        "exit": value_to_json(audit.exit),
    }


def _control(control: AuditedControl) -> dict[str, object]:
    record = control.record
    declaration = control.declaration
    return {
        "id": control.id,
        "title": control.title,
        "description": declaration.description if declaration else None,
        "declared": {"file": declaration.file, "line": declaration.line} if declaration else None,
        "verdict": control.verdict.value,
        "explanation": control.explanation,
        "evidence": {"state": control.evidence, "details": list(control.details)},
        "run": None if record is None else _run(record, control),
        "rules": [] if record is None else [_rule(rule, record) for rule in record.rules],
        "coverage": None
        if control.coverage is None
        else {"rules": control.coverage.rules, "unmet": list(control.coverage.unmet)},
    }


def _run(record: RunRecord, control: AuditedControl) -> dict[str, object]:
    return {
        "id": record.run.id,
        "folder": control.folder,
        "started": record.run.started,
        "ended": record.run.ended,
        "complete": record.run.complete,
        "flow": record.command.name,
        "end": value_to_json(record.command.end),
        "policy_sha256": record.policy.ir,
        "artifact_sha256": record.policy.artifact,
        "proof": record.policy.proof,
        "target": record.policy.target,
        "tiers": {
            name: value_to_json(lane.tier)
            for name, lane in record.lanes.items()
            if name != "faults"
        },
        "faults": value_to_json(record.faults),
        "survivors": value_to_json(record.survivors),
        "through": value_to_json(record.through),
        "not_carried": value_to_json(record.fidelity),
    }


def _rule(rule: RuleRow, record: RunRecord) -> dict[str, object]:
    return {
        "id": rule.id,
        "verb": rule.verb,
        "claim": rule.claim,
        "kind": rule.kind,
        "sentence": rule.sentence,
        "because": rule.because,
        "place": value_to_json(rule.place),
        "verdict": rule.verdict.value if rule.verdict else None,
        "code": rule.code.value if rule.code else None,
        "shown": claim_words(rule, record.through),
        "hits": value_to_json(rule.hits),
    }
