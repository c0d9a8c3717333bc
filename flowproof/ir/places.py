"""Places: sets of paths, by prefix and by glob, compared as text.

Paths are normalised. What a path may begin with besides ``/`` (``~/``, ``${cwd}/``, ``${NAME}/``) is bound
by a run; here it is text like any other.
"""

from __future__ import annotations

import re

from flowproof.values import Value

__all__ = ["Places", "glob_pattern"]


class Places(Value):
    """``under`` or ``at`` some paths, or ``anywhere``; *otherwise* is ``anywhere else``."""

    kind: str
    paths: tuple[str, ...] = ()
    otherwise: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("under", "at", "anywhere"):
            raise ValueError("places are under, at or anywhere")
        if (self.kind == "anywhere") is bool(self.paths) or (self.otherwise and self.paths):
            raise ValueError("`anywhere` has no paths, the others have some")

    def holds(self, path: str) -> bool:
        """Tell whether *path* is one of the places (``anywhere else``: before the allows go out)."""
        match self.kind:
            case "under":
                return any(_below(path, base) for base in self.paths)
            case "at":
                return any(_matches(glob, path) for glob in self.paths)
            case _:
                return True

    def covers(self, other: Places) -> bool:
        """Tell whether *other* lies inside, decided by text: a glob by what it may expand to."""
        if self.kind == "anywhere":
            return True
        if other.kind == "anywhere":
            return False
        return all(self._covers_path(path, other.kind) for path in other.paths)

    def _covers_path(self, path: str, kind: str) -> bool:
        if kind == "under":
            if self.kind == "under":
                return self.holds(path)
            # of every depth: below the deepest of the globs only `**` goes on
            deepest = max(each.count("/") for each in self.paths) + 2
            base = path.rstrip("/")
            return self.holds(path) and all(
                self.holds(base + f"/{_ANY}" * depth) for depth in range(1, deepest)
            )
        return all(self.holds(witness) for witness in _witnesses(path))

    def spelt(self) -> tuple[frozenset[str], ...]:
        """Return the components without a ``*`` of each path: what lies inside one has all of its own."""
        return tuple(
            frozenset(part for part in path.split("/") if "*" not in part) for path in self.paths
        )

    def overlaps(self, other: Places) -> bool:
        """Tell whether the two may have a path in common, decided by text."""
        if self.kind == "anywhere" or other.kind == "anywhere":
            return True
        return any(
            _below(left, right) or _below(right, left)
            for left in map(_fixed, self.paths)
            for right in map(_fixed, other.paths)
        )


def _below(path: str, base: str) -> bool:
    return base in ("/", path) or path.startswith(base + "/")


def _fixed(path: str) -> str:
    """Return the components in front of the first one with a ``*``."""
    parts = path.split("/")
    fixed = next((at for at, part in enumerate(parts) if "*" in part), len(parts))
    return "/".join(parts[:fixed]) or "/"


_ANY = "\x00"
"""A name that no glob spells out: what holds it holds any name."""


def _witnesses(glob: str) -> tuple[str, ...]:
    """Return paths that *glob* matches and that tell it from narrower ones."""
    if "*" not in glob:
        return (glob,)
    none = re.sub(r"/\*\*(?=/|\Z)", "", glob) or "/"
    deeper = (glob.replace("**", deep) for deep in (_ANY, f"{_ANY}/{_ANY}"))
    return tuple(each.replace("**", "").replace("*", _ANY) for each in (none, *deeper))


def _matches(glob: str, path: str) -> bool:
    """Tell whether *glob* holds *path*. Many stars are no regular expression: it would try every way."""
    if glob.count("*") <= 4:  # at most two `**`
        return glob_pattern(glob).fullmatch(path) is not None
    return _automaton(glob).accepts(path)


class _Automaton:
    """A glob as a set of states, one bit each, that a path moves on character by character."""

    __slots__ = ("_any", "_end", "_inside", "_moves", "_over", "_skip")

    def __init__(self, glob: str) -> None:
        self._moves: dict[str, int] = {}  # by character: the states that it moves on from
        # states that loop on any character, on any but `/`; that are passed freely, with the one behind
        self._any = self._inside = self._over = self._skip = 0
        at = 0
        pieces = re.split(r"(/\*\*(?=/|\Z)|\*\*|\*)", re.sub(r"(/\*\*)+(?=/|\Z)", "/**", glob))
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
        for part in re.split(r"(/\*\*(?=/|\Z)|\*\*|\*)", glob):
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
