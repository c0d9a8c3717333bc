"""Where answers and diagnostics are printed: plain text, and colour only on a terminal that wants it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from flowproof.cli.rendering import Line
    from flowproof.diagnostics import Diagnostic

__all__ = ["Console", "OutputError", "printable"]


class OutputError(Exception):
    """The answer could not be written (a full disk, a closed descriptor)."""


class Console:
    """The two streams of a command. *closed*: whoever read standard output has gone away."""

    def __init__(self) -> None:
        self.closed = False
        for stream in (sys.stdout, sys.stderr):
            _forgiving(stream)

    def out(self, text: str) -> None:
        """Write *text* and a line break, if it has none, to standard output."""
        self._write(text if text.endswith("\n") else text + "\n")

    def out_bytes(self, data: bytes) -> None:
        """Write *data* as it is to standard output."""
        if self.closed:
            return
        if sys.stdout is None:
            raise OutputError("it is closed")
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        except BrokenPipeError:
            self.closed = True
        except OSError as failure:
            raise OutputError(failure.strerror) from None

    def err(self, text: str) -> None:
        """Write *text* and a line break to standard error; nobody listening there is no failure."""
        try:
            sys.stderr.write(text if text.endswith("\n") else text + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            pass

    def complain(self, message: str, way_out: str | None = None) -> None:
        """Tell on standard error of a mistake that has no place in a file."""
        self.err(f"flowproof: error: {printable(message)}")
        if way_out:
            self.err(f"  help: {printable(way_out)}")

    def diagnose(self, diagnostics: Iterable[Diagnostic], *, answer: bool = False) -> None:
        """Print diagnostics to standard error, or to standard output where they are the *answer*."""
        from flowproof.cli.rendering import render

        for diagnostic in diagnostics:
            self.lines(render(diagnostic), answer=answer)

    def lines(self, lines: Iterable[Line], *, answer: bool = False) -> None:
        """Print styled lines, in colour where the stream is a terminal and wants it."""
        stream = sys.stdout if answer else sys.stderr
        if wants_colour(stream):
            text = _coloured(lines)
        else:
            text = "".join("".join(part for _, part in line) + "\n" for line in lines)
        if answer:
            self._write(text)
        else:
            self.err(text)

    def flush(self) -> None:
        """Hand everything written so far to the system."""
        self._write("")

    def _write(self, text: str) -> None:
        if self.closed:
            return
        if sys.stdout is None:  # closed before flowproof began; nothing to say is said all the same
            if text:
                raise OutputError("it is closed")
            return
        try:
            sys.stdout.write(text)
            if not text:
                sys.stdout.flush()
        except BrokenPipeError:
            self.closed = True
        except ValueError:
            raise OutputError("it is closed") from None
        except OSError as failure:
            raise OutputError(failure.strerror) from None


def wants_colour(stream: TextIO | None) -> bool:
    """Say whether *stream* is a terminal and nobody set NO_COLOR (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if stream is None:
        return False
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def printable(text: str) -> str:
    """Return *text* with control and direction characters spelt out.

    Files and names come from whoever is being judged: an escape sequence in one must not reach the
    terminal, and a bidirectional override must not reorder what a reader sees.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character == "\t" or not _unsafe(character) else _spelt(character)
        for character in text
    )


def _unsafe(character: str) -> bool:
    code = ord(character)
    return (
        code < 0x20
        or 0x7F <= code < 0xA0
        or code in (0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF)
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
        or 0xD800 <= code <= 0xDFFF
    )


def _spelt(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _forgiving(stream: TextIO | None) -> None:
    """Make a character that the stream's encoding lacks come out spelt, never as a traceback."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _coloured(lines: Iterable[Line]) -> str:
    from rich.console import Console as Rich
    from rich.text import Text

    rich = Rich(force_terminal=True, highlight=False, soft_wrap=True)
    with rich.capture() as capture:
        for line in lines:
            rich.print(Text.assemble(*((part, style) for style, part in line)))
    return capture.get()
