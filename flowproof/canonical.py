"""Canonical JSON (RFC 8785): one value, one sequence of bytes, one digest."""

from __future__ import annotations

import hashlib
import json

__all__ = ["canonical", "digest", "printable"]


def canonical(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON-shaped value without floating-point numbers.

    Integers have to fit the double that RFC 8785 writes them as (2^53); addresses are text therefore.
    """
    text = _dumps(value, sort_keys=True)
    if not text.isascii() and max(text) > "\uffff":
        # RFC 8785 section 3.2.3: members are sorted by the UTF-16 code units of their names. That is the
        # order of code points, unless one of them takes two units.
        text = _dumps(_ordered(value), sort_keys=False)
    json.loads(text, parse_float=_refuse_float)
    return text.encode("utf-8")


def _dumps(value: object, *, sort_keys: bool) -> str:
    return json.dumps(
        value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def _refuse_float(_text: str) -> None:
    raise TypeError("a canonical document holds no floating-point number")


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        names = sorted(value, key=_units)
        return {name: _ordered(value[name]) for name in names}
    if isinstance(value, list | tuple):
        return [_ordered(member) for member in value]
    return value


def _units(name: str) -> bytes:
    return name.encode("utf-16-be")


def digest(data: bytes) -> str:
    """Return ``sha256:…`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def printable(text: str) -> str:
    """Return *text* with what is no Unicode scalar (undecodable bytes of a path) as escapes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
