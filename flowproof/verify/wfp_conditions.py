"""What a layer of the Windows Filtering Platform classifies, and whether a condition of a filter holds.

What no document of the platform settles raises `Unmodelled`: a simulator that guessed would prove guesses.
The pages are Microsoft's; the vectors in ``tests/verify/wfp_vectors`` name one for each behaviour.
"""

from __future__ import annotations

from flowproof.addresses import canonical, parse_address
from flowproof.values import Value
from flowproof.verify.found import Unmodelled
from flowproof.verify.wfp_identity import granted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Address = tuple[int, int]  # family, value
    Bindings = Mapping[tuple[str, str], tuple[Address, ...]]
    Condition = Mapping[str, Any]

__all__ = [
    "ALIASES",
    "FLAGS",
    "FLAGS_AT",
    "ICMP",
    "ICMP6",
    "TCP",
    "UDP",
    "Attempt",
    "holds",
    "matches",
    "runs",
]

ICMP = 1
TCP = 6
UDP = 17
ICMP6 = 58

ALIASES = {"ICMP_TYPE": "IP_LOCAL_PORT", "ICMP_CODE": "IP_REMOTE_PORT"}
"""Names for one GUID (``fwpmu.h``): at the ALE layers an ICMP type stands where a local port would."""

FLAGS = {  # fwptypes.h, FWP_CONDITION_FLAG_*
    "IS_LOOPBACK": 0x1,
    "IS_REAUTHORIZE": 0x4,
    "IS_WILDCARD_BIND": 0x8,
    "IS_RAW_ENDPOINT": 0x10,
}

_FLOWS = ("ALE_AUTH_CONNECT", "ALE_AUTH_RECV_ACCEPT")
FLAGS_AT = {  # *Filtering Condition Flags*; of the layers that are modelled
    "IS_LOOPBACK": _FLOWS,
    "IS_REAUTHORIZE": _FLOWS,
    "IS_WILDCARD_BIND": ("ALE_RESOURCE_ASSIGNMENT",),
    "IS_RAW_ENDPOINT": ("ALE_RESOURCE_ASSIGNMENT", *_FLOWS),
}
"""Flag → the layers at which it is documented to be set: a condition on it elsewhere is a guess."""


class Attempt(Value):
    """What a layer classifies. None: the layer does not know the field (FWP_EMPTY).

    *sids* are the identities of the token, ``@run`` for the run's own. For ICMP *local_port* is the type
    and *remote_port* the code. *flags* are those of FWPM_CONDITION_FLAGS.
    """

    layer: str
    protocol: int
    remote: Address | None = None
    remote_port: int | None = None
    local: Address | None = None
    local_port: int | None = None
    flags: int = 0
    sids: tuple[str, ...] = ("@run",)


def matches(
    conditions: Sequence[Condition], attempt: Attempt, bindings: Bindings | None = None
) -> bool:
    """Tell whether a filter with *conditions* matches: of neighbours of one field any, of those runs all;
    without conditions always (FWPM_FILTER0). Raises `Unmodelled`.
    """
    return all(
        any(holds(condition, attempt, bindings or {}) for condition in run)
        for run in runs(conditions)
    )


def runs(conditions: Sequence[Condition]) -> Iterator[list[Condition]]:
    """Yield neighbouring conditions of one field together: apart, they are no alternatives."""
    run: list[Condition] = []
    for condition in conditions:
        if run and _field(run[-1]) != _field(condition):
            yield run
            run = []
        run.append(condition)
    if run:
        yield run


def _field(condition: Condition) -> str:
    field: str = condition["field"]
    return ALIASES.get(field, field)


def holds(condition: Condition, attempt: Attempt, bindings: Bindings) -> bool:
    """Tell whether one condition holds. *bindings* gives (kind, value) of symbols their addresses; one that
    is not bound is no address at all.
    """
    match _field(condition):
        case "ALE_USER_ID":
            _only_equal(condition)
            return granted(str(condition["value"]), attempt.sids)
        case "FLAGS":
            return _flags(condition, attempt)
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
        case "ALE_PROMISCUOUS_MODE":
            # measured on Windows: the filter was added without complaint and denied every socket
            raise Unmodelled(
                "a condition on the promiscuous mode denies sockets that never asked for it"
            )
        case field:
            raise Unmodelled(f"no field `{field}`")


def _only_equal(condition: Condition) -> None:
    if condition["match"] != "EQUAL":
        raise Unmodelled(f"{condition['match']} on {condition['field']}")


def _empty(condition: Condition) -> bool | None:
    """Return whether a condition holds of a field that the layer does not know."""
    if condition["type"] == "EMPTY":
        _only_equal(condition)
        return True  # *ALE Reauthorization*: FWP_EMPTY can be matched with FWP_MATCH_EQUAL
    if condition["match"] in ("NOT_EQUAL", "FLAGS_NONE_SET"):
        raise Unmodelled(f"{condition['match']} of a field that is FWP_EMPTY")
    return False


def _number(condition: Condition, actual: int | None) -> bool:
    if actual is None:
        return bool(_empty(condition))
    if condition["type"] == "EMPTY":
        _only_equal(condition)
        return False
    value = condition["value"]
    match condition["match"]:
        case "EQUAL":
            return bool(actual == value)
        case "NOT_EQUAL":
            return bool(actual != value)
        case "RANGE":
            return bool(value[0] <= actual <= value[1])  # both ends: FWP_RANGE0
        case "GREATER":
            return bool(actual > value)
        case "GREATER_OR_EQUAL":
            return bool(actual >= value)
        case "LESS":
            return bool(actual < value)
        case "LESS_OR_EQUAL":
            return bool(actual <= value)
        case other:
            raise Unmodelled(f"{other} of a number")


def _flags(condition: Condition, attempt: Attempt) -> bool:
    value = condition["value"]
    told = [flag for name, flag in FLAGS.items() if attempt.layer[:-3] in FLAGS_AT[name]]
    if value & ~sum(told):
        raise Unmodelled(f"flags {value:#x} at {attempt.layer}, of which no document tells")
    match condition["match"]:
        case "FLAGS_ALL_SET":
            return bool(attempt.flags & value == value)
        case "FLAGS_ANY_SET":
            return bool(attempt.flags & value)
        case "FLAGS_NONE_SET":
            return not attempt.flags & value
        case other:
            raise Unmodelled(f"{other} of flags")


def _address(condition: Condition, actual: Address | None, bindings: Bindings) -> bool:
    if actual is None:
        return bool(_empty(condition))
    _only_equal(condition)
    match condition["type"]:
        case "EMPTY":
            return False
        case "@name" | "@variable":
            bound = bindings.get((condition["type"][1:], condition["value"]), ())
            return canonical(*actual) in bound  # IPv4 of a dual-stack socket is mapped
        case "V4_ADDR_MASK" | "V6_ADDR_MASK":
            base, _, prefix = condition["value"].partition("/")
            network = parse_address(base)
            if network is None or network[0] != actual[0]:
                return False
            shift = (32 if actual[0] == 4 else 128) - int(prefix)
            return actual[1] >> shift == network[1] >> shift
        case "UINT32" | "BYTE_ARRAY16":
            return parse_address(condition["value"]) == actual
        case other:
            raise Unmodelled(f"an address as {other}")
