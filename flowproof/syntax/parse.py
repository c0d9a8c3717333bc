"""Sentences and destinations to trees, with all that is wrong in them said in one go."""

from __future__ import annotations

from flowproof.near import near_miss
from flowproof.resources import data
from flowproof.syntax import unexpected
from flowproof.syntax.build import Builder
from flowproof.syntax.driver import BAD, END, Parser, tokens
from flowproof.syntax.plans import Plans, built
from flowproof.syntax.tables import TABLES
from flowproof.syntax.tree import Anything

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flowproof.diagnostics import Report
    from flowproof.source.documents import Text
    from flowproof.syntax.driver import Tables, Token
    from flowproof.syntax.tree import Destination, Sentence

__all__ = ["parse_destination", "parse_destinations", "parse_sentence"]


def parse_sentence(text: Text, report: Report) -> Sentence | None:
    """Return the sentence behind a rule id, or None with its errors in *report*."""
    sentence: Sentence | None = _parse("sentence", text, report)
    return sentence


def parse_destination(text: Text, report: Report) -> Destination | None:
    """Return the one destination of an `allow_egress` entry, or None with its errors in *report*.

    ``anything`` is refused: an entry names what is allowed.
    """
    found = _parse("destinations", text, report)
    if found is None:
        return None
    if len(found) > 1:
        report.error(
            "FP413",
            f"`{text.value}` is {len(found)} destinations, and an entry is one",
            text.at(0, len(text.value)),
            "give each destination an entry of its own",
        )
        return None
    node: Destination | None = found[0]
    if node is not None and isinstance(node.host, Anything):
        report.error(
            "FP413",
            f"`{node.span.text}` allows what the list is there to leave out",
            node.span,
            "name the destinations; a rule may say `allow connect to anything`",
        )
        return None
    return node


def parse_destinations(text: Text, report: Report) -> tuple[Destination, ...]:
    """Return the destinations of a set member; those that were refused are errors in *report*.

    ``anything else`` is refused: what it means depends on the rule that would use the set.
    """
    good = []
    for node in _parse("destinations", text, report) or ():
        if node is not None and isinstance(node.host, Anything) and node.host.otherwise:
            report.error(
                "FP413",
                f"`{node.span.text}` cannot be in a set: what it leaves over depends on the rule",
                node.span,
                "write it in the rule itself",
            )
        elif node is not None:
            good.append(node)
    return tuple(good)


_MENDS = 20  # a sentence with more misspelt words is another language

_current: tuple[Tables, Plans] | None = None


def tables() -> Tables:
    """Return the tables in use: the generated ones, or Lark's where the grammar at hand differs."""
    return _grammar()[0]


def _grammar() -> tuple[Tables, Plans]:
    global _current  # noqa: PLW0603  the grammar is read once in a process
    if _current is None:
        from hashlib import sha256  # noqa: PLC0415

        grammar = data("grammar", "control.lark")
        table = TABLES
        if sha256(grammar.encode()).hexdigest() != TABLES.digest:
            from flowproof.syntax.lalr import build  # noqa: PLC0415  imports Lark

            table = build(grammar)
        _current = (table, Plans(table))
    return _current


def _parse(start: str, text: Text, report: Report) -> Any:  # noqa: ANN401  the builder's nodes are of any kind
    """Feed the words of *text*; where one does not fit, say so, mend the sentence and go on."""
    table, plans = _grammar()
    builder = Builder(text, report)
    words = tokens(table, text.value)
    plan = plans.plan(start, words)
    if plan is not None:
        return built(plan, words, builder)
    parser = Parser(table, start, builder)
    broken = 0
    at = 0
    while at < len(words):
        if parser.feed(words[at]):
            at += 1
            continue
        broken += 1
        words = _mend(parser, words, at, text, report)
        if not words or broken > _MENDS:
            return None
    return None if broken else parser.result


def _mend(parser: Parser, words: list[Token], at: int, text: Text, report: Report) -> list[Token]:
    """Report that ``words[at]`` does not fit; return words that do, or none to end here."""
    token = words[at]
    expected = parser.expected()
    keywords = unexpected.keywords(parser.tables, expected)
    everything = unexpected.means_everything(token, expected)
    if (
        token.type not in {END, BAD}
        and not everything
        and (near := near_miss(token.text, keywords))
    ):
        unexpected.misspelt(token, near, text, report)
        return [*words[:at], token.retyped(keywords[near]), *words[at + 1 :]]
    unexpected.report(parser.tables, token, expected, words[:at], text=text, found=report)
    if token.type in {END, BAD}:
        return []
    rest = [word.type for word in words[at + 1 :]]
    for kinds in (
        (["TO", "ANYTHING"], ["ON", "ANYTHING"], ["CONNECT", "TO", "ANYTHING"])
        if everything
        else ()
    ):
        if parser.accepts([*kinds, *rest]):
            return [*words[:at], *map(token.retyped, kinds), *words[at + 1 :]]
    # where the sentence could end, what follows is too much rather than a word too few
    for kind in () if END in expected else keywords.values():
        if parser.accepts([kind, token.type, *rest]):
            return [*words[:at], token.retyped(kind), *words[at:]]
    # another action's word (`connect under /srv`) leaves what follows in doubt; `listen to` does not
    swaps = token.type in {"WORD", "TO", "ON"}
    for kind in keywords.values() if swaps else ():
        if parser.accepts([kind, *rest]):
            return [*words[:at], token.retyped(kind), *words[at + 1 :]]
    if parser.accepts(rest):
        return [*words[:at], *words[at + 1 :]]
    return []
