"""Diagnostics as people read them (place, message, source line, underline, way out) and as JSON."""

from __future__ import annotations

from flowproof.cli.console import printable
from flowproof.diagnostics import Severity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.diagnostics import Diagnostic, Span

__all__ = ["Line", "as_data", "render"]

Line = tuple[tuple[str, str], ...]
"""One line to print: (style, text) parts; a style is a colour that `rich` knows, or empty."""

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}

_WIDEST = 160
"""Columns of a source line that are shown; a longer one is cut around its finding."""


def render(diagnostic: Diagnostic) -> Iterator[Line]:
    """Yield the lines of one diagnostic, without line breaks."""
    style = _STYLES[diagnostic.severity]
    place = f"{printable(str(diagnostic.span))}: " if diagnostic.span else ""
    yield (
        ("bold", place),
        (style, f"{diagnostic.severity.value}[{diagnostic.code}]"),
        ("bold", f": {printable(diagnostic.message)}"),
    )
    if diagnostic.span is not None and diagnostic.severity is not Severity.NOTE:
        yield from _excerpt(diagnostic.span, style)
    if diagnostic.help:
        yield (("green", "  help: "), ("", printable(diagnostic.help)))
    for span, what in diagnostic.related:
        yield (("blue", "  see: "), ("", f"{printable(str(span))}: {printable(what)}"))


def as_data(diagnostic: Diagnostic) -> dict[str, object]:
    """Return the JSON form, as ``schema/diagnostics.schema.json`` describes it."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "page": f"docs/codes/{diagnostic.code}.md",
        **(_place(diagnostic.span) if diagnostic.span else dict.fromkeys(_PLACE)),
        "related": [{**_place(span), "message": what} for span, what in diagnostic.related],
    }


_PLACE = ("file", "line", "column", "end_line", "end_column", "text")


def _place(span: Span) -> dict[str, object]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(max(span.start, span.end))
    return dict(
        zip(_PLACE, (span.file, line, column, end_line, end_column, span.text), strict=True)
    )


def _excerpt(span: Span, style: str) -> Iterator[Line]:
    number, column = span.source.position(span.start)
    text = span.source.line(number)
    start = min(column - 1, len(text))
    end = max(start, min(len(text), start + span.end - span.start))
    if not text.strip() and start == end:
        return
    before, marked, after = _window(text, start, end)
    gutter = f"{number:>5} | "
    yield (("dim", gutter), ("", printable(before + marked + after)))
    pad = "".join("\t" if c == "\t" else " " * _width(printable(c)) for c in before)
    yield (("dim", "      | "), ("", pad), (style, "^" * max(1, _width(printable(marked)))))


def _window(text: str, start: int, end: int) -> tuple[str, str, str]:
    """Return what stands before, inside and behind the finding, cut to a readable width."""
    if len(text) <= _WIDEST:
        return text[:start], text[start:end], text[end:]
    end = min(end, start + _WIDEST // 2)
    first = max(0, start - _WIDEST // 4)
    last = min(len(text), first + _WIDEST)
    before = ("…" if first else "") + text[first:start]
    return before, text[start:end], text[end:last] + ("…" if last < len(text) else "")


def _width(text: str) -> int:
    """Return the columns that a terminal gives *text*: two for wide characters, none for combining."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
