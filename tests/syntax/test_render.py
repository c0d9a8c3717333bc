from __future__ import annotations

from hypothesis import given
from strategies import bare, destinations, sentences, text_of

from flowproof.diagnostics import Report
from flowproof.syntax import tree
from flowproof.syntax.parse import parse_sentence
from flowproof.syntax.render import render, render_destination


@given(sentences)
def test_a_rendered_sentence_parses_to_the_tree_that_it_came_from(sentence: tree.Sentence) -> None:
    report = Report()
    again = parse_sentence(text_of(render(sentence)), report)
    assert not report.errors, (render(sentence), report.errors)
    assert bare(again) == sentence


@given(sentences)
def test_rendering_is_idempotent(sentence: tree.Sentence) -> None:
    again = parse_sentence(text_of(render(sentence)), Report())
    assert again is not None
    assert render(again) == render(sentence)


@given(destinations())
def test_no_rendered_destination_is_warned_about(destination: tree.Destination) -> None:
    report = Report()
    parse_sentence(text_of(f"deny connect to {render_destination(destination)}"), report)
    assert not list(report)


def test_spelling_is_canonical() -> None:
    written = (
        'allow connect  tcp,udp to API.Example.COM.:443-443,[::FFFF:10.0.0.9]:{80, 443},"db":5432,'
        ' 2001:DB8:0::1 except localhost because "a \\"b\\""'
    )
    sentence = parse_sentence(text_of(written), Report())
    assert sentence is not None
    assert render(sentence) == (
        'allow connect tcp, udp to api.example.com:443, 10.0.0.9:{80,443}, "db":5432,'
        ' 2001:db8::1 except loopback because "a \\"b\\""'
    )


def test_a_path_that_needs_quotes_gets_them() -> None:
    written = 'deny delete, write at "/srv/my files/*", logs//a:80/, "${cwd}/never", ./never except under ~/x'
    sentence = parse_sentence(text_of(written), Report())
    assert sentence is not None
    assert render(sentence) == (
        'deny delete, write at "/srv/my files/*", ${cwd}/logs/a:80, ${cwd}/never, ${cwd}/never'
        " except under ~/x"
    )
