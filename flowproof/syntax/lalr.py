"""LALR tables from the grammar, built by Lark: when they are generated, and when the grammar was edited.

Nothing here is imported on the ordinary way: the tables of `tables.py` are.
"""

from __future__ import annotations

import hashlib
import re

from flowproof.syntax.driver import Rule, Tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lark import Lark

__all__ = ["STARTS", "build", "digest", "parser"]

STARTS = ("sentence", "destinations")


def digest(grammar: str) -> str:
    """Return the SHA-256 of a grammar text, by which tables say what they were made from."""
    return hashlib.sha256(grammar.encode()).hexdigest()


def parser(grammar: str) -> Lark:
    """Return Lark's own parser for *grammar*: the oracle of the driver, and the source of its tables."""
    from lark import Lark  # noqa: PLC0415  five times a bare interpreter start

    return Lark(grammar, parser="lalr", lexer="basic", start=list(STARTS), maybe_placeholders=False)


def build(grammar: str) -> Tables:
    """Return the driver's tables for *grammar*."""
    lark = parser(grammar)
    table = lark.parser.parser._parse_table  # noqa: SLF001  Lark has no public form of its tables
    ordered = sorted(lark.rules, key=lambda r: (str(r.origin.name), [s.name for s in r.expansion]))
    number = {rule: at for at, rule in enumerate(ordered)}
    # Lark numbers states by the order of sets: here they are numbered as they are reached, so that
    # one grammar gives one file
    reached = list(dict.fromkeys(table.start_states[start] for start in STARTS))
    states: list[dict[str, int]] = []
    for state in reached:
        actions: dict[str, int] = {}
        for symbol, (action, target) in sorted(table.states[state].items()):
            if str(action) == "Reduce":
                actions[symbol] = -number[target] - 1
                continue
            if target not in reached:
                reached.append(target)
            actions[symbol] = reached.index(target) + 1
        states.append(actions)
    rules = []
    for rule in ordered:
        keep = tuple(
            at
            for at, symbol in enumerate(rule.expansion)
            if rule.options.keep_all_tokens or not getattr(symbol, "filter_out", False)
        )
        origin = str(rule.origin.name)
        rules.append(
            Rule(
                origin,
                len(rule.expansion),
                keep,
                None if origin[0] == "_" else rule.alias or origin,
            )
        )
    pattern, keywords = _lexer(lark)
    return Tables(
        digest(grammar),
        pattern,
        keywords,
        tuple(states),
        tuple(rules),
        {start: reached.index(table.start_states[start]) for start in STARTS},
        {start: reached.index(table.end_states[start]) for start in STARTS},
    )


def _lexer(lark: Lark) -> tuple[str, dict[str, str]]:
    """Return one regular expression for all tokens, and the words that are keywords.

    A string terminal that a regular expression terminal of the same priority matches whole is a
    keyword, as in Lark's basic lexer; the others stand in the expression in Lark's order: priority,
    widest match, longest pattern, name.
    """
    terminals = sorted(
        lark.terminals,
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    expressions = [t for t in terminals if t.pattern.type == "re"]
    keywords: dict[str, str] = {}
    parts = []
    for terminal in terminals:
        value = terminal.pattern.value
        if terminal.pattern.type == "str" and any(
            e.priority == terminal.priority and re.fullmatch(e.pattern.to_regexp(), value)
            for e in expressions
        ):
            keywords[value] = terminal.name
        else:
            parts.append(f"(?P<{terminal.name}>{terminal.pattern.to_regexp()})")
    return "|".join(parts), dict(sorted(keywords.items()))
