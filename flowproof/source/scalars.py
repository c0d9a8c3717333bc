"""A YAML scalar's value with the place of each of its characters.

The parser gives values and where scalars begin; what happens in between (folding, escapes, doubled
quotes, indentation) is followed here once more, so that an error can name line and column.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["locate"]

_BREAK = re.compile(r"\r\n|\r|\n")
_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_WIDTHS = {"x": 2, "u": 4, "U": 8}


def locate(
    text: str, start: int, end: int, style: str | None, value: str
) -> tuple[str, Sequence[int], int]:
    """Return (value, offsets, end) of the scalar that begins at *start*.

    *style* is None or empty for a plain scalar, else its first character. *value* is what the YAML
    parser made of it: that both agree is asserted. *offsets* has one more entry than the value has
    characters, the last one being the end of its content; *end* is the end of the scalar as written.
    """
    if style in {"|", ">"}:
        return _block(text, start, end, style == ">", value)
    quote = 1 if style else 0
    if value == text[start + quote : end - quote] and "\n" not in value:
        # as it is written: an escape or a fold would have made it another text. Most scalars are
        return value, range(start + quote, end - quote + 1), end
    if style:
        found, offsets = _flow(text, start + 1, end - 1, style)
        offsets.append(end - 1)
    else:
        found, offsets = _flow(text, start, end, "")
        offsets.append(end)
    assert found == value, (style, text[start:end], value)
    return found, tuple(offsets), end


def _flow(text: str, at: int, end: int, style: str) -> tuple[str, list[int]]:
    """Follow a plain or quoted scalar: line folding, doubled quotes, escapes (YAML 1.2, 7.3)."""
    out: list[str] = []
    offsets: list[int] = []
    while at < end:
        char = text[at]
        if char in " \t\r\n":
            at = _spaces(text, at, end, out, offsets)
        elif char == "'" and style == "'":
            out.append("'")
            offsets.append(at)
            at += 2
        elif char == "\\" and style == '"':
            at = _escape(text, at, end, out, offsets)
        else:
            out.append(char)
            offsets.append(at)
            at += 1
    return "".join(out), offsets


def _spaces(text: str, at: int, end: int, out: list[str], offsets: list[int]) -> int:
    """Take white space: as it is within a line, folded where a line breaks."""
    stop = at
    while stop < end and text[stop] in " \t\r\n":
        stop += 1
    breaks = [match.start() for match in _BREAK.finditer(text, at, stop)]
    if not breaks:
        out += text[at:stop]
        offsets += range(at, stop)
    elif len(breaks) == 1:
        out.append(" ")
        offsets.append(breaks[0])
    else:
        out += "\n" * (len(breaks) - 1)
        offsets += breaks[1:]
    return stop


def _escape(text: str, at: int, end: int, out: list[str], offsets: list[int]) -> int:
    kind = text[at + 1]
    if kind in "\r\n":
        # an escaped line break is nothing; blank lines behind it are breaks, indentation is dropped
        first = _BREAK.match(text, at + 1)
        assert first is not None
        stop = first.end()
        while stop < end and text[stop] in " \t\r\n":
            stop += 1
        breaks = [match.start() for match in _BREAK.finditer(text, first.end(), stop)]
        out += "\n" * len(breaks)
        offsets += breaks
        return stop
    offsets.append(at)
    if kind in _WIDTHS:
        width = _WIDTHS[kind]
        out.append(chr(int(text[at + 2 : at + 2 + width], 16)))
        return at + 2 + width
    out.append(_ESCAPES[kind])
    return at + 2


def _block(
    text: str, start: int, stop: int, folded: bool, value: str
) -> tuple[str, tuple[int, ...], int]:
    """Follow a literal or folded scalar (YAML 1.2, section 8.1).

    How far it is indented follows from its first line, or from a digit in its header and the depth of
    the node above, which is not known here: the indentation under which the value comes out is it.
    """
    lines = _lines(text, start, stop)
    header = text[start : lines[0][1]].partition("#")[0]
    keep, strip = "+" in header, "-" in header
    body = lines[1:]
    deepest = max((_indent(text, line) for line in body[: _first(text, body) + 1]), default=0)
    # blanks that stand in front of the value's first line are no indentation
    content = value.lstrip("\n")
    guess = max(deepest - (len(content) - len(content.lstrip(" "))), 0)
    blank = max((line[1] - line[0] for line in body), default=0)
    blank = max(blank - max(map(len, value.split("\n"))), 0)
    few = range(min(deepest, 64), -1, -1)
    for indent in dict.fromkeys((guess, deepest, blank, *few, deepest + 1)):
        found, offsets, end = _unindent(
            text, body, indent, folded=folded, keep=keep, strip=strip, end=lines[0][1]
        )
        if found == value:
            return found, tuple(offsets), end
    raise AssertionError((text[start : start + 200], value))


def _lines(text: str, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Return (begin, end, next begin) of each line from *start* on, to the one that holds *stop*."""
    lines = []
    at = start
    for match in _BREAK.finditer(text, start):
        lines.append((at, match.start(), match.end()))
        at = match.end()
        if match.start() >= stop:
            return lines
    lines.append((at, len(text), len(text)))
    return lines


def _indent(text: str, line: tuple[int, int, int]) -> int:
    at = line[0]
    while at < line[1] and text[at] == " ":
        at += 1
    return at - line[0]


def _first(text: str, body: list[tuple[int, int, int]]) -> int:
    """Return the index of the first line that is not blank."""
    return next((i for i, line in enumerate(body) if text[line[0] : line[1]].strip(" ")), len(body))


def _unindent(
    text: str,
    body: list[tuple[int, int, int]],
    indent: int,
    *,
    folded: bool,
    keep: bool,
    strip: bool,
    end: int,
) -> tuple[str, list[int], int]:
    """Return value, offsets and end of a block scalar that is indented by *indent* spaces."""
    out: list[str] = []
    offsets: list[int] = []
    breaks: list[int] = []  # of blank lines since the last line with content
    last: tuple[int, bool] | None = None  # the break behind that line, and whether it may be folded
    for begin, stop, after in body:
        spaces = _indent(text, (begin, stop, after))
        if spaces < indent or begin + indent >= stop:
            if begin + spaces < stop:
                break  # less indented and not blank: what follows the scalar
            if after > stop:
                breaks.append(begin + spaces)
            continue
        more = text[begin + indent] in " \t"
        if last is not None and folded and last[1] and not more:
            if not breaks:
                out.append(" ")
                offsets.append(last[0])
        elif last is not None:
            out.append("\n")
            offsets.append(last[0])
        out += "\n" * len(breaks)
        offsets += breaks
        breaks = []
        out += text[begin + indent : stop]
        offsets += range(begin + indent, stop)
        last = (stop, not more) if after > stop else None
        end = stop
    final = end
    if last is not None and not strip:
        out.append("\n")
        offsets.append(last[0])
    if keep:
        out += "\n" * len(breaks)
        offsets += breaks
        final = breaks[-1] if breaks else final
    offsets.append(final)
    return "".join(out), offsets, end
