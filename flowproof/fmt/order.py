"""The keys of a block mapping in the order of the language's page, each with its comments."""

from __future__ import annotations

import re

from flowproof.source.nodes import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    from flowproof.diagnostics import Source

    Node = Scalar | Sequence | Mapping

__all__ = ["reordered"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_SPACES = re.compile(r"[ ]*")
_LEAD = re.compile(r"[ ]*(?:\?[ ]+)?")


def reordered(source: Source, mapping: Mapping, order: Listed[str]) -> str:
    """Return the text with the entries of *mapping* in *order*.

    Comments right above a key go with it, but for those that the file begins with; blank lines stay
    where they are, between the entries.
    """
    text = source.text
    entries = mapping.entries
    names = [key.text.value for key, _ in entries]
    wanted = sorted(range(len(names)), key=lambda index: order.index(names[index]))
    if mapping.flow or wanted == list(range(len(names))):
        return text
    heads = [key.span.start - source.position(key.span.start)[1] + 1 for key, _ in entries]
    if any(
        not _LEAD.fullmatch(text, head, key.span.start)
        for head, (key, _) in zip(heads, entries, strict=True)
    ):
        return text  # a mapping that begins behind something else on its line
    ends = [_line_end(text, _end(value)) for _, value in entries]
    headers = [_block_header(value) for _, value in entries]
    if ends[-1] == len(text) and text[-1:] not in "\r\n" and headers[-1]:
        return text  # the line break that a move adds would become part of the value
    column = entries[0][0].span.start - heads[0]
    first = begin = _first(text, heads[0], column)
    bodies, blanks = [], []
    for index in range(len(entries)):
        if index + 1 < len(entries):
            stop, following = _split(text, ends[index], heads[index + 1], column)
        else:
            stop = following = _own_comments(text, ends[index], column)
        bodies.append(text[begin:stop])
        blanks.append(text[stop:following])
        begin = following
    line_break = _line_break(text)
    ended = [body if body[-1:] in "\r\n" else body + line_break for body in bodies]
    # blank lines behind a block scalar that keeps them (`|+`) would become its own
    moved = "".join(
        ended[index] + ("" if "+" in headers[index] else blank)
        for index, blank in zip(wanted, blanks, strict=True)
    )
    rest = text[begin:]
    if "+" in headers[wanted[-1]]:
        rest = re.sub(r"\A(?:[ ]*(?:\r\n|\r|\n))+", "", rest)
    return text[:first] + moved + rest


def _end(node: Node) -> int:
    """Return where the last character of a node stands; a block collection ends with its last one."""
    match node:
        case Mapping() if node.entries and not node.flow:
            return _end(node.entries[-1][1])
        case Sequence() if node.items and not node.flow:
            return _end(node.items[-1])
        case Scalar():
            # the blank lines that a block scalar keeps are its own
            return max(node.span.end, node.text.offsets[-1])
        case _:
            return node.span.end


def _block_header(node: Node) -> str:
    """Return the header of the block scalar that a node ends in, or nothing where it ends otherwise."""
    match node:
        case Mapping() if node.entries and not node.flow:
            return _block_header(node.entries[-1][1])
        case Sequence() if node.items and not node.flow:
            return _block_header(node.items[-1])
        case Scalar() if node.style in {"|", ">"}:
            return node.span.text.splitlines()[0].partition("#")[0]
        case _:
            return ""


def _line_end(text: str, at: int) -> int:
    match = _LINE.match(text, at)
    assert match is not None
    return match.end()


def _line_break(text: str) -> str:
    match = re.search(r"\r\n|\r|\n", text)
    return match.group() if match else "\n"


def _lines(text: str, start: int, end: int) -> list[tuple[int, int, str]]:
    """Return (begin, end, content without white space around it) of each line."""
    lines = []
    while start < end:
        stop = min(_line_end(text, start), end)
        lines.append((start, stop, text[start:stop].strip()))
        start = stop
    return lines


def _indent(text: str, at: int) -> int:
    match = _SPACES.match(text, at)
    assert match is not None
    return match.end() - at


def _first(text: str, head: int, column: int) -> int:
    """Return where the first entry begins: with its comments, if something else stands above them."""
    lines = _lines(text, 0, head)
    begin = head
    while lines and lines[-1][2].startswith("#") and _indent(text, lines[-1][0]) <= column:
        begin = lines.pop()[0]
    return begin if lines else head


def _split(text: str, end: int, head: int, column: int) -> tuple[int, int]:
    """Return where an entry ends and where the next one, with its comments, begins."""
    lines = _lines(text, end, head)
    following = head
    while lines and lines[-1][2].startswith("#") and _indent(text, lines[-1][0]) <= column:
        following = lines.pop()[0]
    stop = following
    while lines and not lines[-1][2]:
        stop = lines.pop()[0]
    return stop, following


def _own_comments(text: str, end: int, column: int) -> int:
    """Return where the last entry ends: comments that are indented deeper than its key are its own."""
    stop = end
    for begin, after, content in _lines(text, end, len(text)):
        if content and not (content.startswith("#") and _indent(text, begin) > column):
            break
        if content:
            stop = after
    return stop
