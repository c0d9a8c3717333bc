"""The arbitration of the Windows Filtering Platform, as Microsoft's pages describe it.

In a sublayer the filter of the highest weight that matches and does not pass on decides; of the sublayers
of a layer, heavier ones first, a block is final unless it is soft, and a permit can be blocked below unless
it is hard (*Filter Arbitration*). Weights of 0 to 15 are classes whose inner order is the platform's own
(*Filter Weight Assignment*): what depends on it is `Ambiguous`.
"""

from __future__ import annotations

from itertools import permutations, product

from flowproof.values import Value
from flowproof.verify.found import Unmodelled
from flowproof.verify.wfp_conditions import TCP, UDP, Attempt, matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from flowproof.verify.wfp_conditions import Bindings

    Filter = Mapping[str, Any]

__all__ = [
    "ACTIONS",
    "TCP",
    "UDP",
    "Ambiguous",
    "Attempt",
    "Ruling",
    "Sublayer",
    "Unmodelled",
    "arbitrate",
    "classify",
]

ACTIONS = ("permit", "block", "continue", "callout permit", "callout block", "callout continue")
"""What a filter does; a callout is taken at what it returned."""

_CLASS_BITS = 60  # FWPM_AUTO_WEIGHT_BITS: a class is the four bits above
_CLEAR = "CLEAR_ACTION_RIGHT"


class Ambiguous(Exception):  # noqa: N818  not an error of the caller: a finding about the filter set
    """What happens depends on an order that is the platform's secret; the message names the filters."""


class Sublayer(Value):
    """Filters that are arbitrated among themselves. *weight*: heavier sublayers are asked first."""

    weight: int
    filters: Sequence[Filter]


class Ruling(Value):
    """Whether the attempt passes, and the rules of the filters that decided (none: nothing matched).

    *veto*: a callout blocked what had been permitted hard, which the platform audits.
    """

    permitted: bool
    rules: tuple[str, ...]
    matched: bool
    veto: bool = False


class _Answer(Value):
    """What one sublayer says. *writable*: another sublayer may override it (FWPS_RIGHT_ACTION_WRITE)."""

    permitted: bool
    writable: bool
    callout: bool
    rules: tuple[str, ...]


def classify(
    filters: Mapping[str, Any], attempt: Attempt, bindings: Bindings | None = None
) -> Ruling:
    """Return what a filter set by itself does to *attempt*. *bindings* gives (kind, value) of symbols their
    addresses; one that is not bound matches nothing. Raises `Ambiguous` and `Unmodelled`.
    """
    return arbitrate([Sublayer(0, filters["filters"])], attempt, bindings)


def arbitrate(
    sublayers: Iterable[Sublayer], attempt: Attempt, bindings: Bindings | None = None
) -> Ruling:
    """Return what the *sublayers* of one layer do to *attempt*, which passes where nothing matches.
    Raises `Ambiguous` and `Unmodelled`.
    """
    answers: dict[int, list[_Answer]] = {}
    for sublayer in sublayers:
        answer = _answer(sublayer.filters, attempt, bindings)
        if answer is not None:
            answers.setdefault(sublayer.weight, []).append(answer)
    if len(answers) == 1 and len(only := next(iter(answers.values()))) == 1:
        return _layer(only)
    heavier = [permutations(answers[weight]) for weight in sorted(answers, reverse=True)]
    found = {_layer([one for group in order for one in group]) for order in product(*heavier)}
    if len({(ruling.permitted, ruling.rules) for ruling in found}) > 1:
        raise Ambiguous("sublayers of one weight disagree")
    return found.pop()


def _layer(answers: list[_Answer]) -> Ruling:
    """Return what *answers* come to, in the order in which the sublayers are asked."""
    current: _Answer | None = None
    for answer in answers:
        if current is None or current.writable:
            # a soft action is overridden by the opposite; a permit below a permit may still harden it
            if current is None or answer.permitted is not current.permitted or not answer.writable:
                current = answer
        elif current.permitted and not answer.permitted and answer.callout:
            return Ruling(False, answer.rules, True, veto=True)
    if current is None:
        return Ruling(True, (), False)
    return Ruling(current.permitted, current.rules, True)


def _answer(
    filters: Iterable[Filter], attempt: Attempt, bindings: Bindings | None
) -> _Answer | None:
    matching = [
        one
        for one in filters
        if one["layer"] == attempt.layer and matches(one["conditions"], attempt, bindings)
    ]
    terminating = [one for one in matching if not _action(one).endswith("continue")]
    if not terminating:
        return None
    spans = [_span(one["weight"]) for one in terminating]
    surest = max(spans)[0]
    deciding = [one for one, (_, most) in zip(terminating, spans, strict=True) if most >= surest]
    answers = {(_action(one), _writable(one)) for one in deciding}
    if len(answers) > 1:
        raise Ambiguous(", ".join(one["name"] for one in deciding))
    ((action, writable),) = answers
    rules = tuple(sorted({rule for one in deciding for rule in one["rules"]}))
    return _Answer(action.endswith("permit"), writable, action.startswith("callout"), rules)


def _action(one: Filter) -> str:
    action: str = one["action"]
    if action not in ACTIONS:
        raise Unmodelled(f"no action `{action}`")
    return action


def _writable(one: Filter) -> bool:
    """Tell whether another sublayer may override the action: by default a permit, and a callout's block."""
    flags = one.get("flags", ())
    if set(flags) - {_CLEAR}:
        raise Unmodelled(f"flags {sorted(flags)}")
    return one["action"] != "block" and _CLEAR not in flags


def _span(weight: object) -> tuple[int, int]:
    """Return the least and the greatest effective weight: a class has 60 bits that the platform chooses."""
    match weight:
        case None:  # FWP_EMPTY: [0, 2^60)
            return _span(0)
        case {"uint64": int(exact)}:
            return exact, exact
        case int(index) if type(index) is int and 0 <= index <= 15:
            return index << _CLASS_BITS, (index + 1 << _CLASS_BITS) - 1
        case other:
            raise Unmodelled(f"a weight {other}")
