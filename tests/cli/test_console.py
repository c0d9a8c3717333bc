"""Diagnostics as printed: place, source line, underline, way out; and nothing a terminal would obey."""

from __future__ import annotations

import io
import sys

import pytest

from flowproof.cli.console import Console, OutputError, printable, wants_colour
from flowproof.cli.rendering import as_data, render
from flowproof.diagnostics import Diagnostic, Severity, Source, Span


def shown(diagnostic: Diagnostic) -> list[str]:
    return ["".join(part for _, part in line) for line in render(diagnostic)]


def error(span: Span | None, help_: str | None = None) -> Diagnostic:
    return Diagnostic("FP301", Severity.ERROR, "unknown verb `alow`", span, help_)


SOURCE = Source("a.flow.yaml", "rules:\n  r: alow connect to 10.0.0.1\n")


def test_a_diagnostic_shows_place_line_underline_and_way_out() -> None:
    assert shown(error(SOURCE.span(12, 16), "did you mean `allow`?")) == [
        "a.flow.yaml:2:6: error[FP301]: unknown verb `alow`",
        "    2 |   r: alow connect to 10.0.0.1",
        "      |      ^^^^",
        "  help: did you mean `allow`?",
    ]


def test_a_diagnostic_without_a_place_is_its_message() -> None:
    assert shown(error(None)) == ["error[FP301]: unknown verb `alow`"]


def test_an_empty_span_at_the_end_of_the_line_is_still_shown() -> None:
    end = SOURCE.text.index("1\n") + 1
    assert shown(error(SOURCE.span(end)))[-1].endswith(" ^")


def test_a_span_over_several_lines_is_underlined_on_its_first() -> None:
    assert shown(error(SOURCE.span(0, 16)))[1:] == ["    1 | rules:", "      | ^^^^^^"]


def test_related_places_are_listed_with_what_they_are() -> None:
    diagnostic = Diagnostic(
        "FP501",
        Severity.ERROR,
        "twice",
        SOURCE.span(12, 16),
        None,
        ((SOURCE.span(0), "first here"),),
    )
    assert shown(diagnostic)[-1] == "  see: a.flow.yaml:1:1: first here"


def test_the_underline_stands_below_wide_characters_and_tabs() -> None:
    source = Source("w", "\t日本: x")
    assert shown(error(source.span(5, 6)))[2] == "      | \t      ^"


def test_a_very_long_line_is_cut_around_its_finding() -> None:
    source = Source("l", "a" * 5000 + "HERE" + "b" * 5000)
    lines = shown(error(source.span(5000, 5004)))
    assert "HERE" in lines[1]
    assert max(map(len, lines)) < 200
    assert lines[1].index("HERE") == lines[2].index("^^^^")


def test_escape_sequences_and_direction_marks_are_spelt_out() -> None:
    source = Source("evil\x1b[2J", "x: \x1b]0;owned\x07 \u202eneve")
    text = "\n".join(shown(error(source.span(0, 1))))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "\\x1b" in text


def test_ordinary_text_is_printed_as_it_is() -> None:
    assert printable("naïve 日本 · café\t`x`") == "naïve 日本 · café\t`x`"


def test_the_json_form_carries_code_place_and_related() -> None:
    data = as_data(error(SOURCE.span(12, 16), "did you mean `allow`?"))
    assert data == {
        "code": "FP301",
        "severity": "error",
        "message": "unknown verb `alow`",
        "help": "did you mean `allow`?",
        "file": "a.flow.yaml",
        "line": 2,
        "column": 6,
        "end_line": 2,
        "end_column": 10,
        "text": "alow",
        "related": [],
        "page": "docs/codes/FP301.md",
    }
    assert as_data(error(None))["line"] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_a_terminal_sees_the_same_words_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    Console().diagnose([error(SOURCE.span(12, 16), "see [bold]this[/bold]")])
    text = terminal.getvalue()
    assert "\x1b[" in text
    assert "see [bold]this[/bold]" in text  # text of a user is no markup


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_an_answer_that_cannot_be_written_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OutputError, match="No space left"):
        Console().out("pass")


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_reader_who_had_enough_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    console = Console()
    console.out("pass")
    console.out("more")
    assert console.closed
