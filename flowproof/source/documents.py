"""Flow and pack documents as read: structure and places, nothing interpreted yet."""

from __future__ import annotations

import re

from flowproof.diagnostics import Span
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowproof.diagnostics import Source

__all__ = ["Agent", "Control", "Flow", "Pack", "Step", "Text", "slug"]


def slug(text: str) -> str:
    """Return *text* in lower case, each run of characters but a to z and 0 to 9 as one ``-``, trimmed."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


class Text(Value):
    """A scalar: its value and where each character of it stands in the source.

    *span* covers the scalar as written, quotes included. *offsets* holds, for each character of *value*
    and once more for its end, the offset in the source: block and folded scalars, escapes and line
    breaks keep their places. It is a tuple, or a range where the value stands as it is written.
    """

    value: str
    span: Span
    offsets: Sequence[int]

    def at(self, start: int, end: int | None = None) -> Span:
        """Return the source span of ``value[start:end]`` (default: an empty span at *start*)."""
        offsets = self.offsets
        first = offsets[start]
        last = first if end is None or end <= start else offsets[end - 1] + 1
        return Span(self.span.source, first, last)


class Agent(Value):
    """The command of a flow. *command* is split already, as a shell would split words.

    *timeout* is in seconds. *expect_exit* None means ``any``. *allow_egress* None means not given;
    *cwd* is as written, relative to the flow's file.
    """

    command: tuple[str, ...]
    cwd: str | None
    env: tuple[tuple[str, str], ...]
    timeout: float
    expect_exit: int | None
    allow_egress: tuple[Text, ...] | None
    allow_egress_span: Span | None
    span: Span


class Control(Value):
    """The ``control:`` of a flow. Keys and values are in the order of the file."""

    id: Text
    title: Text | None
    description: Text | None
    uses: tuple[Text, ...]
    sets: tuple[tuple[Text, tuple[Text, ...]], ...]
    rules: tuple[tuple[Text, Text], ...]
    span: Span


class Step(Value):
    """One of ``prompt`` (with *text*), ``assert_no_egress``, ``assert_no_file_delete``."""

    kind: str
    text: Text | None
    span: Span


class Flow(Value):
    """A ``*.flow.yaml``. *path* is the file's path as opened. *slug* is the control id of a flow
    without ``control:`` (its file name without ``.flow.yaml``, slugged).
    """

    source: Source
    path: str
    name: Text
    app: str
    agent: Agent | None
    control: Control | None
    steps: tuple[Step, ...]
    slug: str
    sha256: str


class Pack(Value):
    """A ``*.policy.yaml``. *name* is None where the file gives no ``policy:`` (the file name serves)."""

    source: Source
    path: str
    name: Text | None
    slug: str
    title: Text | None
    description: Text | None
    uses: tuple[Text, ...]
    sets: tuple[tuple[Text, tuple[Text, ...]], ...]
    rules: tuple[tuple[Text, Text], ...]
    sha256: str
