"""YAML as nodes with places: strings stay strings, positions hold, and both of PyYAML's parsers agree."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowproof.diagnostics import Report
from flowproof.source import compose, yaml_events, yaml_nodes
from flowproof.source.decode import LIMIT
from flowproof.source.nodes import Mapping, Scalar, Sequence
from flowproof.source.yaml_nodes import load

VECTORS = Path(__file__).parents[1] / "vectors"
PARSERS = {"libyaml": yaml_events.events, "python": yaml_events.pure_events}
Node = Scalar | Sequence | Mapping


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setattr(yaml_nodes, "events", PARSERS[name])
    return name


def read(text: str | bytes) -> tuple[Node | None, Report]:
    report = Report()
    loaded = load(text if isinstance(text, bytes) else text.encode(), "x.yaml", report)
    return (loaded[1] if loaded else None), report


def plain(node: Node | None) -> object:
    match node:
        case Scalar():
            return node.text.value
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {key.text.value: plain(value) for key, value in node.entries}
    return None


def said(text: str | bytes) -> list[tuple[str, int, int]]:
    return [(d.code, d.span.line, d.span.column) for d in read(text)[1] if d.span]


def scalars(node: Node | None) -> list[Scalar]:
    match node:
        case Scalar():
            return [node]
        case Sequence():
            return [scalar for item in node.items for scalar in scalars(item)]
        case Mapping():
            return [s for entry in node.entries for part in entry for s in scalars(part)]
    return []


def test_libyaml_is_tested_here() -> None:
    assert type(next(PARSERS["libyaml"]("a: b"))).__name__ == "StreamStartEvent"
    assert "yaml._yaml" in sys.modules


def test_without_libyaml_the_parser_in_python_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    assert plain(read("a: [b, 'c']\n")[0]) == {"a": ["b", "c"]}


@pytest.mark.parametrize(
    "text",
    [
        "on",
        "no",
        "010",
        "0o10",
        "1.10",
        "1e3",
        "true",
        "2026-01-01",
        "1:30",
        "0x1f",
        ".5",
        "<<",
        "=",
    ],
)
def test_a_plain_scalar_is_its_source_text(parser: str, text: str) -> None:
    assert plain(read(f"a: {text}\n")[0]) == {"a": text}
    assert plain(read(f"{text}: a\n")[0]) == {text: "a"}


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_is_known_for_what_it_is(parser: str, text: str) -> None:
    (_key, value) = scalars(read(f"a: {text}\n")[0])
    assert value.null
    (_key, value) = scalars(read(f"a: '{text}'\n")[0])
    assert not value.null


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_break_of_yaml_1_2_is_one(parser: str, end: str) -> None:
    lines = ["a: b", "c: >-", "  d", "  e", "", "  f", "g: h"]
    root, report = read(end.join(lines))
    assert not list(report)
    assert plain(root) == {"a": "b", "c": "d e\nf", "g": "h"}
    last = scalars(root)[-1]
    assert (last.span.line, last.span.column) == (7, 4)


def test_breaks_of_yaml_1_1_are_characters(parser: str) -> None:
    text = "# \u2028\na: b\u0085c\u2028d\u2029e\ufefff\ng: '\u2028'\n\u2028h: \"\\L\u2029\"\n"
    root, report = read(text)
    assert not list(report)
    assert plain(root) == {
        "a": "b\x85c\u2028d\u2029e\ufefff",
        "g": "\u2028",
        "\u2028h": "\u2028\u2029",
    }
    assert scalars(root)[-1].span.line == 4


def test_a_byte_order_mark_is_not_counted(parser: str) -> None:
    root, _report = read(b"\xef\xbb\xbfa: b\n")
    assert [(s.span.line, s.span.column) for s in scalars(root)] == [(1, 1), (1, 4)]


def test_the_stand_in_of_a_break_is_no_character_of_the_file(parser: str) -> None:
    private = "".join(chr(c) for c in range(0xE000, 0xE010))
    root, _report = read(f"a: {private}\u2028b\n")
    assert plain(root) == {"a": f"{private}\u2028b"}


CASES = {
    "plain": ("a: one two\n", "two", (1, 8)),
    "plain over lines": ("a: one\n  two\n\n  three\n", "three", (4, 3)),
    "single, doubled quote": ("a: 'it''s two'\n", "two", (1, 11)),
    "single over lines": ("a: 'one\n\n   two'\n", "two", (3, 4)),
    "double, escapes": ('a: "\\x41\\u00e9\\U0001F4E6\\t two"\n', "two", (1, 28)),
    "double, escaped break": ('a: "one \\\n    two"\n', "two", (2, 5)),
    "literal": ("a: |\n  one\n    two\n", "two", (3, 5)),
    "literal, indented by hand": ("a: |2\n    one\n  two\n", "two", (3, 3)),
    "folded": ("a: >-\n  one\n  two\n", "two", (3, 3)),
    "folded, blank lines": ("a: >+ # c\n\n  one\n\n\n  two\n\n", "two", (6, 3)),
    "folded, more indented": ("a: >\n  one\n    two\n  three\n", "three", (4, 3)),
    "block in a list": ("- - |\n   one\n   two\n", "two", (3, 4)),
    "outside the BMP": ("a: 📦 two\n", "two", (1, 6)),
    "flow": ("{a: [one, two]}\n", "two", (1, 11)),
}


@pytest.mark.parametrize(("text", "word", "place"), CASES.values(), ids=CASES)
def test_a_character_keeps_its_place(
    parser: str, text: str, word: str, place: tuple[int, int]
) -> None:
    root, report = read(text)
    assert not list(report)
    value = next(s for s in scalars(root) if word in s.text.value)
    at = value.text.value.index(word)
    span = value.text.at(at, at + len(word))
    assert (span.line, span.column, span.text) == (*place, word)
    assert len(value.text.offsets) == len(value.text.value) + 1


STYLES = st.sampled_from(["plain", "single", "double", "literal", "folded"])
WORDS = st.lists(st.text("abcé'\"\\ #:", min_size=1, max_size=6), min_size=1, max_size=4)


def written(style: str, lines: list[str], end: str) -> str:
    match style:
        case "single":
            body = (end + "  ").join(line.replace("'", "''") for line in lines)
            return f"a: '{body}'{end}"
        case "double":
            escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
            return f'a: "{(end + "  ").join(escaped)}"{end}'
        case "plain":
            words = ["x" + "".join(c for c in line if c in "abcé") for line in lines]
            return f"a: {(end + '  ').join(words)}{end}"
        case _:
            return f"a: {'|' if style == 'literal' else '>'}2{end}  {(end + '  ').join(lines)}{end}"


@given(STYLES, WORDS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_each_character_of_a_value_stands_where_its_offset_says(
    style: str, lines: list[str], end: str
) -> None:
    text = written(style, lines, end)
    root, report = read(text)
    assert not list(report), text
    value = scalars(root)[1].text
    for at, char in zip(value.offsets, value.value, strict=False):
        there = text[at]
        assert (
            there == char
            or (there == "\\" and style == "double")
            or (char in " \n" and there in "\r\n")
        )
    assert list(value.offsets) == sorted(value.offsets)


def dump(node: Node | None) -> object:
    match node:
        case Scalar():
            return node.text.value, node.text.offsets, node.span.start, node.span.end, node.style
        case Sequence():
            return [dump(item) for item in node.items], node.flow, node.span.start, node.span.end
        case Mapping():
            entries = [(dump(key), dump(value)) for key, value in node.entries]
            return entries, node.flow, node.span.start, node.span.end
    return None


def corpus() -> list[str]:
    found = [text for text, _word, _place in CASES.values()]
    for name in ("errors", "accepted"):
        for vector in json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8")):
            found += vector.get("files", {}).values()
    return found


PIECES = (
    *" \t\n\r:#-,[]{}\"'|>*&!%@`?\\~x",
    *("\n  ", "\r\n", ": ", " #", "\u2028", "é", "\ufeff", "- ", '"\n', ">-\n", "|\n", "{a:[b]}"),
)


def mutated(text: str, choose: random.Random) -> str:
    for _ in range(choose.randint(1, 3)):
        at = choose.randint(0, len(text))
        text = text[:at] + choose.choice(PIECES) + text[at + choose.choice((0, 0, 1, 3)) :]
    return text


def test_both_parsers_give_the_same_nodes_or_both_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(12)
    texts = corpus()
    read_by_both = 0
    for text in (*texts, *(mutated(choose.choice(texts), choose) for _ in range(600))):
        results = []
        for events in PARSERS.values():
            monkeypatch.setattr(yaml_nodes, "events", events)
            root, report = read(text)
            results.append("refused" if report.errors else dump(root))
        assert results[0] == results[1], text
        read_by_both += results[0] != "refused"
    assert read_by_both > 300


def test_what_breaks_yaml_in_several_places_is_named_in_one_go(parser: str) -> None:
    text = 'a: @b\nc: d: e\nf: "g" h\ni: &j k\nl: *m\nn: [o]:443\np: "\\q"\nr: `s\nt: %u\n'
    found = said(text)
    assert [line for _code, line, _column in found] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [code for code, _line, _column in found] == [
        *("FP208", "FP208", "FP208", "FP205", "FP205", "FP208", "FP203", "FP208", "FP208")
    ]


def test_what_is_broken_is_marked_and_keeps_its_text(parser: str) -> None:
    root, _report = read("a: @b\nc: d\n")
    assert [(s.text.value, s.broken) for s in scalars(root)] == [
        *(("a", False), ("@b", True), ("c", False), ("d", False))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: *.example.com\n", ("FP208", 1, 4)),
        ("a: [*.example.com]\n", ("FP208", 1, 5)),
        ("- *b\n", ("FP205", 1, 3)),
        ("a: !!str b\n", ("FP206", 1, 4)),
        ("a: ! b\n", ("FP206", 1, 4)),
        ("%YAML 1.2\n---\na: b\n", ("FP206", 1, 1)),
        ("a: b\n---\nc: d\n", ("FP206", 2, 1)),
        ("[a]: b\n", ("FP210", 1, 1)),
        ("? {a: b}\n: c\n", ("FP210", 1, 3)),
        (": a\n", ("FP203", 1, 1)),
        ("~: a\n", ("FP210", 1, 1)),
        ("a: b\na: c\n", ("FP204", 2, 1)),
        ("a: 1\n'a': 2\n", ("FP204", 2, 1)),
        ("a:\n\t- b\n", ("FP207", 2, 1)),
        ("a: [b,\n \tc]\n", ("FP207", 2, 2)),
        ("a: b\n\tc\n", ("FP207", 2, 1)),
        ("a: b\n c: d\n", ("FP203", 2, 2)),
        ('a: "b\n', ("FP203", 1, 4)),
        ('a: "\\ud83d"\n', ("FP203", 1, 5)),
        ('a: "\\U00110000"\n', ("FP203", 1, 5)),
        ("a: |#b\n  c\n", ("FP203", 1, 5)),
        ("a: \x07\n", ("FP203", 1, 4)),
        ("", ("FP203", 1, 1)),
        ("# nothing\n", ("FP203", 1, 1)),
        (b"a: \xff\n", ("FP201", 1, 4)),
        ("é: 1\n".encode("utf-16"), ("FP201", 1, 1)),
    ],
)
def test_what_is_refused_is_named_once_at_its_place(
    parser: str, text: str | bytes, expected: tuple[str, int, int]
) -> None:
    assert said(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "---\na: b\n...\n",
        "a: 'b\n\t  c'\n",
        "a: |\n  b\n  \tc\n",
        "a:\tb\n",
        "a: b\t# c\n",
        "{a:[b], 'c':d}\n",
        "? a\n: b\n",
        "a: {b, c: d}\n",
        "# c\n\n\t\n  \t# d\na: b\n",
    ],
)
def test_what_yaml_1_2_allows_is_read(parser: str, text: str) -> None:
    root, report = read(text)
    assert root is not None
    assert not list(report)


def test_a_document_over_four_mebibytes_is_refused() -> None:
    assert said(b"a: " + b"b" * LIMIT) == [("FP202", 1, 1)]
    assert said(b"a: b\n#" + b"b" * (LIMIT - 6)) == []


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 100_000, "- " * 100_000, "? " * 100_000])
def test_a_nesting_bomb_is_refused_at_once(parser: str, text: str) -> None:
    began = time.monotonic()
    assert [code for code, _line, _column in said(text)] == ["FP209"]
    assert time.monotonic() - began < 5


def test_an_alias_bomb_is_refused_at_once(parser: str) -> None:
    text = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert {code for code, _line, _column in said(text)} == {"FP205"}


def test_a_depth_that_is_allowed_is_read(parser: str) -> None:
    depth = compose.DEPTH
    assert said("[" * depth + "]" * depth) == []
    assert said("[" * (depth + 1) + "]" * (depth + 1)) == [("FP209", 1, depth + 1)]


def test_an_error_shows_its_way_out() -> None:
    (error,) = read('rules:\n  a: deny connect to x because "ticket: 12"\n')[1].errors
    assert error.help == "quote this: `'deny connect to x because \"ticket: 12\"'`"
