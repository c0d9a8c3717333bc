"""An LALR parser over ready-made tables: what Lark does at runtime, without importing Lark."""

from __future__ import annotations

import re

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["BAD", "END", "Parser", "Rule", "Tables", "Token", "tokens"]

END = "$END"
BAD = "BAD"


class Rule(Value):
    """One production: *length* symbols become an *origin*; *keep* says which of them are children.

    *name* is what the tree calls it; None splices the children into the rule above.
    """

    origin: str
    length: int
    keep: tuple[int, ...]
    name: str | None


class Tables(Value):
    """ACTION and GOTO in one: per state, symbol to next state plus 1, or minus (rule plus 1) to reduce."""

    digest: str
    pattern: str
    keywords: dict[str, str]
    states: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    starts: dict[str, int]
    ends: dict[str, int]


class Token:
    """A word of the sentence: its terminal, its text, and where it stands (end exclusive)."""

    __slots__ = ("end", "start", "text", "type")

    def __init__(self, kind: str, text: str, start: int, end: int) -> None:
        self.type = kind
        self.text = text
        self.start = start
        self.end = end

    def retyped(self, kind: str) -> Token:
        """Return this token as one of another terminal: what the author meant by it."""
        return Token(kind, self.text, self.start, self.end)


class Parser:
    """One parse: `feed` tokens, and ask with `accepts` what would be right."""

    __slots__ = ("_build", "_end", "_values", "result", "states", "tables")

    def __init__(
        self, tables: Tables, start: str, build: Callable[[str, int, int, list[Any]], Any]
    ) -> None:
        self.tables = tables
        self._build = build
        self._end = tables.ends[start]
        self.states = [tables.starts[start]]
        self._values: list[tuple[Any, int, int]] = []
        self.result: Any = None

    def feed(self, token: Token) -> bool:
        """Take *token*; False leaves the parser where the token does not fit.

        One loop, and no call but of the builder: ten thousand sentences take a hundred thousand turns.
        """
        table, rules, build = self.tables.states, self.tables.rules, self._build
        values, states, kind = self._values, self.states, token.type
        state = states[-1]
        while (action := table[state].get(kind, 0)) < 0:
            rule = rules[-action - 1]
            length, keep, name = rule.length, rule.keep, rule.name
            if length == 1:  # most of them
                states.pop()
                children, first, last = values.pop()
                if not keep:
                    children = []
            else:
                popped = values[-length:]
                del values[-length:], states[-length:]
                # each list has one owner: a list that grows item by item is never copied
                children = popped[keep[0]][0] if keep else []
                for at in keep[1:]:
                    children += popped[at][0]
                first, last = popped[0][1], popped[-1][2]
            if name is not None:
                children = [build(name, first, last, children)]
            values.append((children, first, last))
            state = table[states[-1]][rule.origin] - 1
            states.append(state)
            if kind == END and state == self._end:
                self.result = values[-1][0][0]
                return True
        if action == 0:
            return False
        states.append(action - 1)
        values.append(([token], token.start, token.end))
        return True

    def expected(self) -> list[str]:
        """Return the terminals that fit next, in the order of their names."""
        names = (name for name in self.tables.states[self.states[-1]] if name.isupper())
        return sorted(name for name in names if self.accepts([name]))

    def accepts(self, types: list[str]) -> bool:
        """Tell whether tokens of these *types* would all fit, one after the other."""
        table, rules, states = self.tables.states, self.tables.rules, list(self.states)
        for kind in types:
            while (action := table[states[-1]].get(kind, 0)) < 0:
                rule = rules[-action - 1]
                del states[-rule.length :]
                states.append(table[states[-1]][rule.origin] - 1)
                if kind == END and states[-1] == self._end:
                    return True
            if action == 0:
                return False
            states.append(action - 1)
        return True


def tokens(tables: Tables, text: str) -> list[Token]:
    """Return the tokens of *text*, then one of type ``$END``; what is no token is one of type ``BAD``."""
    match, keywords = re.compile(tables.pattern).match, tables.keywords
    words: list[Token] = []
    at, length = 0, len(text)
    while at < length:
        if text[at] == " ":
            at += 1
            continue
        found = match(text, at)
        if found is None:
            end = at
            while end < length and text[end] not in " \t\r\n,":
                end += 1
            end = max(end, at + 1)
            words.append(Token(BAD, text[at:end], at, end))
        else:
            kind, word, end = found.lastgroup, found.group(), found.end()
            if kind != "SPACE":
                words.append(Token(keywords.get(word) or kind or BAD, word, at, end))
        at = end
    # a missing word is missing behind the last one that is there
    end = len(text.rstrip(" \t\r\n"))
    words.append(Token(END, "", end, end))
    return words
