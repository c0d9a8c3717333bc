"""Paired rounds: every variant once a round in shuffled order, ratios within a round, medians over rounds.

Only ratios of one run on one machine compare. The bare-against-bare control says how far a ratio can be
trusted.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping

__all__ = ["BARE", "CONTROL", "ROUNDS", "Rounds", "measure"]

ROUNDS = 9
NOISE = 0.05
"""How far bare against bare may be from 1 before the rounds say nothing."""
BARE, CONTROL = "bare", "bare again"


class Rounds:
    """What each variant took in each round, by name."""

    def __init__(self, taken: Mapping[str, list[float]]) -> None:
        self.taken = taken

    def ratio(self, name: str) -> float:
        """Return the median over rounds of *name* against bare in the same round."""
        pairs = zip(self.taken[name], self.taken[BARE], strict=True)
        return statistics.median(one / bare for one, bare in pairs)

    @property
    def control(self) -> float:
        """The ratio of bare against bare."""
        return self.ratio(CONTROL)

    def added(self, name: str) -> float:
        """Return the median over rounds of what *name* took beyond bare in the same round."""
        pairs = zip(self.taken[name], self.taken[BARE], strict=True)
        return statistics.median(one - bare for one, bare in pairs)

    def judged(self, held: bool) -> bool | None:
        """Return *held*, or None where the control says that the machine was too noisy to tell."""
        return held if abs(self.control - 1) <= NOISE else None

    def median(self, name: str) -> float:
        """Return the median of *name*."""
        return statistics.median(self.taken[name])


def measure(
    bare: Callable[[], float], variants: Mapping[str, Callable[[], float]], *, rounds: int = ROUNDS
) -> Rounds:
    """Return *rounds* rounds of bare, its control and every variant, after one unmeasured round."""
    work = {BARE: bare, CONTROL: bare, **variants}
    order, shuffle = list(work), random.Random(1)
    taken: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + 1):
        shuffle.shuffle(order)
        for name in order:
            took = work[name]()
            if turn:
                taken[name].append(took)
    return Rounds(taken)
