"""What the reference meaning says of a kind of cell, asked once for each kind.

**Why this is complete.** `ir.evaluate` looks at an event of an address only through the membership of its
point in `Rule.named` and `Rule.otherwise` (for a listen in the exceptions of refusals too), and through
loopback. Regions are boxes, so that the sweep in `tables` finds every combination of memberships that any
point has. Of the member rules themselves it reads verb, kind and the order of ids. So two cells whose
members have, in order of id, the same roles, verbs and kinds are judged alike up to the names of the rules,
and one real event of one of them is evaluated for all: against the real rules, those alone that are members
or are in force everywhere (defaults and fixed meanings).

`observe` and ``expect no`` match alike; evaluating a twin with the one for the other gives both lists.
"""

from __future__ import annotations

from flowproof.ir.evaluate import evaluate
from flowproof.ir.model import Policy
from flowproof.values import Value, replace
from flowproof.verify.reading import NOBODY, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flowproof.ir.events import Event
    from flowproof.ir.model import Rule

    Member = tuple[int, str]  # index of a rule, its role in the cell
    Kind = tuple[object, ...]

__all__ = ["Reference"]


class _Known(Value):
    """An outcome with members by position; a rule that is no member is kept by its negative index."""

    refused: bool
    by: int | None
    asserting: tuple[int, ...]
    observing: tuple[int, ...]


class Reference:
    """The reference meaning of *policy*, with what was asked before remembered."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._at = {rule.id: at for at, rule in enumerate(policy.rules)}
        self._verbs = [(rule.verb, rule.kind) for rule in policy.rules]
        self._always = {
            at
            for at, rule in enumerate(policy.rules)
            if rule.meaning is not None or rule.kind == "default"
        }
        # Whether a `connect` rule denies at all decides what fixed meanings refuse: keep one that does.
        denying = (at for at, rule in enumerate(policy.rules) if _denies(rule))
        self._always.update(at for at, _ in zip(denying, range(1), strict=False))
        self._known: dict[Kind, _Known] = {}
        self._twins: dict[int, Rule] = {}

    def __len__(self) -> int:
        return len(self._known)

    def cell(self, kind: str, members: tuple[Member, ...], event: Callable[[], Event]) -> Outcome:
        """Return what becomes of *event*, one of a cell with *members* in order of rule; *kind* is what
        else the cell is told by.
        """
        verbs = self._verbs
        # members by role, by verb and kind of the rule, and by how many rules each is behind the first
        places: dict[int, int] = {}
        key: list[object] = [kind]
        for at, role in members:
            key += (role, verbs[at] if at >= 0 else None, places.setdefault(at, len(places)))
        told = tuple(key)
        rules = [at for at in places if at >= 0]
        known = self._known.get(told)
        if known is None:
            known = self._known[told] = self._ask(rules, event())
        return Outcome(
            known.refused,
            None if known.by is None else _named(known.by, rules),
            _all_named(known.asserting, rules),
            _all_named(known.observing, rules),
        )

    def event(self, event: Event, members: Iterable[int] | None = None) -> Outcome:
        """Return what becomes of *event*, judged by the rules *members* and those in force everywhere;
        by every rule where they are None.
        """
        wanted = range(len(self._verbs)) if members is None else sorted({*members, *self._always})
        return self._evaluated(wanted, event)

    def _ask(self, rules: list[int], event: Event) -> _Known:
        found = self._evaluated(sorted({*rules, *self._always}), event)
        place = {at: position for position, at in enumerate(rules)}

        def position(at: int) -> int:
            return place.get(at, ~at)

        return _Known(
            found.refused,
            None if found.by is None else position(found.by),
            tuple(position(at) for at in found.asserting),
            tuple(position(at) for at in found.observing),
        )

    def _evaluated(self, wanted: Iterable[int], event: Event) -> Outcome:
        part = Policy(self._policy.control, None, None, tuple(self._twin(at) for at in wanted))
        found = evaluate(part, event)
        counted = {self._at[rule] for rule in found.asserting}
        observing = frozenset(at for at in counted if self._verbs[at][0] == "observe")
        by = None if found.by is None else self._at[found.by]
        return Outcome(found.handling == "refused", by, frozenset(counted) - observing, observing)

    def _twin(self, at: int) -> Rule:
        rule = self._policy.rules[at]
        if rule.verb != "observe":
            return rule
        if at not in self._twins:
            self._twins[at] = replace(rule, verb="expect no")
        return self._twins[at]


def _denies(rule: Rule) -> bool:
    return rule.action == "connect" and rule.refuses and rule.meaning is None


def _named(position: int, rules: list[int]) -> int:
    return rules[position] if position >= 0 else ~position


def _all_named(positions: tuple[int, ...], rules: list[int]) -> frozenset[int]:
    return frozenset([_named(at, rules) for at in positions]) if positions else NOBODY
