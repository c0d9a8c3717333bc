"""Near misses: what an author probably meant by a word that is none."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["near_miss"]


def near_miss(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that *word* differs from in case, a hyphen, or by at most two edits.

    An edit puts in, drops or changes a character or swaps two neighbours. No more than half of a
    candidate may be wrong: `icmp` is not nearly `tcp`. Of several the nearest, then the first.
    """
    best: tuple[int, str] | None = None
    folded = _fold(word)
    for candidate in candidates:
        if word == candidate:
            continue
        edits = 0 if folded == _fold(candidate) else _edits(word, candidate)
        if edits <= 2 and 2 * edits <= len(candidate) and (best is None or edits < best[0]):
            best = (edits, candidate)
    return best[1] if best else None


def _fold(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _edits(left: str, right: str) -> int:
    """Return the number of edits between two words, or 3 where it is more than two."""
    if abs(len(left) - len(right)) > 2 or len(set(left) ^ set(right)) > 4:
        return 3  # an edit changes two characters at most
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > 2 and min(before) > 2:
            return 3
    return min(row[-1], 3)
