"""Paths by prefix and by glob, compared as text: what policies, tables and runs mean by a place."""

from __future__ import annotations

import re

__all__ = ["below", "glob_pattern", "matches"]


def below(path: str, base: str) -> bool:
    """Tell whether *path* is *base* or lies below it."""
    return base in ("/", path) or path.startswith(base + "/")


def matches(glob: str, path: str) -> bool:
    """Tell whether *glob* holds *path*, in time that grows with its length alone, whoever chose it.

    A regular expression would try every way to share a path out among several stars.
    """
    if glob.count("*") <= 1 or _PIECE.sub("", glob, count=1).count("*") == 0:
        return glob_pattern(glob).fullmatch(path) is not None
    return _automaton(glob).accepts(path)


_PIECE = re.compile(r"/\*\*(?=/|\Z)|\*\*|\*")
_PARTS = re.compile(rf"({_PIECE.pattern})")


class _Automaton:
    """A glob as a set of states, one bit each, that a path moves on character by character."""

    __slots__ = ("_any", "_end", "_inside", "_moves", "_over", "_skip")

    def __init__(self, glob: str) -> None:
        self._moves: dict[str, int] = {}  # by character: the states that it moves on from
        # states that loop on any character, on any but `/`; that are passed freely, with the one behind
        self._any = self._inside = self._over = self._skip = 0
        at = 0
        pieces = _PARTS.split(re.sub(r"(/\*\*)+(?=/|\Z)", "/**", glob))
        for piece in pieces:
            if piece == "/**":
                self._moves["/"] = self._moves.get("/", 0) | 1 << at
                self._any |= 1 << at + 1
                self._over |= 1 << at + 1
                self._skip |= 1 << at
                at += 2
            elif piece in {"**", "*"}:
                if piece == "**":
                    self._any |= 1 << at
                else:
                    self._inside |= 1 << at
                self._over |= 1 << at
                at += 1
            else:
                for char in piece:
                    self._moves[char] = self._moves.get(char, 0) | 1 << at
                    at += 1
        self._end = 1 << at

    def _closed(self, states: int) -> int:
        while True:
            more = states | (states & self._over) << 1 | (states & self._skip) << 2
            if more == states:
                return states
            states = more

    def accepts(self, path: str) -> bool:
        states = self._closed(1)
        for char in path:
            moved = (states & self._moves.get(char, 0)) << 1 | states & self._any
            if char != "/":
                moved |= states & self._inside
            states = self._closed(moved)
            if not states:
                return False
        return bool(states & self._end)


_AUTOMATA: dict[str, _Automaton] = {}


def _automaton(glob: str) -> _Automaton:
    if glob not in _AUTOMATA:
        _AUTOMATA[glob] = _Automaton(glob)
    return _AUTOMATA[glob]


_PATTERNS: dict[str, re.Pattern[str]] = {}


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob: ``*`` is any run inside a component, ``**`` any number of components,
    none included; every other character is itself.
    """
    pattern = _PATTERNS.get(glob)
    if pattern is None:
        parts = []
        for part in _PARTS.split(glob):
            if part == "/**":
                parts.append("(?:/.*)?")
            elif part == "**":
                parts.append(".*")
            elif part == "*":
                parts.append("[^/]*")
            else:
                parts.append(re.escape(part))
        pattern = _PATTERNS[glob] = re.compile("".join(parts), re.DOTALL)
    return pattern
