"""Where YAML breaks: the place and the way out, and a mended copy to parse on with."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from flowproof.diagnostics import Report, Source

__all__ = [
    "errors",
    "indenting_tabs",
    "mend",
    "report_comment",
    "report_depth",
    "report_escape",
    "report_tab",
]

# What stands in front of a value on its line: list dashes, a key and its colon
# (one way to read each: what ends a key is tried once, or a line of blanks takes its length squared)
_LEAD = (
    r"""[ \t]*(?:-[ \t]+)*"""
    r"""(?:(?:"(?:[^"\\\r\n]|\\.)*"[ \t]*|'[^'\r\n]*'[ \t]*|[^\s"'\[{#:][^#:\r\n]*):[ \t]+)?"""
)
_VALUE = re.compile(_LEAD + r"(?P<value>[\"'\[{])")
_STARRED = re.compile(_LEAD + r"[*](?=[^\s])")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})")
_MISINDENTED = re.compile(r"[ \t]*[A-Za-z0-9_.-]+")
_SIGNS = {
    "@": "`@` cannot begin a plain value in YAML",
    "`": "a backtick cannot begin a plain value in YAML",
    "%": "`%` cannot begin a plain value in YAML",
    "*": "`*` begins an alias in YAML",
    "&": "`&` begins an anchor in YAML",
}


def errors() -> type[Exception]:
    """Return the class of what PyYAML's parsers raise at text that is no YAML."""
    from yaml.error import YAMLError  # noqa: PLC0415

    return YAMLError


def indenting_tabs(text: str) -> Iterator[int]:
    """Yield the place of the first tab in the indentation of each line that holds more than that."""
    for match in re.finditer(r"(?:\A|(?<=[\r\n])) *(\t)[ \t]*(?=[^ \t\r\n#])", text):
        yield match.start(1)


def report_tab(at: int, source: Source, report: Report) -> None:
    """Report a tab that indents."""
    report.error(
        "FP207",
        "a tab indents this line, and YAML indents with spaces",
        source.span(at, at + 1),
        "write spaces instead",
    )


def _quote_this(
    at: int, end: int, why: str, source: Source, report: Report, *, example: str
) -> None:
    """Report what YAML would read as something other than a string."""
    report.error("FP208", why, source.span(at, max(end, at)), f"quote this: {example}")


def mend(
    error: Any,  # noqa: ANN401  PyYAML's errors
    text: str,
    spare: str,
    source: Source,
    report: Report,
    *,
    depth: int,
) -> str | None:
    """Report what stopped the parser; return a text that it gets further with, or None.

    A mended character becomes *spare*: whoever reads the node sees that an error names it already.
    """
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = min(mark.index if mark else 0, len(text))
    context = error.context_mark.index if getattr(error, "context_mark", None) else at
    problem = str(getattr(error, "problem", ""))
    if "nesting depth" in problem:
        report_depth(at, depth, source, report)
        return None
    begin, end = _line(text, at)
    tab = next((t for t in indenting_tabs(text[begin:end])), None)
    if tab is not None and begin + tab <= at:
        report_tab(begin + tab, source, report)
        return None
    if text[at : at + 1] == "\t":
        # white space between tokens, which PyYAML's own scanner does not know (YAML 1.2, 6.2)
        stop = at
        while text[stop : stop + 1] in {"\t", " "}:
            stop += 1
        return text[:at] + " " * (stop - at) + text[stop:]
    if text[at : at + 1] == "#" and text[at - 1 : at] not in {" ", "\t"}:
        report_comment(at, source, report)
        return text[:at] + " " * (end - at) + text[end:]
    for place in (at, context):
        sign = text[place : place + 1]
        if (
            sign in _SIGNS
            and sign
            and (place == at or "alias" in str(error.context) or sign in "*&")
        ):
            stop = _line(text, place)[1]
            _quote_this(
                place, stop, _SIGNS[sign], source, report, example=_quoted(source.text[place:stop])
            )
            return _spared(text, place, spare)
    if text[at : at + 1] == ":" and "mapping values" in problem:
        return _colon(at, text, spare, source, report)
    if any(word in problem for word in ("escape", "hexdecimal", "hexadecimal")):
        return _escape(at, text, spare, source, report)
    value = _VALUE.match(text, begin)
    if value is not None and value.start("value") < at and "end of stream" not in problem:
        place = value.start("value")
        why = f"YAML reads what begins with `{text[place]}` to the closing one, and more follows"
        _quote_this(place, end, why, source, report, example=_quoted(source.text[place:end]))
        return _spared(text, place, spare)
    starred = _STARRED.match(text, begin)
    if starred is not None and starred.end() <= at:
        # the alias is named already: what follows it is the rest of what should be quoted
        return _spared(text, starred.end() - 1, spare)
    _generic(at, context, text, problem, source=source, report=report)
    return None


def _line(text: str, at: int) -> tuple[int, int]:
    """Return begin and end of the line that holds offset *at*."""
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    ends = [stop for stop in (text.find("\n", at), text.find("\r", at)) if stop >= 0]
    return begin, min(ends, default=len(text))


def _spared(text: str, at: int, spare: str) -> str:
    return text[:at] + spare + text[at + 1 :]


def _quoted(value: str) -> str:
    value = value.strip()
    quote = "'" if '"' in value and "'" not in value else '"'
    return f"`{quote}{value}{quote}`"


def _colon(at: int, text: str, spare: str, source: Source, report: Report) -> str | None:
    begin, end = _line(text, at)
    if _MISINDENTED.fullmatch(text, begin, at):
        report.error(
            "FP203",
            "this line is indented deeper than the key above it, and belongs to its value",
            source.span(at - len(text[begin:at].lstrip()), at),
            "indent it like the other keys",
        )
        return None
    why = "`: ` in a plain value begins a mapping in YAML"
    lead = re.compile(_LEAD).match(text, begin)
    start = lead.end() if lead and lead.end() < at else begin
    _quote_this(at, at + 1, why, source, report, example=_quoted(source.text[start:end]))
    return _spared(text, at, spare)


def _escape(at: int, text: str, spare: str, source: Source, report: Report) -> str | None:
    # libyaml puts the mark at the backslash or behind it, PyYAML behind it
    place = text.rfind("\\", max(0, at - 10), at + 1)
    if place < 0:
        _generic(at, at, text, "", source=source, report=report)
        return None
    report_escape(place, source, report)
    return _spared(text, place, spare)


def report_depth(at: int, depth: int, source: Source, report: Report) -> None:
    """Report a node that nests deeper than *depth*."""
    report.error(
        "FP209",
        f"nodes nest more than {depth} deep here",
        source.span(at, at + 1),
        "no document of a control is deeper than five",
    )


def report_escape(place: int, source: Source, report: Report) -> None:
    """Report the escape at *place*, which stands for no character."""
    match = _ESCAPE.match(source.text, place)
    end = match.end() if match else place + 2
    report.error(
        "FP203",
        f"`{source.text[place:end]}` is no escape of a double-quoted value",
        source.span(place, end),
        "write `\\\\` for a backslash, or put the value in single quotes",
    )


def report_comment(at: int, source: Source, report: Report) -> None:
    """Report a comment that nothing parts from what stands in front of it."""
    report.error(
        "FP203",
        "a comment is parted from what stands in front of it by a space",
        source.span(at, at + 1),
        "put a space in front of the `#`",
    )


def _generic(
    at: int, context: int, text: str, problem: str, *, source: Source, report: Report
) -> None:
    if "end of stream" in problem and text[context : context + 1] in {"'", '"'}:
        report.error(
            "FP203",
            "the quote that opens here is not closed",
            source.span(context, context + 1),
            f"end it with `{text[context]}`",
        )
    elif text[context : context + 1] in {"[", "{"}:
        sign = text[context]
        report.error(
            "FP203",
            f"the `{sign}` that opens here is not closed by a `{']' if sign == '[' else '}'}`",
            source.span(context, context + 1),
            "close it; if it is no list or mapping, quote this",
        )
    elif text.startswith("%", begin := _line(text, at)[0]) or "directive" in problem:
        report.error(
            "FP206",
            "a YAML directive stands here, and a control has none",
            source.span(begin, begin + 1),
            "take the line that begins with `%` out",
        )
    else:
        report.error(
            "FP203",
            "the YAML cannot be read from here on",
            source.span(at, min(at + 1, len(text))),
            "compare the indentation and the quotes of this line with the lines above it",
        )
