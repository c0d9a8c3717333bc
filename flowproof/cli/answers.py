"""Answers as JSON: one shape for every command, with the exit code and its reasons in it."""

from __future__ import annotations

import json

from flowproof.canonical import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flowproof.diagnostics import Diagnostic
    from flowproof.exit_codes import ExitCode

__all__ = ["because_of", "exit_data", "json_text"]


def exit_data(
    code: ExitCode, because: Iterable[str], reason: str | None = None
) -> dict[str, object]:
    """Return ``{code, reason, because[]}``; *reason* is by default the first of *because*."""
    listed = list(because)
    if reason is None:
        reason = listed[0] if listed else "asked and answered, nothing objectionable"
    return {"code": code.value, "reason": reason, "because": listed}


def because_of(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """Return the reasons that diagnostics are: place, code and message of each but notes."""
    return [
        f"{f'{found.span}: ' if found.span else ''}{found.code}: {found.message}"
        for found in sorted(diagnostics, key=lambda found: found.severity.value)
        if found.severity.value != "note"
    ]


def json_text(answer: Mapping[str, object]) -> str:
    """Return *answer* as JSON for people and programs: indented, and ASCII whatever the locale.

    The bytes of a path that are not UTF-8 stand as escapes in it: half a surrogate pair is no JSON text.
    """
    text = json.dumps(answer, indent=2)
    if "\\ud" in text:
        text = json.dumps(_spelt(answer), indent=2)
    return text + "\n"


def _spelt(value: object) -> object:
    match value:
        case str():
            return printable(value)
        case dict():
            return {name: _spelt(member) for name, member in value.items()}
        case list() | tuple():
            return [_spelt(member) for member in value]
        case _:
            return value
