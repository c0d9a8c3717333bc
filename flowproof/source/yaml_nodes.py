"""YAML 1.2 documents as nodes with places: every scalar a string, and nothing guessed.

What stops the parser is named, mended in a copy and parsed on, so that one run names every mistake.
"""

from __future__ import annotations

from bisect import bisect_left

from flowproof.source import breakage
from flowproof.source.compose import DEPTH, Stopped, compose
from flowproof.source.decode import decode
from flowproof.source.nodes import Mapping, Scalar, Sequence
from flowproof.source.yaml_events import events, pure_events, substituted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Source

__all__ = ["load"]

# How much text is parsed again for the sake of further errors: a document of 4 MiB is mended twice
_MENDED = 8 * 1024 * 1024
_MENDS = 100
_TABS = 20  # of many lines that a tab indents, the first ones tell enough


def load(
    data: bytes, name: str, report: Report
) -> tuple[Source, Scalar | Sequence | Mapping] | None:
    """Return the text and the root node of a file's bytes, or None with the errors in *report*."""
    source = decode(data, name, report)
    if source is None:
        return None
    text, spare = substituted(source.text)
    parser = events
    for _ in range(min(_MENDS, 2 + _MENDED // (len(text) + 1))):
        try:
            root = compose(parser(text), text, spare, source, report)
        except Stopped:
            return None
        except breakage.errors() as error:
            if "unexpected ':'" in str(error) and parser is events:
                parser = pure_events  # libyaml knows no `{a:[b]}`, which YAML 1.2 does
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
