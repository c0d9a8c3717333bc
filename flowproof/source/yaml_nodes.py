"""YAML 1.2 documents as nodes with places: every scalar a string, and nothing guessed.

PyYAML's parser (libyaml's where it is there) gives events; its resolver and constructor, which know
YAML 1.1, are never asked. What stops the parser is named, mended in a copy and parsed on, so that one
run names every mistake.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from flowproof.source import breakage
from flowproof.source.decode import decode
from flowproof.source.documents import Text
from flowproof.source.scalars import locate
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from flowproof.diagnostics import Report, Source, Span

    Node = "Scalar | Sequence | Mapping"

__all__ = ["Mapping", "Scalar", "Sequence", "load"]

DEPTH = 16
"""How deep nodes may nest; a control needs five."""
NODES = 200_000
"""Most nodes of a document: a hundred thousand rules. What reads them takes a few hundred bytes for each."""
LENGTH = 1_000_000
"""Most characters of one value: a hundred thousand addresses in one sentence."""

# How much text is parsed again for the sake of further errors: a document of 4 MiB is mended twice
_MENDED = 8 * 1024 * 1024
_MENDS = 100
_TABS = 20  # of many lines that a tab indents, the first ones tell enough

# Line breaks in YAML 1.1 and ordinary characters in 1.2; a BOM is one inside a document
_BREAKS_OF_1_1 = "\x85\u2028\u2029\ufeff"


class Scalar(Value):
    """A scalar. *style* is empty for a plain one. *broken* means that an error names it already."""

    text: Text
    style: str
    broken: bool

    @property
    def span(self) -> Span:
        """Where it stands, quotes included."""
        return self.text.span

    @property
    def null(self) -> bool:
        """Whether YAML 1.2 core reads it as null (section 10.2.1.1)."""
        return not self.style and self.text.value in {"", "~", "null", "Null", "NULL"}


class Sequence(Value):
    """A list; *flow* where it is written in brackets."""

    items: tuple[Scalar | Sequence | Mapping, ...]
    flow: bool
    span: Span


class Mapping(Value):
    """A mapping, its keys unique; *flow* where it is written in braces."""

    entries: tuple[tuple[Scalar, Scalar | Sequence | Mapping], ...]
    flow: bool
    span: Span


def load(
    data: bytes, name: str, report: Report
) -> tuple[Source, Scalar | Sequence | Mapping] | None:
    """Return the text and the root node of a file's bytes, or None with the errors in *report*."""
    source = decode(data, name, report)
    if source is None:
        return None
    text, spare = _substituted(source.text)
    events = _events
    for _ in range(min(_MENDS, 2 + _MENDED // (len(text) + 1))):
        try:
            root = _compose(events(text), text, spare, source, report)
        except _Stopped:
            return None
        except breakage.errors() as error:
            if "unexpected ':'" in str(error) and events is _events:
                events = _pure_events  # libyaml knows no `{a:[b]}`, which YAML 1.2 does
                continue
            mended = breakage.mend(error, text, spare, source, report, depth=DEPTH)
            if mended is None:
                return None
            text = mended
            continue
        _refuse_tabs(source, root, report)
        if root is None:
            report.error("FP203", "the file is empty", source.span(0), "a flow begins with `name:`")
            return None
        return source, root
    report.error(
        "FP203",
        f"the YAML breaks at more than {_MENDS} places, and the rest of it was not read",
        source.span(0),
        "mend the first of them: the others may go with it",
    )
    return None


def _substituted(text: str) -> tuple[str, str]:
    """Return *text* with private-use characters for YAML 1.1's breaks, and one that is in no use.

    One for one, so that every index keeps its meaning; the source's own text gives values back.
    """
    used = set(text)
    spare = (
        chr(c) for c in (*range(0xE000, 0xF900), *range(0xF0000, 0xF2000)) if chr(c) not in used
    )
    table = {ord(char): next(spare) for char in _BREAKS_OF_1_1 if char in used}
    text = text.translate(table) if table else text
    if "?" in used:
        # PyYAML ends a plain value at any `?` in brackets; only before a space it means a key
        text = re.sub(r"\?(?=[^ \t\r\n])", next(spare), text)
    return text, next(spare)


def _events(text: str) -> Iterator[Any]:
    """Yield the events of PyYAML's parser: libyaml's where it was built, else the one in Python."""
    try:
        from yaml._yaml import CParser  # noqa: PLC0415
    except ImportError:
        yield from _pure_events(text)
        return
    parser = CParser(text)
    while parser.check_event():
        yield parser.get_event()


def _pure_events(text: str) -> Iterator[Any]:
    from yaml.parser import Parser  # noqa: PLC0415
    from yaml.reader import Reader  # noqa: PLC0415
    from yaml.scanner import Scanner, ScannerError  # noqa: PLC0415

    class Pure(Reader, Scanner, Parser):
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    parser: Any = Pure(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    except ValueError as error:
        # `chr` of an escape beyond the last character; libyaml says so in its own way
        mark = parser.get_mark()
        raise ScannerError(None, None, "found no character for an escape", mark) from error


class _Stopped(Exception):  # noqa: N818  no error of ours: a diagnostic says what is wrong
    """Nothing behind this place is read."""


class _Frame:
    """A collection that is being read: in a mapping, keys and values by turns."""

    __slots__ = ("flow", "items", "mapping", "start")

    def __init__(self, mapping: bool, flow: bool, start: int) -> None:
        self.mapping = mapping
        self.flow = flow
        self.start = start
        self.items: list[Scalar | Sequence | Mapping] = []


def _compose(
    events: Iterator[Any], text: str, spare: str, source: Source, report: Report
) -> Scalar | Sequence | Mapping | None:
    """Build nodes from events; raises PyYAML's errors."""
    root: Scalar | Sequence | Mapping | None = None
    frames: list[_Frame] = []
    documents = 0
    nodes = 0
    for event in events:
        kind = type(event).__name__
        start = event.start_mark.index
        node: Scalar | Sequence | Mapping
        if kind == "DocumentStartEvent":
            documents += 1
            _directives(event, source, start, report)
            if documents > 1:
                _second_document(source, start, report)
                raise _Stopped
            continue
        if kind in {"SequenceStartEvent", "MappingStartEvent"}:
            start = _properties(event, text, source, start, report)
            frames.append(_Frame(kind[0] == "M", bool(event.flow_style), start))
            if len(frames) > DEPTH:
                breakage.report_depth(start, DEPTH, source, report)
                raise _Stopped
            continue
        if kind == "ScalarEvent":
            if len(event.value) > LENGTH:
                length = f"the value has {len(event.value)} characters, and {LENGTH} are the most"
                _too_much(length, start, source, report)
                raise _Stopped
            node = _scalar(event, text, spare, source, report)
        elif kind == "AliasEvent":
            node = _alias(event, source, report)
        elif kind in {"SequenceEndEvent", "MappingEndEvent"}:
            node = _closed(frames.pop(), event.end_mark.index, source, report)
        else:
            continue
        nodes += 1
        if nodes > NODES:
            _too_much(f"the document has more than {NODES} values", start, source, report)
            raise _Stopped
        if frames:
            frames[-1].items.append(node)
        else:
            root = node
    return root


def _too_much(what: str, start: int, source: Source, report: Report) -> None:
    report.error(
        "FP202", what, source.span(start), "part it into packs, and take them in with `uses:`"
    )


def _closed(frame: _Frame, end: int, source: Source, report: Report) -> Sequence | Mapping:
    if not frame.flow:
        # a block collection ends where the next token begins: cut the white space and comments off
        last = frame.items[-1].span.end if frame.items else frame.start
        end = min(end, max(last, frame.start))
    span = source.span(frame.start, end)
    if not frame.mapping:
        return Sequence(tuple(frame.items), frame.flow, span)
    entries: dict[str, tuple[Scalar, Scalar | Sequence | Mapping]] = {}
    for key, value in zip(frame.items[::2], frame.items[1::2], strict=True):
        if not isinstance(key, Scalar) or (key.null and not key.broken):
            _no_key(key, report)
            continue
        name = key.text.value
        if name in entries:
            first = entries[name][0].span
            report.error(
                "FP204",
                f"`{name}` is given twice, first in line {first.line}",
                key.span,
                "take one of them away",
                related=[(first, f"`{name}` is given here")],
            )
        else:
            entries[name] = (key, value)
    return Mapping(tuple(entries.values()), frame.flow, span)


def _no_key(key: Scalar | Sequence | Mapping, report: Report) -> None:
    if isinstance(key, Scalar):
        report.error("FP210", "there is no key in front of the `:`", key.span, "a key is a string")
        return
    shown = key.span.text.splitlines()[0] if key.span.text else "this"
    report.error(
        "FP210",
        f"`{shown}` is a {'list' if isinstance(key, Sequence) else 'mapping'} where a key stands",
        key.span,
        "quote this: what begins with `[` or `{` is a list or a mapping to YAML",
    )


def _scalar(event: Any, text: str, spare: str, source: Source, report: Report) -> Scalar:  # noqa: ANN401
    start = _properties(event, text, source, event.start_mark.index, report)
    style = event.style or ""
    stop: int = event.end_mark.index
    if not style and not event.value:
        # nothing stands here: libyaml names the token behind, PyYAML's own parser the one in front
        while start > 0 and text[start - 1] in " \t":
            start -= 1
        stop = start
    value, offsets, end = locate(text, start, stop, style, event.value)
    written = text[start:end]
    if text is not source.text:
        # characters that stand in for others: the source has what is meant
        value = "".join(
            source.text[at] if char == text[at : at + 1] else char
            for char, at in zip(value, offsets, strict=False)
        )
    broken = spare in written
    for at, char in zip(offsets, value, strict=False):
        if "\ud800" <= char <= "\udfff":
            breakage.report_escape(
                at, source, report
            )  # half a character; libyaml refuses it itself
            broken = True
    comment = _glued_comment(written) if style in {"|", ">"} else 0
    if comment:
        breakage.report_comment(start + comment, source, report)
    return Scalar(Text(value, source.span(start, end), offsets), style, broken)


def _glued_comment(written: str) -> int:
    """Return where a comment begins in the header of a block scalar without a space, or 0."""
    match = re.match(r"[|>][-+0-9]*#", written)
    return match.end() - 1 if match else 0


def _alias(event: Any, source: Source, report: Report) -> Scalar:  # noqa: ANN401
    span = source.span(event.start_mark.index, event.end_mark.index)
    report.error(
        "FP205",
        f"`{span.text}` is a YAML alias, and nothing is read through one",
        span,
        f'quote this: `"{span.text}…"`, or write out what is meant',
    )
    offsets = tuple(range(span.start, span.end + 1))
    return Scalar(Text(span.text, span, offsets), "", True)


def _properties(event: Any, text: str, source: Source, start: int, report: Report) -> int:  # noqa: ANN401
    """Refuse the anchor and the tag of a node; return where its content begins."""
    if event.anchor is None and event.tag is None:
        return start
    at = start
    while at < len(text) and text[at] in "&!":
        stop = at
        while stop < len(text) and text[stop] not in " \t\r\n,[]{}":
            stop += 1
        word = source.text[at:stop]
        if word[0] == "&":
            report.error(
                "FP205",
                f"`{word}` is a YAML anchor, and nothing can refer to it",
                source.span(at, stop),
                "take it out; a list of destinations that several rules share is a set",
            )
        else:
            report.error(
                "FP206",
                f"`{word}` is a YAML tag, and no value has one",
                source.span(at, stop),
                "take it out, or quote the whole value",
            )
        at = stop
        while at < len(text) and text[at] in " \t\r\n#":
            if text[at] == "#":
                while at < len(text) and text[at] not in "\r\n":
                    at += 1
            else:
                at += 1
    end: int = event.end_mark.index
    return min(at, max(end, start))


def _directives(event: Any, source: Source, start: int, report: Report) -> None:  # noqa: ANN401
    if event.version is None and not event.tags:
        return
    stop = source.text.find("\n", start)
    report.error(
        "FP206",
        "a YAML directive stands here, and a control has none",
        source.span(start, len(source.text) if stop < 0 else stop),
        "take the line that begins with `%` out",
    )


def _second_document(source: Source, start: int, report: Report) -> None:
    report.error(
        "FP206",
        "a second document begins here, and a file is one",
        source.span(start, min(start + 3, len(source.text))),
        "give it a file of its own",
    )


def _refuse_tabs(source: Source, root: Scalar | Sequence | Mapping | None, report: Report) -> None:
    """Refuse tabs that indent a line and that the parser let pass; inside quotes and blocks they may be."""
    if "\t" not in source.text or root is None:
        return
    inside: list[tuple[int, int]] = []
    nodes = [root]
    while nodes:
        node = nodes.pop()
        match node:
            case Scalar():
                if node.style:
                    inside.append((node.span.start, node.span.end))
            case Sequence():
                nodes += node.items
            case Mapping():
                nodes += [part for entry in node.entries for part in entry]
    inside.sort()
    found = 0
    for at in breakage.indenting_tabs(source.text):
        before = bisect_left(inside, (at,)) - 1
        if before < 0 or inside[before][1] <= at:
            breakage.report_tab(at, source, report)
            found += 1
            if found == _TABS:
                return
