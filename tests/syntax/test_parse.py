"""What an author is told about a sentence that does not parse, and the spans of one that does."""

from __future__ import annotations

from pathlib import Path

import pytest
from strategies import text_of

from flowproof.diagnostics import Report
from flowproof.source.suite import load
from flowproof.syntax import tree
from flowproof.syntax.parse import parse_sentence


def said(text: str) -> list[tuple[str, str]]:
    report = Report()
    sentence = parse_sentence(text_of(text), report)
    assert (sentence is None) == bool(report.errors)
    return [(d.code, d.span.text if d.span else "") for d in report]


def told(text: str) -> str:
    report = Report()
    parse_sentence(text_of(text), report)
    (error,) = report
    return f"{error.message} | {error.help}"


def test_every_error_of_a_sentence_comes_in_one_go() -> None:
    assert said(
        "nevr conect tpc to loopbak, 10.0.0.1/8:70000, 10.0.0.256 excpt a..b becuase x"
    ) == [
        ("FP302", "nevr"),
        ("FP302", "conect"),
        ("FP302", "tpc"),
        ("FP408", "loopbak"),
        ("FP403", "10.0.0.1/8"),
        ("FP404", "70000"),
        ("FP401", "10.0.0.256"),
        ("FP302", "excpt"),
        ("FP409", "a..b"),
        ("FP302", "becuase"),
        ("FP301", "x"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("FP303", "")]),
        ("allow", [("FP303", "")]),
        ("allow connect", [("FP303", "")]),
        ("connect to 10.0.0.1", [("FP301", "connect")]),
        ("deny to 10.0.0.1", [("FP301", "to")]),
        ("deny connect 10.0.0.256", [("FP301", "10.0.0.256"), ("FP401", "10.0.0.256")]),
        ("expect delete under /srv/..", [("FP301", "delete"), ("FP306", "/srv/..")]),
        ("deny delete under /srv please", [("FP301", "please")]),
        ("deny delete under /srv under /x", [("FP301", "under")]),
        ("deny connect to 10.0.0.1 10.0.0.2", [("FP301", "10.0.0.2")]),
        ("allow connect tcp udp to 10.0.0.1", [("FP301", "udp")]),
        ("allow connect udp, tcp to 10.0.0.1", [("FP301", ",")]),
        ("allow connect tcp, tcp to 10.0.0.1", [("FP301", "tcp")]),
        ("deny connect to 10.0.0.1 because", [("FP303", "")]),
        ("deny connect to 10.0.0.1 because x", [("FP301", "x")]),
        ('deny connect to 10.0.0.1 because "a" "b"', [("FP301", '"b"')]),
        ("deny never connect to 10.0.0.1", [("FP301", "never")]),
        ("Deny connect to 10.0.0.1", [("FP302", "Deny")]),
        ("deny delete under never", [("FP301", "never")]),
        ("deny delete under [a]", [("FP301", "[a]")]),
        ("deny delete at /srv/{a,b}", [("FP304", "/srv/{a")]),
        ("deny delete at /srv/a?", [("FP304", "/srv/a?")]),
        ("deny connect to 10.0.0.1\u00a010.0.0.2", [("FP409", "10.0.0.1\u00a010.0.0.2")]),
        ("deny call a/b", [("FP309", "a/b")]),
        ('deny call "a b", c', [("FP309", '"a b"')]),
        ("listen", [("FP301", "listen")]),
        (
            "allow listen on api.example.com, unix:/x",
            [("FP310", "api.example.com"), ("FP310", "unix:/x")],
        ),
        ("allow listen except *.example.com", [("FP310", "*.example.com")]),
        ("allow connect tcp to unix:/x", [("FP310", "unix:/x")]),
        ("deny connect udp to anything except unix:/x", [("FP310", "unix:/x")]),
        ("deny delete under /srv/*", [("FP308", "/srv/*")]),
        ("allow connect to unix:/run/db.sock:5432", [("FP308", "unix:/run/db.sock:5432")]),
    ],
)
def test_what_does_not_fit_is_underlined(text: str, expected: list[tuple[str, str]]) -> None:
    found = Report()
    parse_sentence(text_of(text), found)
    assert [(d.code, d.span.text if d.span else "") for d in found] == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "`deny connect to anything else`"),
        ("allow", "`connect`, `listen`, `delete`"),
        ("allow connect", "`tcp`, `udp` or `to`"),
        ("allow connect to", "a destination"),
        ("deny delete under", "a path"),
        ("deny delete", "`under`, `at`, `anywhere` or `,`"),
        ("deny call", "a tool"),
        ("deny connect to 10.0.0.1 because", "a reason in double quotes"),
        ("deny connect to 10.0.0.1 because x", '`because "…"`'),
        ("deny connect to 10.0.0.1:{", "a port"),
        ("deny connect to 10.0.0.1:{80", "`,` or `}`"),
        ("deny connect to 10.0.0.1 please", "`except`, `because`, `,` or the end"),
        ("deny delete under never", '`"never"`'),
        ("deny connect 10.0.0.1", "write `to 10.0.0.1`"),
        ("deny connect to tcp 10.0.0.1", "in front of `to`: `connect tcp to`"),
        ("deny listen on tcp 10.0.0.1", '`"tcp"`'),
        ("deny connect icmp to 10.0.0.1", "the protocols are `tcp` and `udp`"),
        ("deny delete under [a]", '`"[a]"`'),
        ("deny delete at /srv/a?", '`"/srv/a?"`'),
        ("alow connect to 10.0.0.1", "did you mean `allow`?"),
        ("deny delete under /my files", "a word that holds a space is quoted"),
    ],
)
def test_what_would_be_right_is_named_in_the_words_of_the_author(text: str, says: str) -> None:
    assert says in told(text)


def test_a_missing_word_is_missing_at_the_end_of_the_sentence() -> None:
    report = Report()
    parse_sentence(text_of("deny delete under  \n "), report)
    (error,) = report
    assert error.span is not None
    assert (error.span.start, error.span.text) == (len("deny delete under"), "")


def test_a_sentence_that_a_comment_cut_is_told_to_be_quoted(tmp_path: Path) -> None:
    path = tmp_path / "x.policy.yaml"
    path.write_text(
        'policy: p\nrules:\n  a: deny connect to 10.0.0.1 because "see #12"\n  b: deny connect to # x\n'
    )
    report = Report()
    suite = load(str(path), report)
    assert suite is not None
    for _id, sentence in suite.packs[0].pack.rules:
        parse_sentence(sentence, report)
    assert [d.code for d in report] == ["FP305", "FP303"]
    assert all((d.help or "").startswith("quote this: ` #`") for d in report)


def test_a_huge_sentence_of_errors_ends() -> None:
    assert len(said("deny connect to " + "x, " * 5000 + "x")) == 5001
    assert 0 < len(said("alow " * 5000)) < 50


def test_spans_cover_the_words_of_each_part() -> None:
    text = 'never  delete, destroy under /srv/a, b except at /srv/a/*  because "x"'
    sentence = parse_sentence(text_of(text), Report())
    assert sentence is not None
    assert sentence.span.text == text
    assert isinstance(sentence.action, tree.Files)
    assert sentence.action.span.text == "delete, destroy under /srv/a, b except at /srv/a/*"
    assert [(name, span.text) for name, span in sentence.action.operations] == [
        ("delete", "delete"),
        ("destroy", "destroy"),
    ]
    assert sentence.action.where.span.text == "under /srv/a, b"
    assert [path.span.text for path in sentence.action.where.paths] == ["/srv/a", "b"]
    assert sentence.action.exceptions is not None
    assert sentence.action.exceptions.span.text == "at /srv/a/*"


def test_a_listen_without_on_is_on_anything() -> None:
    sentence = parse_sentence(text_of("allow listen except loopback"), Report())
    assert sentence is not None
    assert isinstance(sentence.action, tree.Listen)
    (only,) = sentence.action.destinations
    assert isinstance(only.host, tree.Anything)
    assert not only.host.otherwise
    assert only.span.text == "listen"


def test_anything_else_is_one_host() -> None:
    sentence = parse_sentence(text_of("deny connect to anything  else:25"), Report())
    assert sentence is not None
    assert isinstance(sentence.action, tree.Connect)
    (only,) = sentence.action.destinations
    assert (only.host.span.text, only.span.text) == ("anything  else", "anything  else:25")


@pytest.mark.parametrize("space", ["\t", "\n", "\r\n", "  \n\t "])
def test_words_are_parted_by_spaces_tabs_and_line_breaks(space: str) -> None:
    assert said(f"{space}deny{space}connect{space}to{space}10.0.0.1{space}") == []


def test_a_reason_holds_what_is_between_its_quotes() -> None:
    sentence = parse_sentence(
        text_of(r'deny connect to 10.0.0.1 because "a \"b\" \\ never, {x}"'), Report()
    )
    assert sentence is not None
    assert sentence.reason == r'a "b" \ never, {x}'


@pytest.mark.parametrize("word", ["all", "any", "everything", "anything", "All"])
@pytest.mark.parametrize(
    ("before", "way"),
    [
        ("deny", "deny connect to anything"),
        ("expect no", "expect no connect to anything"),
        ("never connect", "never connect to anything"),
        ("deny connect udp", "deny connect udp to anything"),
        ("deny listen", "deny listen on anything"),
    ],
)
def test_every_word_for_everything_is_told_how_a_sentence_says_it(
    word: str, before: str, way: str
) -> None:
    for behind in ("", ' because "x"'):
        report = Report()
        assert parse_sentence(text_of(f"{before} {word}{behind}"), report) is None
        assert [(d.code, d.help) for d in report] == [("FP301", f"write `{way}`")]


@pytest.mark.parametrize("word", ["all", "any", "everything"])
def test_every_path_is_anywhere(word: str) -> None:
    report = Report()
    assert parse_sentence(text_of(f"deny delete {word}"), report) is None
    assert [d.help for d in report] == ["the word here is `anywhere`"]
