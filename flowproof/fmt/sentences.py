"""The sentences and destinations of a document in their canonical spelling, as edits of its text."""

from __future__ import annotations

import re

from flowproof.diagnostics import Report
from flowproof.fmt.quoting import written
from flowproof.source.documents import slug
from flowproof.source.nodes import Mapping, Scalar, Sequence
from flowproof.syntax.parse import parse_destination, parse_destinations, parse_sentence
from flowproof.syntax.render import render, render_destination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flowproof.diagnostics import Source
    from flowproof.source.documents import Text

    Node = Scalar | Sequence | Mapping

__all__ = ["rewritten"]

_HEADER = re.compile(r"[|>][-+0-9]*([ \t]+#[^\r\n]*)")
_BEHIND = re.compile(r"([ \t]+#[^\r\n]*)")


def rewritten(source: Source, root: Node) -> str:
    """Return the text of a document without errors, each sentence and destination spelt canonically.

    What is no sentence stays as it is, character by character.
    """
    text, line_break = source.text, _line_break(source.text)
    edits = sorted(
        _edit(source, scalar, value, indent, brackets=brackets, line_break=line_break)
        for scalar, value, indent, brackets in _canonical(source, root)
    )
    parts, at = [], 0
    for start, end, new in edits:
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def _line_break(text: str) -> str:
    match = re.search(r"\r\n|\r|\n", text)
    return match.group() if match else "\n"


def _edit(
    source: Source, scalar: Scalar, value: str, indent: int, *, brackets: bool, line_break: str
) -> tuple[int, int, str]:
    start = scalar.span.start
    old = scalar.span.text.rstrip(" \t\r\n")
    new = written(
        value,
        column=source.position(start)[1] - 1,
        indent=indent,
        brackets=brackets,
        line_break=line_break,
    )
    # a comment stays on the first line: it moves between behind a value and the header of a block
    end = start + len(old)
    comment = _HEADER.match(old) if scalar.style in {"|", ">"} else None
    if comment is None and new.startswith(">-"):
        comment = _BEHIND.match(source.text, end)
        end = comment.end() if comment else end
    if comment:
        first, line, rest = new.partition(line_break)
        new = first + comment.group(1).rstrip() + line + rest
    return start, end, new


def _canonical(source: Source, root: Node) -> Iterator[tuple[Scalar, str, int, bool]]:
    """Yield each scalar to write anew: its value, the column that it belongs to, whether in brackets."""
    if not isinstance(root, Mapping):
        return
    for path, kind in (
        (("agent", "allow_egress"), "entry"),
        (("control", "sets"), "set"),
        (("control", "rules"), "rule"),
        (("sets",), "set"),
        (("rules",), "rule"),
    ):
        node, brackets = _at(root, path)
        if isinstance(node, Sequence):
            yield from _items(source, node, _entry, brackets=brackets)
        if not isinstance(node, Mapping):
            continue
        for key, value in node.entries:
            inside = brackets or node.flow
            if isinstance(value, Scalar):
                column = source.position(key.span.start)[1] - 1
                spell = _rule if kind == "rule" else _members
                yield value, spell(value.text), column, inside
            elif isinstance(value, Sequence):
                yield from _items(source, value, _members, brackets=inside)


def _at(root: Mapping, path: tuple[str, ...]) -> tuple[Node | None, bool]:
    """Return the node under a path of keys, and whether it stands in a flow mapping."""
    node: Node | None = root
    brackets = False
    for name in path:
        if not isinstance(node, Mapping):
            return None, brackets
        brackets = brackets or node.flow
        node = next((value for key, value in node.entries if key.text.value == name), None)
    return node, brackets


def _items(
    source: Source, node: Sequence, spell: Callable[[Text], str], *, brackets: bool
) -> Iterator[tuple[Scalar, str, int, bool]]:
    column = source.position(node.span.start)[1] - 1
    for item in node.items:
        assert isinstance(item, Scalar), item
        yield item, spell(item.text), column, brackets or node.flow


def _rule(text: Text) -> str:
    sentence = parse_sentence(text, Report())
    assert sentence is not None, text.value
    return render(sentence)


def _members(text: Text) -> str:
    return ", ".join(render_destination(each) for each in parse_destinations(text, Report()))


def _entry(text: Text) -> str:
    """Return an entry of `allow_egress`; one whose rule id would be another stays as it is."""
    destination = parse_destination(text, Report())
    assert destination is not None, text.value
    spelt = render_destination(destination)
    return spelt if slug(spelt) == slug(text.value) else text.value
