"""Near misses: what the author probably meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["near_miss"]


def near_miss(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate nearest to *word*: equal but for case, `-` and `_`, or within two edits."""
    folded = _fold(word)
    best: tuple[int, str] | None = None
    for candidate in sorted(candidates):
        if candidate == word:
            continue
        if _fold(candidate) == folded:
            return candidate
        distance = _edits(word, candidate, 2)
        if distance <= min(2, len(candidate) - 1) and (best is None or distance < best[0]):
            best = (distance, candidate)
    return best[1] if best else None


def _fold(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def _edits(left: str, right: str, limit: int) -> int:
    """Return the optimal-string-alignment distance (a swap of neighbours is one), capped above *limit*."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before = before, row
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
