"""Events of a YAML parser → nodes with places, and what a control has no use for refused by name."""

from __future__ import annotations

import re

from flowproof.diagnostics import Span
from flowproof.source import breakage
from flowproof.source.documents import Text
from flowproof.source.nodes import Mapping, Scalar, Sequence
from flowproof.source.scalars import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from flowproof.diagnostics import Report, Source

__all__ = ["DEPTH", "LENGTH", "NODES", "Stopped", "compose"]

DEPTH = 16
"""How deep nodes may nest; a control needs five."""
NODES = 200_000
"""Most nodes of a document: a hundred thousand rules. What reads them takes a few hundred bytes for each."""
LENGTH = 1_000_000
"""Most characters of one value: a hundred thousand addresses in one sentence."""


class Stopped(Exception):  # noqa: N818  no error of ours: a diagnostic says what is wrong
    """Nothing behind this place is read."""


class _Frame:
    """A collection that is being read: in a mapping, keys and values by turns."""

    __slots__ = ("flow", "items", "mapping", "start")

    def __init__(self, mapping: bool, flow: bool, start: int) -> None:
        self.mapping = mapping
        self.flow = flow
        self.start = start
        self.items: list[Scalar | Sequence | Mapping] = []


def compose(
    events: Iterator[Any], text: str, spare: str, source: Source, report: Report
) -> Scalar | Sequence | Mapping | None:
    """Build nodes from events; raises PyYAML's errors."""
    root: Scalar | Sequence | Mapping | None = None
    frames: list[_Frame] = []
    documents = 0
    nodes = 0
    for event in events:
        kind = type(event).__name__
        node: Scalar | Sequence | Mapping
        if kind == "ScalarEvent":  # most of them
            if len(event.value) > LENGTH:
                length = f"the value has {len(event.value)} characters, and {LENGTH} are the most"
                _too_much(length, event.start_mark.index, source, report)
                raise Stopped
            node = _scalar(event, text, spare, source, report)
        elif kind in {"SequenceStartEvent", "MappingStartEvent"}:
            start = _properties(event, text, source, event.start_mark.index, report)
            frames.append(_Frame(kind[0] == "M", bool(event.flow_style), start))
            if len(frames) > DEPTH:
                breakage.report_depth(start, DEPTH, source, report)
                raise Stopped
            continue
        elif kind in {"SequenceEndEvent", "MappingEndEvent"}:
            node = _closed(frames.pop(), event.end_mark.index, source, report)
        elif kind == "AliasEvent":
            node = _alias(event, source, report)
        else:
            if kind == "DocumentStartEvent":
                documents += 1
                _directives(event, source, event.start_mark.index, report)
                if documents > 1:
                    _second_document(source, event.start_mark.index, report)
                    raise Stopped
            continue
        nodes += 1
        if nodes > NODES:
            length = f"the document has more than {NODES} values"
            _too_much(length, event.start_mark.index, source, report)
            raise Stopped
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
    if not value.isascii():
        for at, char in zip(offsets, value, strict=False):
            if "\ud800" <= char <= "\udfff":  # half a character; libyaml refuses it itself
                breakage.report_escape(at, source, report)
                broken = True
    comment = _glued_comment(written) if style in {"|", ">"} else 0
    if comment:
        breakage.report_comment(start + comment, source, report)
    return Scalar(Text(value, Span(source, start, end), offsets), style, broken)


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
    offsets = range(span.start, span.end + 1)
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
