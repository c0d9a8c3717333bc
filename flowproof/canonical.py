"""Canonical JSON (RFC 8785): one value, one sequence of bytes, one digest."""

from __future__ import annotations

import hashlib
import json

__all__ = ["canonical", "digest", "printable"]


def canonical(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON-shaped value without floating-point numbers.

    Integers have to fit the double that RFC 8785 writes them as (2^53); addresses are text therefore.
    """
    text = json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        # RFC 8785 section 3.2.3: members are sorted by the UTF-16 code units of their names.
        names = sorted(value, key=_units)
        return {name: _ordered(value[name]) for name in names}
    if isinstance(value, list | tuple):
        if all(type(member) is int for member in value):
            return value
        return [_ordered(member) for member in value]
    if isinstance(value, float):
        raise TypeError("a canonical document holds no floating-point number")
    return value


def _units(name: str) -> bytes:
    return name.encode("utf-16-be")


def digest(data: bytes) -> str:
    """Return ``sha256:…`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def printable(text: str) -> str:
    """Return *text* with what is no Unicode scalar (undecodable bytes of a path) as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
