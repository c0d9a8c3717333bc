"""Canonical JSON (RFC 8785) for records: one value, one sequence of bytes, one digest."""

from __future__ import annotations

import hashlib
import json

__all__ = ["canonical", "digest", "printable"]


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        # RFC 8785 section 3.2.3: members are sorted by the UTF-16 code units of their names.
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return {name: _ordered(value[name]) for name in names}
    if isinstance(value, list | tuple):
        return [_ordered(member) for member in value]
    if isinstance(value, float):
        raise TypeError("a record holds no floating-point number")
    return value


def canonical(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON-shaped value without floating-point numbers."""
    text = json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def digest(data: bytes) -> str:
    """Return ``sha256:…`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def printable(text: str) -> str:
    """Return *text* with what is no Unicode scalar (undecodable bytes of a path) as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
