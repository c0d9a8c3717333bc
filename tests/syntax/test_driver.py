"""The driver over generated tables against Lark itself: trees, places of errors, what is expected."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from strategies import sentences, text_of

from flowproof.diagnostics import Report
from flowproof.resources import data
from flowproof.syntax import driver, lalr, parse
from flowproof.syntax.driver import BAD, END, Parser, tokens
from flowproof.syntax.render import render
from flowproof.syntax.tables import TABLES
from flowproof.syntax.tree import Sentence

VECTORS = Path(__file__).parents[1] / "vectors"
SENTENCE = re.compile(r"(?m)^ *[\w.-]+: ((?:allow|observe|expect|deny|never)\b.*)$")


@cache
def oracle() -> Lark:
    return lalr.parser(data("grammar", "control.lark"))


def by_driver(start: str, text: str) -> object:
    """Return a tree of tuples, or (place, what was expected) of the first word that does not fit."""

    def build(rule: str, _start: int, _end: int, children: list[Any]) -> object:
        return (
            rule,
            [(c.type, c.text, c.start) if isinstance(c, driver.Token) else c for c in children],
        )

    parser = Parser(TABLES, start, build)
    for token in tokens(TABLES, text):
        if not parser.feed(token):
            if token.type == BAD:
                return token.start, None
            place = None if token.type == END else token.start
            state = TABLES.states[parser.states[-1]]
            return place, {name for name in state if name.isupper()}
    return parser.result


def by_lark(start: str, text: str) -> object:
    def plain(node: Tree[Token] | Token) -> object:
        if isinstance(node, Token):
            return node.type, str(node), node.start_pos
        return str(node.data), [plain(child) for child in node.children]

    try:
        return plain(oracle().parse(text, start=start))
    except UnexpectedCharacters as error:
        return error.pos_in_stream, None
    except UnexpectedToken as error:
        place = None if error.token.type == END else error.pos_in_stream
        return place, set(error.expected)
    except UnexpectedInput as error:  # pragma: no cover  Lark has no others
        raise AssertionError(error) from error


def corpus() -> list[str]:
    found: dict[str, None] = {}
    for name in ("errors", "accepted", "connect", "files"):
        for vector in json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8")):
            for text in vector.get("files", {}).values():
                found.update(dict.fromkeys(SENTENCE.findall(text)))
    return list(found)


PIECES = (
    *TABLES.keywords,
    *(" ", ",", ", ", ":", ":443", ":{", "{80,443}", "}", '"', '"a b"', "\\", "[::1]", "[", "?"),
    *(
        "${X}",
        "@crm",
        "unix:/x",
        'unix:"/x y":1',
        "/srv",
        "*",
        "\t",
        "\n",
        "\u00a0",
        "10.0.0.1",
        "-",
    ),
)


def mutated(text: str, choose: random.Random) -> str:
    for _ in range(choose.randint(1, 3)):
        at = choose.randint(0, len(text))
        cut = choose.choice((0, 0, 1, 4))
        text = text[:at] + choose.choice(PIECES) + text[at + cut :]
    return text


def test_the_corpus_is_not_empty() -> None:
    assert len(corpus()) > 200


@pytest.mark.parametrize("start", lalr.STARTS)
def test_driver_and_lark_agree_on_the_corpus(start: str) -> None:
    for text in corpus():
        part = text if start == "sentence" else text.partition(" to ")[2]
        assert by_driver(start, part) == by_lark(start, part), part


def test_driver_and_lark_agree_on_mutations_of_the_corpus() -> None:
    choose = random.Random(20)
    outcomes = set()
    for text in corpus():
        for _ in range(6):
            mutation = mutated(text, choose)
            found = by_driver("sentence", mutation)
            assert found == by_lark("sentence", mutation), mutation
            assert isinstance(found, tuple)
            outcomes.add(found[0])
    # trees, places in the text, and its end: a comparison of nothing but errors would show little
    assert "sentence" in outcomes
    assert None in outcomes
    assert len(outcomes) > 30


@given(sentences)
def test_driver_and_lark_agree_on_rendered_sentences(sentence: Sentence) -> None:
    text = render(sentence)
    assert by_driver("sentence", text) == by_lark("sentence", text)


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_driver_and_lark_agree_on_word_salad(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert by_driver("sentence", text) == by_lark("sentence", text)


def test_the_tables_are_those_of_the_grammar() -> None:
    assert lalr.build(data("grammar", "control.lark")) == TABLES


def test_an_edited_grammar_is_parsed_by_lark_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = data("grammar", "control.lark").replace('"never"', '"nimmer"')
    monkeypatch.setattr(parse, "_current", None)
    monkeypatch.setattr(parse, "data", lambda *_parts: edited)
    assert parse.parse_sentence(text_of("nimmer connect to 10.0.0.1"), Report()) is not None
    report = Report()
    assert parse.parse_sentence(text_of("never connect to 10.0.0.1"), report) is None
    assert [error.span.text for error in report.errors if error.span] == ["never"]


def test_parsing_does_not_import_lark() -> None:
    script = (
        "import sys\n"
        "from flowproof.diagnostics import Report, Source\n"
        "from flowproof.source.documents import Text\n"
        "from flowproof.syntax.parse import parse_sentence\n"
        "text = 'allow connect to api.example.com:443'\n"
        "source = Source('x', text)\n"
        "span = source.span(0, len(text))\n"
        "assert parse_sentence(Text(text, span, tuple(range(len(text) + 1))), Report())\n"
        "wrong = {'lark', 'idna', 'typing', 'dataclasses', 'pathlib', 'inspect'} & set(sys.modules)\n"
        "assert not wrong, wrong\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=Path(__file__).parents[2], check=False
    )
    assert done.returncode == 0
