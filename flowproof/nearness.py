"""Near misses: what a misspelt word was probably meant to be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["distance", "nearest"]


def distance(left: str, right: str, limit: int) -> int:
    """Return the edits between two words (insert, drop, change, swap of neighbours), up to *limit* + 1."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, above, row = row, before, [i]
        for j, b in enumerate(right, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                edits = min(edits, above[j - 2] + 1)
            row.append(edits)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that *word* is a near miss of, or None.

    A near miss is within two edits, or differs in case or hyphens alone; of a short word, fewer edits
    than half of its letters.
    """
    folded = word.lower().replace("_", "-").replace("-", "")
    best: tuple[int, str] | None = None
    for candidate in candidates:
        if candidate.lower().replace("_", "-").replace("-", "") == folded:
            return candidate
        limit = min(2, len(candidate) // 2)
        edits = distance(word.lower(), candidate.lower(), limit)
        if edits <= limit and (best is None or (edits, candidate) < best):
            best = (edits, candidate)
    return best[1] if best else None
