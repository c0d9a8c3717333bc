"""What a user is told about a mistake: data with a place, rendered elsewhere."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum

from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


__all__ = ["Diagnostic", "DiagnosticsError", "Report", "Severity", "Source", "Span"]


class Severity(Enum):
    """How much a diagnostic weighs: an error ends with 2 (or 3), a warning is lint (1), a note 0."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Source:
    """One input text under the name that messages print, with its lines found on demand.

    *text* holds no byte-order mark. Lines end at LF, CRLF or CR, as in YAML 1.2 (section 5.4);
    U+0085, U+2028 and U+2029 are ordinary characters.
    """

    __slots__ = ("_starts", "name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._starts: list[int] | None = None

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            starts, text = [0], self.text
            if "\r" not in text:
                at = text.find("\n") + 1
                while at:
                    starts.append(at)
                    at = text.find("\n", at) + 1
            else:
                for at, char in enumerate(text):
                    if char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
                        starts.append(at + 1)
            self._starts = starts
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return (line, column), both from 1, columns in code points, of an offset into the text."""
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return the text of line *number* (from 1) without its line break."""
        starts = self._line_starts()
        begin = starts[number - 1]
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[begin:end].rstrip("\r\n")

    def span(self, start: int, end: int | None = None) -> Span:
        """Return the span from offset *start* to *end* (exclusive; default: empty at *start*)."""
        return Span(self, start, start if end is None else end)

    def __repr__(self) -> str:
        return f"Source({self.name!r})"


class Span(Value):
    """A stretch of a source text: offsets in code points, *end* exclusive."""

    source: Source
    start: int
    end: int

    @property
    def file(self) -> str:
        """The name of the file, as messages print it."""
        return self.source.name

    @property
    def line(self) -> int:
        """The line of the first character, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """The column of the first character, from 1, in code points."""
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        """The text that the span underlines."""
        return self.source.text[self.start : self.end]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Diagnostic(Value):
    """One finding. *code* names a page under ``docs/codes/``; *help* is the way out.

    *exit* is what an error of this kind ends a command with: 2 for input that does not hold, 3 for
    what a backend or a host cannot do. *related* are further places with what each of them is.
    """

    code: str
    severity: Severity
    message: str
    span: Span | None
    help: str | None = None
    related: tuple[tuple[Span, str], ...] = ()
    exit: int = 2

    def __post_init__(self) -> None:
        if not (self.code.startswith("FP") and self.code[2:].isdigit()):
            raise ValueError(f"not a diagnostic code: {self.code}")


class Report:
    """A collector: stages add what they find and go on, so that all errors come in one go."""

    __slots__ = ("_found", "_seen", "failures")

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []
        self._seen: set[Diagnostic] = set()
        self.failures = 0
        """How many errors there are so far."""

    def add(self, diagnostic: Diagnostic) -> None:
        """Keep *diagnostic*, once; what a terminal would not show as it is stands in it escaped."""
        if not (diagnostic.message + (diagnostic.help or "")).isprintable():
            message, way = _shown(diagnostic.message), diagnostic.help and _shown(diagnostic.help)
            diagnostic = replace(diagnostic, message=message, help=way)
        if diagnostic not in self._seen:
            self._seen.add(diagnostic)
            self._found.append(diagnostic)
            self.failures += diagnostic.severity is Severity.ERROR

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        help: str | None = None,  # noqa: A002  the field's name
        *,
        related: Iterable[tuple[Span, str]] = (),
        exit: int = 2,  # noqa: A002  the field's name
    ) -> None:
        """Add an error."""
        self.add(Diagnostic(code, Severity.ERROR, message, span, help, tuple(related), exit))

    def warning(
        self,
        code: str,
        message: str,
        span: Span | None,
        help: str | None = None,  # noqa: A002  the field's name
        *,
        related: Iterable[tuple[Span, str]] = (),
    ) -> None:
        """Add a warning (lint)."""
        self.add(Diagnostic(code, Severity.WARNING, message, span, help, tuple(related)))

    def note(
        self,
        code: str,
        message: str,
        span: Span | None,
        help: str | None = None,  # noqa: A002  the field's name
    ) -> None:
        """Add a note."""
        self.add(Diagnostic(code, Severity.NOTE, message, span, help))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(sorted(self._found, key=_place))

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors found so far, by place."""
        return tuple(d for d in self if d.severity is Severity.ERROR)

    def raise_errors(self) -> None:
        """Raise `DiagnosticsError` with everything found if there is an error among it."""
        if any(d.severity is Severity.ERROR for d in self._found):
            raise DiagnosticsError(tuple(self))


def _shown(text: str) -> str:
    """Return *text* on one line, with an escape for what is invisible or moves a cursor."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _place(diagnostic: Diagnostic) -> tuple[str, int, str]:
    span = diagnostic.span
    return (span.file if span else "", span.start if span else 0, diagnostic.code)


class DiagnosticsError(Exception):
    """User mistakes, collected; a command prints them and ends with `exit`."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("; ".join(f"{d.span}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics

    @property
    def exit(self) -> int:
        """2 if any error is one of input, else 3 (`language.md`: where both, 2 it is)."""
        errors = [d.exit for d in self.diagnostics if d.severity is Severity.ERROR]
        return min(errors, default=2)
