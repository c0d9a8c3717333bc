"""The limits that docs/security-model.md states, and the ids of limits that tests carry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["carried", "limits_without_id", "stated"]

_HEADING = "## What does not hold"
_ENTRY = re.compile(r"^\* (?:`(?P<id>[a-z0-9-]+)`: \*\*)?", re.MULTILINE)


def _entries(page: str) -> Iterator[re.Match[str]]:
    section = page.partition(_HEADING)[2].partition("\n## ")[0]
    return _ENTRY.finditer(section)


def stated(page: str) -> list[str]:
    """Return the ids of the limits on *page*, in their order."""
    return [entry["id"] for entry in _entries(page) if entry["id"]]


def limits_without_id(page: str) -> int:
    """Return how many limits on *page* have no id."""
    return sum(entry["id"] is None for entry in _entries(page))


def carried(folder: Path) -> dict[str, list[str]]:
    """Return the ids of limits by the tests below *folder* that are marked with them, as written."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    for identity in _marked(mark):
                        found.setdefault(identity, []).append(f"{path.name}::{node.name}")
    return found


def _marked(mark: ast.expr) -> Iterator[str]:
    """Yield the ids of ``limit("…")`` and ``pytest.mark.limit("…")``."""
    if isinstance(mark, ast.Call):
        name = mark.func.attr if isinstance(mark.func, ast.Attribute) else ast.unparse(mark.func)
        if name == "limit":
            for argument in mark.args:
                assert isinstance(argument, ast.Constant), ast.unparse(mark)
                yield str(argument.value)
