"""Sentences of one shape parsed once: what a parse does follows from the kinds of the words alone.

Ten thousand rules are mostly a few kinds of sentence. The first of a kind goes through the parser, which
records what it builds of what; the others are built by that record, without the parser.
"""

from __future__ import annotations

from flowproof.syntax.driver import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from flowproof.syntax.driver import Tables, Token

    Build = Callable[[str, int, int, list[Any]], Any]
    # a production, its first and last word, and its children: words by number, what was built before by
    # minus its number less 1
    Step = tuple[str, int, int, tuple[int, ...]]
    Plan = tuple[Step, ...]

__all__ = ["Plans", "built"]

LONGEST = 64
"""A sentence of more words than this is of a shape of its own."""
MOST = 256
"""How many shapes are remembered; a policy has a dozen."""


class Plans:
    """The shapes that sentences of one grammar were met in: what they start as, and their words' kinds."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[tuple[str, ...], Plan | None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def plan(self, start: str, words: list[Token]) -> Plan | None:
        """Return how to build *words* without a parser, or None: the shape is met for the first time, it
        is too long, or the parser has to say what does not fit.
        """
        if len(words) > LONGEST:
            return None
        shape = (start, *[word.type for word in words])
        known = self._known.get(shape)
        if known is None and shape in self._known:
            known = self._known[shape] = _planned(self._tables, start, words)
        elif known is None and len(self._known) < MOST:
            self._known[shape] = None
        return known or None


def built(plan: Plan, words: list[Token], build: Build) -> Any:  # noqa: ANN401  a node of any kind
    """Return what the parser would make of *words*, of which *plan* is the plan, by calls of *build*."""
    found: list[Any] = []
    for name, first, last, members in plan:
        children = [words[at] if at >= 0 else found[~at] for at in members]
        found.append(build(name, words[first].start, words[last].end, children))
    return found[-1]


def _planned(tables: Tables, start: str, words: list[Token]) -> Plan:
    """Return the steps in which the parser builds *words*; none where they do not fit."""
    steps: list[Step] = []
    place = {id(word): at for at, word in enumerate(words)}
    begins = {word.start: at for at, word in enumerate(words[:-1])}
    ends = {word.end: at for at, word in enumerate(words[:-1])}

    def record(name: str, first: int, last: int, children: list[Any]) -> int:
        members = [child if isinstance(child, int) else place[id(child)] for child in children]
        steps.append((name, begins[first], ends[last], tuple(members)))
        return ~(len(steps) - 1)

    parser = Parser(tables, start, record)
    return tuple(steps) if all(parser.feed(word) for word in words) else ()
