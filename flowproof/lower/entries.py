"""The entries of decision tables: the lists of rules that a cell belongs to, each combination once."""

from __future__ import annotations

from flowproof.artifact.model import Entry
from flowproof.ir.model import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.ir.model import Policy

    Member = tuple[str, int]  # the role of a rule in a cell, and the rule's index

__all__ = ["EXCEPTED", "LEAVES", "NAMED", "OTHERWISE", "Entries"]

NAMED = "named"
OTHERWISE = "otherwise"
EXCEPTED = "excepted"
LEAVES = "leaves"

_FIELDS = Entry.__fields__
_DECIDING = {"refuse", "allow", "otherwise", "leave"}  # the first of each decides
_KINDS = {"authored": 0, "short-form": 0, "default": 1, "implied": 2}


class Entries:
    """The entries of one policy, each kept once, numbered as they are first met."""

    def __init__(self, policy: Policy) -> None:
        self._verbs = [rule.verb for rule in policy.rules]
        self._numbers: dict[tuple[tuple[int, ...], ...], int] = {}
        self._found: list[Entry] = []
        # A `never` handles before a `deny`, then the smaller id; what an author wrote before the
        # default, the default before what a fixed meaning implies.
        self._order = [
            (_KINDS[rule.kind], rule.refuses and rule.verb != "never", at)
            for at, rule in enumerate(policy.rules)
        ]
        # A name that a rule excepts takes the rule out of the cells of its addresses.
        self._removable = {at for at, rule in enumerate(policy.rules) if rule.exceptions.symbols}

    @property
    def all(self) -> tuple[Entry, ...]:
        """The entries made so far, by number."""
        return tuple(self._found)

    def number(self, members: Iterable[Member]) -> int:
        """Return the number of the entry that *members* make, each role in the lists of its verb."""
        lists: dict[str, list[int]] = {}
        for role, at in members:
            for field in _IN[role, self._verbs[at]]:
                lists.setdefault(field, []).append(at)
        for field, held in lists.items():
            if len(held) > 1:
                held.sort(key=self._order.__getitem__ if field in _DECIDING else None)
                if field in _DECIDING:
                    self._cut(held)
        key = tuple([tuple(lists[field]) if field in lists else () for field in _FIELDS])
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._found)
            self._found.append(Entry(*key))
        return found

    def _cut(self, held: list[int]) -> None:
        """Drop what never decides: what comes behind a rule that no binding can take out."""
        for place, at in enumerate(held):
            if at not in self._removable:
                del held[place + 1 :]
                return


def _fields(role: str, verb: str) -> tuple[str, ...]:
    """Return the lists of an entry that a rule with *verb* is in by *role*."""
    if role == EXCEPTED:
        return ("excepted",)
    if role == LEAVES:
        return ("leave",)
    refuses, watches = verb in ("deny", "never"), verb in ("never", "expect no", "observe")
    if role == OTHERWISE:
        return (*(("otherwise",) * refuses), *(("watch_otherwise",) * watches))
    handles = "refuse" if refuses else "allow" if verb == "allow" else None
    return (*((handles,) if handles else ()), *(("watch",) * watches))


_IN = {
    (role, verb): _fields(role, verb)
    for role in (NAMED, OTHERWISE, EXCEPTED, LEAVES)
    for verb in VERBS
}
