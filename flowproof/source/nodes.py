"""The nodes of a document: every scalar a string, each node with its place."""

from __future__ import annotations

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Span
    from flowproof.source.documents import Text

__all__ = ["Mapping", "Scalar", "Sequence"]


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
