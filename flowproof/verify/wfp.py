"""The arbitration of the Windows Filtering Platform, as Microsoft describes it, over a symbolic filter set.

Neighbouring conditions of one field are alternatives, runs of them all have to hold, and a filter without
conditions matches everything (FWPM_FILTER0). In a sublayer the filter of the highest weight that matches
decides (*Filter Arbitration*). Weights of 0 to 15 are classes whose inner order is the platform's own: two
matching filters of one class that disagree are `Ambiguous`.
"""

from __future__ import annotations

from flowproof.addresses import parse_address
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Address = tuple[int, int]  # family, value
    Bindings = Mapping[tuple[str, str], tuple[Address, ...]]

__all__ = ["TCP", "UDP", "Ambiguous", "Attempt", "Ruling", "classify"]

TCP = 6
UDP = 17
_WILDCARD_BIND = 8


class Ambiguous(Exception):  # noqa: N818  not an error of the caller: a finding about the filter set
    """Filters of one weight match and disagree: what happens is the platform's secret."""


class Attempt(Value):
    """What a layer classifies. *ours*: the identity is the run's. None: the layer does not know it."""

    layer: str
    protocol: int
    remote: Address | None = None
    remote_port: int | None = None
    local: Address | None = None
    local_port: int | None = None
    wildcard: bool = False
    ours: bool = True


class Ruling(Value):
    """Whether the attempt passes, and the rules of the filters that decided (none: nothing matched)."""

    permitted: bool
    rules: tuple[str, ...]
    matched: bool


def classify(
    filters: Mapping[str, Any], attempt: Attempt, bindings: Bindings | None = None
) -> Ruling:
    """Return what the set does to *attempt*. *bindings* gives (kind, value) of symbols their addresses;
    one that is not bound matches nothing. Raises `Ambiguous`.
    """
    matching = [
        one
        for one in filters["filters"]
        if one["layer"] == attempt.layer and _matches(one["conditions"], attempt, bindings or {})
    ]
    if not matching:
        return Ruling(True, (), False)
    heaviest = max(one["weight"] for one in matching)
    deciding = [one for one in matching if one["weight"] == heaviest]
    actions = {one["action"] for one in deciding}
    if len(actions) > 1:
        raise Ambiguous(", ".join(one["name"] for one in deciding))
    rules = sorted({rule for one in deciding for rule in one["rules"]})
    return Ruling(actions == {"permit"}, tuple(rules), True)


def _matches(conditions: list[dict[str, Any]], attempt: Attempt, bindings: Bindings) -> bool:
    return all(
        any(_holds(condition, attempt, bindings) for condition in run) for run in _runs(conditions)
    )


def _runs(conditions: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    run: list[dict[str, Any]] = []
    for condition in conditions:
        if run and run[-1]["field"] != condition["field"]:
            yield run
            run = []
        run.append(condition)
    if run:
        yield run


def _holds(condition: dict[str, Any], attempt: Attempt, bindings: Bindings) -> bool:
    value = condition["value"]
    match condition["field"]:
        case "ALE_USER_ID":
            return attempt.ours and value == "@run"
        case "FLAGS":
            return bool((_WILDCARD_BIND if attempt.wildcard else 0) & value)
        case "IP_PROTOCOL":
            return _number(condition, attempt.protocol)
        case "IP_REMOTE_PORT":
            return _number(condition, attempt.remote_port)
        case "IP_LOCAL_PORT":
            return _number(condition, attempt.local_port)
        case "IP_REMOTE_ADDRESS":
            return _address(condition, attempt.remote, bindings)
        case "IP_LOCAL_ADDRESS":
            return _address(condition, attempt.local, bindings)
        case field:
            raise ValueError(f"no field `{field}`")


def _number(condition: dict[str, Any], actual: int | None) -> bool:
    if actual is None:  # the field is empty: an equality with a value does not hold
        return False
    if condition["match"] == "RANGE":
        low, high = condition["value"]
        return bool(low <= actual <= high)
    return bool(actual == condition["value"])


def _address(condition: dict[str, Any], actual: Address | None, bindings: Bindings) -> bool:
    if actual is None:
        return False
    if condition["type"].startswith("@"):
        return actual in bindings.get((condition["type"][1:], condition["value"]), ())
    base, _, prefix = condition["value"].partition("/")
    network = parse_address(base)
    if network is None or network[0] != actual[0]:
        return False
    shift = (32 if actual[0] == 4 else 128) - int(prefix)
    return actual[1] >> shift == network[1] >> shift
