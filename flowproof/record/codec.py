"""Records to JSON and back. What comes back is checked field by field: a record may be anyone's file."""

from __future__ import annotations

from enum import Enum

from flowproof.exit_codes import ExitCode
from flowproof.record import model
from flowproof.record.codes import Code
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from flowproof.record.model import RunRecord

    Decoder = Callable[[object, str], object]
    V = TypeVar("V", bound=Value)

__all__ = ["from_json", "to_json", "value_to_json"]


def value_to_json(value: object) -> object:
    """Return the JSON shape of a value: fields by name, enums by value, mappings as objects."""
    if isinstance(value, Value):
        return {field: value_to_json(getattr(value, field)) for field in value.__fields__}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: value_to_json(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return [value_to_json(member) for member in value]
    return value


def to_json(record: RunRecord) -> dict[str, object]:
    """Return a record as JSON-shaped data, its schema named."""
    shape = value_to_json(record)
    assert isinstance(shape, dict)
    return {"schema": model.SCHEMA, **shape}


def from_json(shape: object) -> RunRecord:
    """Return the record that JSON-shaped data holds; `ValueError` names the place that is wrong."""
    if not isinstance(shape, dict) or shape.get("schema") != model.SCHEMA:
        raise ValueError(f"`schema` is not {model.SCHEMA}")
    fields = {name: member for name, member in shape.items() if name != "schema"}
    return _value(model.RunRecord, fields, "record")


def _scalar(kind: type, word: str) -> Decoder:
    def decode(shape: object, at: str) -> object:
        if type(shape) is not kind:
            raise ValueError(f"{at} is not {word}")
        return shape

    return decode


_text = _scalar(str, "a string")
_number = _scalar(int, "an integer")
_truth = _scalar(bool, "true or false")


def _maybe(inner: Decoder) -> Decoder:
    return lambda shape, at: None if shape is None else inner(shape, at)


def _many(inner: Decoder) -> Decoder:
    def decode(shape: object, at: str) -> object:
        if not isinstance(shape, list):
            raise ValueError(f"{at} is not a list")
        return tuple(inner(member, f"{at}[{index}]") for index, member in enumerate(shape))

    return decode


def _named(inner: Decoder) -> Decoder:
    def decode(shape: object, at: str) -> object:
        if not isinstance(shape, dict):
            raise ValueError(f"{at} is not an object")
        return {name: inner(member, f"{at}.{name}") for name, member in shape.items()}

    return decode


def _enum(kind: type[Enum]) -> Decoder:
    def decode(shape: object, at: str) -> object:
        try:
            return kind(shape)
        except ValueError:
            raise ValueError(f"{at} is none of the known words: `{shape}`") from None

    return decode


def _part(kind: type[Value]) -> Decoder:
    return lambda shape, at: _value(kind, shape, at)


def _value(kind: type[V], shape: object, at: str) -> V:
    if not isinstance(shape, dict):
        raise ValueError(f"{at} is not an object")
    decoders = _FIELDS[kind]
    wrong = sorted(set(shape) ^ set(decoders))
    if wrong:
        raise ValueError(f"{at}.{wrong[0]} is {'unknown' if wrong[0] in shape else 'missing'}")
    return kind(
        **{field: decode(shape[field], f"{at}.{field}") for field, decode in decoders.items()}
    )


_FIELDS: dict[type[Value], dict[str, Decoder]] = {
    model.RunInfo: {
        "id": _text,
        "set": _maybe(_text),
        "shard": _maybe(_text),
        "started": _text,
        "ended": _maybe(_text),
        "complete": _truth,
    },
    model.End: {"how": _text, "value": _number},
    model.CommandInfo: {
        "name": _text,
        "sha256": _text,
        "expect_exit": _maybe(_number),
        "timeout_ms": _maybe(_number),
        "started": _truth,
        "end": _maybe(_part(model.End)),
    },
    model.Tool: {"name": _text, "version": _text, "python": _text},
    model.CapabilityRow: {
        "id": _text,
        "ok": _truth,
        "code": _maybe(_enum(Code)),
        "detail": _text,
    },
    model.Host: {
        "os": _text,
        "kernel": _text,
        "arch": _text,
        "uid": _number,
        "capabilities": _many(_part(model.CapabilityRow)),
    },
    model.Source: {"path": _text, "sha256": _text},
    model.PolicyInfo: {
        "control": _text,
        "title": _maybe(_text),
        "target": _text,
        "ir": _text,
        "artifact": _text,
        "grammar": _text,
        "verification": _text,
        "proof": _text,
        "sources": _many(_part(model.Source)),
    },
    model.Tier: {"word": _text, "reason": _text, "code": _maybe(_enum(Code))},
    model.LaneInfo: {
        "tier": _part(model.Tier),
        "file": _maybe(_text),
        "sha256": _maybe(_text),
        "lines": _number,
        "truncated": _truth,
    },
    model.Supervision: {
        "alive": _truth,
        "received": _number,
        "answered": _number,
        "lost": _number,
    },
    model.CanaryRow: {
        "call": _text,
        "protocol": _text,
        "destination": _text,
        "port": _number,
        "expected": _text,
        "seen": _maybe(_text),
        "errno": _maybe(_text),
        "by": _maybe(_text),
        "held": _truth,
    },
    model.Reason: {"code": _enum(Code), "detail": _text},
    model.FidelityRow: {
        "subject": _text,
        "refusing": _maybe(_text),
        "counting": _maybe(_text),
        "reason": _maybe(_text),
    },
    model.FaultCount: {"code": _enum(Code), "lane": _maybe(_text), "count": _number},
    model.Survivor: {"pid": _number, "program": _text},
    model.Through: {
        "protocol": _text,
        "destination": _text,
        "port": _maybe(_number),
        "count": _number,
    },
    model.Hits: dict.fromkeys(model.Hits.__fields__, _number),
    model.Place: {"file": _text, "line": _number, "column": _number, "pack": _maybe(_text)},
    model.RuleRow: {
        "id": _text,
        "verb": _text,
        "claim": _text,
        "action": _text,
        "lane": _text,
        "kind": _text,
        "sentence": _text,
        "because": _maybe(_text),
        "place": _maybe(_part(model.Place)),
        "refusing": _maybe(_text),
        "counting": _maybe(_text),
        "hits": _part(model.Hits),
        "verdict": _maybe(_enum(model.Verdict)),
        "code": _maybe(_enum(Code)),
        "explanation": _text,
    },
    model.ControlRow: {
        "id": _text,
        "title": _maybe(_text),
        "verdict": _enum(model.Verdict),
        "code": _maybe(_enum(Code)),
        "explanation": _text,
    },
    model.Exit: {"code": _enum(ExitCode), "reason": _text, "because": _many(_text)},
    model.RunRecord: {
        "run": _part(model.RunInfo),
        "command": _part(model.CommandInfo),
        "tool": _part(model.Tool),
        "host": _part(model.Host),
        "policy": _part(model.PolicyInfo),
        "lanes": _named(_part(model.LaneInfo)),
        "supervisor": _part(model.Supervision),
        "canary": _maybe(_part(model.CanaryRow)),
        "blocked": _many(_part(model.Reason)),
        "fidelity": _many(_part(model.FidelityRow)),
        "faults": _many(_part(model.FaultCount)),
        "survivors": _many(_part(model.Survivor)),
        "names": _named(_many(_text)),
        "through": _many(_part(model.Through)),
        "rules": _many(_part(model.RuleRow)),
        "controls": _many(_part(model.ControlRow)),
        "exit": _part(model.Exit),
        "file_canary": _maybe(_part(model.CanaryRow)),
    },
}
"""How each field of each part is read; the tests hold it against the parts' own fields."""
