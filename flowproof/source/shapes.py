"""Values of one shape out of nodes: strings, lists, sets, rules, ids."""

from __future__ import annotations

import re

from flowproof.source.documents import Text, slug
from flowproof.source.nodes import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report

    Node = Scalar | Sequence | Mapping

__all__ = ["ID", "identifier", "rules", "sets", "string", "strings"]

ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_RESERVED = (".default.", ".implied.", ".allow.", ".assert-")
_SET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_QUOTE = "quote this: put the whole value in quotes"


def string(node: Node, what: str, report: Report, way: str | None = None) -> Text | None:
    """Return the string that a node is; anything else, and null, is an error."""
    if isinstance(node, Scalar):
        if node.broken:
            return None
        if not node.null:
            return node.text
        shown = f"`{node.text.value}`" if node.text.value else "nothing at all"
        report.error(
            "FP208", f"{what} is a string, and {shown} is null to YAML", node.span, way or _QUOTE
        )
        return None
    kind = "list" if isinstance(node, Sequence) else "mapping"
    report.error(
        "FP208", f"{what} is a string, and this came out as a {kind}", node.span, way or _QUOTE
    )
    return None


def strings(node: Node, what: str, report: Report) -> tuple[Text, ...]:
    """Return the strings of a list; what is no string in it is an error, and so is no list."""
    if not isinstance(node, Sequence):
        if not getattr(node, "broken", False):
            report.error(
                "FP222",
                f"{what} is a list",
                node.span,
                "write each entry in a line of its own, behind `- `",
            )
        return ()
    found = (string(item, f"an entry of {what}", report) for item in node.items)
    return tuple(text for text in found if text is not None)


def identifier(text: Text, what: str, report: Report) -> Text:
    """Return *text*, or where it is not shaped like an id, one in its place, with an error.

    The stand-in lets the later stages find what else is wrong.
    """
    value = text.value
    if not ID.fullmatch(value):
        proposal = slug(value)[:128]
        report.error(
            "FP225",
            f"`{value}` is no id of {what}",
            text.span,
            "an id is `a` to `z`, digits, `.`, `_` and `-`, begins with a letter or a digit and has"
            f" at most 128 characters{f': `{proposal}`' if proposal else ''}",
        )
    elif (word := next((w for w in _RESERVED if w in value), None)) is not None:
        report.error(
            "FP225",
            f"`{value}` holds `{word}`, which only ids made by the compiler hold",
            text.span,
            "choose another id",
        )
    else:
        return text
    stand_in = f"{slug(value)[:100] or 'id'}-refused-{text.span.start}"
    return Text(stand_in, text.span, (text.span.start,) * (len(stand_in) + 1))


def sets(node: Node, report: Report) -> tuple[tuple[Text, tuple[Text, ...]], ...]:
    """Return names and members of sets. A set without members has been refused: an error says so."""
    found = []
    for key, value in _entries(node, "`sets`", "name to destinations", report):
        if not key.broken and not _SET.fullmatch(key.text.value):
            report.error(
                "FP225",
                f"`{key.text.value}` is no name of a set",
                key.span,
                "a name of a set is letters, digits, `_`, `.` and `-`",
            )
            continue
        what = f"the set `{key.text.value}`"
        if isinstance(value, Sequence) and not value.flow:
            # in brackets it would be `[2001:db8::1]:443` as often as a list
            members = [string(item, f"a member of {what}", report) for item in value.items]
            found.append((key.text, tuple(text for text in members if text is not None)))
            continue
        way = None
        if isinstance(value, Sequence):
            way = "quote this, or write each destination in a line of its own, behind `- `"
        text = string(value, what, report, way)
        found.append((key.text, () if text is None else (text,)))
    return tuple(found)


def rules(node: Node, report: Report) -> tuple[tuple[Text, Text], ...]:
    """Return ids and sentences of rules; one whose sentence YAML ate is left out, with an error."""
    found = []
    for key, value in _entries(node, "`rules`", "id to sentence", report):
        name = key.text.value
        sentence = string(value, f"the rule `{name}`", report)
        if sentence is None:
            continue  # what stands for its id may be a part of the sentence too
        key_text = key.text if key.broken else identifier(key.text, "a rule", report)
        found.append((key_text, sentence))
    return tuple(found)


def _entries(node: Node, what: str, of: str, report: Report) -> tuple[tuple[Scalar, Node], ...]:
    if isinstance(node, Mapping):
        return node.entries
    if not getattr(node, "broken", False):
        report.error(
            "FP222", f"{what} is a mapping of {of}", node.span, "each in a line of its own"
        )
    return ()
