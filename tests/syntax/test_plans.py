"""Sentences built by the plan of their shape are those that the parser makes, and say the same of mistakes."""

from __future__ import annotations

import random

import pytest
from strategies import text_of
from test_driver import corpus, mutated

from flowproof.diagnostics import Report
from flowproof.syntax import parse
from flowproof.syntax.build import Builder
from flowproof.syntax.driver import Parser, tokens
from flowproof.syntax.plans import LONGEST, MOST, Plans, built
from flowproof.syntax.tables import TABLES

FIRST = "allow connect tcp to 10.0.0.1:443"
SECOND = "never connect udp to crm.example:53"


def by_parser(text: str) -> tuple[object, list[str]]:
    report, source = Report(), text_of(text)
    parser = Parser(TABLES, "sentence", Builder(source, report))
    fit = all(parser.feed(word) for word in tokens(TABLES, text))
    return parser.result if fit else None, [str(found) for found in report]


def by_plan(plans: Plans, text: str) -> tuple[object, list[str]] | None:
    report, source = Report(), text_of(text)
    words = tokens(TABLES, text)
    plans.plan("sentence", words)
    plan = plans.plan("sentence", words)
    if plan is None:
        return None
    return built(plan, words, Builder(source, report)), [str(found) for found in report]


def test_a_plan_builds_what_the_parser_builds_in_the_corpus_and_in_mutations_of_it() -> None:
    choose = random.Random(7)
    plans, planned, refused = Plans(TABLES), 0, 0
    for text in corpus():
        for one in (text, mutated(text, choose), mutated(text, choose)):
            found, expected = by_plan(plans, one), by_parser(one)
            if found is None:
                plans = Plans(TABLES) if len(plans) == MOST else plans
                refused += expected[0] is None
                continue
            planned += 1
            assert repr(found) == repr(expected), one
    assert planned > 200  # and not only what has no plan
    assert refused > 50


def test_a_shape_has_a_plan_from_its_second_sentence_on() -> None:
    plans = Plans(TABLES)
    assert plans.plan("sentence", tokens(TABLES, FIRST)) is None
    plan = plans.plan("sentence", tokens(TABLES, FIRST.replace("10.0.0.1", "host.example")))
    assert plan
    assert plans.plan("sentence", tokens(TABLES, SECOND)) is None  # another verb, another shape
    assert plans.plan("destinations", tokens(TABLES, FIRST)) is None


@pytest.mark.parametrize("text", ["allow connect to", "connect to x.example", 'allow "x', ""])
def test_what_does_not_fit_never_has_a_plan(text: str) -> None:
    plans = Plans(TABLES)
    assert [plans.plan("sentence", tokens(TABLES, text)) for _ in range(3)] == [None] * 3


def test_long_sentences_and_the_shapes_beyond_the_most_have_none() -> None:
    plans = Plans(TABLES)
    long = tokens(TABLES, "allow connect to " + ", ".join(["10.0.0.1"] * LONGEST))
    assert [plans.plan("sentence", long) for _ in range(2)] == [None, None]
    for count in range(MOST):
        plans.plan("sentence", tokens(TABLES, "deny " * (count % 32) + "x " * (count // 32)))
    assert len(plans) == MOST
    beyond = tokens(TABLES, FIRST)
    assert [plans.plan("sentence", beyond) for _ in range(2)] == [None, None]


def test_ten_rules_of_a_shape_go_through_the_parser_once_and_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [FIRST.replace("0.1", f"0.{n}") for n in range(1, 11)]
    expected = [by_parser(text)[0] for text in texts]
    monkeypatch.setattr(parse, "_current", None)
    found = [parse.parse_sentence(text_of(text), Report()) for text in texts]
    assert [repr(one) for one in found] == [repr(one) for one in expected]
