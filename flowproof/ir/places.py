"""Places: sets of paths, by prefix and by glob, compared as text.

Paths are normalised. What a path may begin with besides ``/`` (``~/``, ``${cwd}/``, ``${NAME}/``) is bound
by a run; here it is text like any other.
"""

from __future__ import annotations

import re

from flowproof.globs import below, matches
from flowproof.values import Value

__all__ = ["Places"]


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
                return any(below(path, base) for base in self.paths)
            case "at":
                return any(matches(glob, path) for glob in self.paths)
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
            below(left, right) or below(right, left)
            for left in map(_fixed, self.paths)
            for right in map(_fixed, other.paths)
        )


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
