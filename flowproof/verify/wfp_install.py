"""What the Base Filtering Engine refuses to add, and with which error: *WFP Error Codes*.

A set that would be refused enforces nothing, so that what it would have decided does not matter.
"""

from __future__ import annotations

from flowproof.addresses import parse_address
from flowproof.verify.wfp_conditions import ALIASES
from flowproof.verify.wfp_identity import owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    Filter = Mapping[str, Any]
    Condition = Mapping[str, Any]

__all__ = ["AVAILABLE", "refusal", "refusals"]

_BOUND = frozenset({"ALE_USER_ID", "IP_LOCAL_ADDRESS", "IP_LOCAL_PORT", "FLAGS"})
_PEER = frozenset({"IP_REMOTE_ADDRESS", "IP_REMOTE_PORT", "IP_PROTOCOL"})
_FIELDS = {  # *Filtering Conditions Available at Each Filtering Layer*, of the conditions modelled
    "ALE_AUTH_CONNECT": _BOUND | _PEER,
    "ALE_AUTH_RECV_ACCEPT": _BOUND | _PEER,
    "ALE_AUTH_LISTEN": _BOUND,
    "ALE_RESOURCE_ASSIGNMENT": _BOUND | {"IP_PROTOCOL", "ALE_PROMISCUOUS_MODE"},
    "OUTBOUND_TRANSPORT": (_BOUND | _PEER) - {"ALE_USER_ID"},
    "OUTBOUND_IPPACKET": frozenset({"IP_LOCAL_ADDRESS", "IP_REMOTE_ADDRESS", "FLAGS"}),
}
AVAILABLE = {f"{name}_V{family}": fields for name, fields in _FIELDS.items() for family in (4, 6)}
"""Layer → the conditions that it takes."""

_PLAIN = {"UINT8": 0xFF, "UINT16": 0xFFFF, "UINT32": 0xFFFFFFFF}
_NUMBERS = {
    "IP_PROTOCOL": "UINT8",
    "IP_LOCAL_PORT": "UINT16",
    "IP_REMOTE_PORT": "UINT16",
    "FLAGS": "UINT32",
    "ALE_PROMISCUOUS_MODE": "UINT32",
}
_FLAG_MATCHES = ("FLAGS_ALL_SET", "FLAGS_ANY_SET", "FLAGS_NONE_SET")
_SYMBOLS = ("@name", "@variable")  # addresses by the time that a filter is added


def refusals(filters: Iterable[Filter]) -> Iterator[tuple[int, str]]:
    """Yield (index, error and why) for every filter that would not be added after those before it."""
    keys: set[str] = set()
    for at, one in enumerate(filters):
        found = "FWP_E_ALREADY_EXISTS: its key is taken" if one["key"] in keys else refusal(one)
        keys.add(one["key"])
        if found is not None:
            yield at, found


def refusal(one: Filter) -> str | None:
    """Return why a filter would not be added, beginning with the error's name; None where it would be."""
    if one["layer"] not in AVAILABLE:
        return f"FWP_E_LAYER_NOT_FOUND: {one['layer']}"
    if not one["name"]:
        return "FWP_E_NULL_DISPLAY_NAME: it has no name"
    weight = one["weight"]
    if type(weight) is int and not 0 <= weight <= 15:
        return f"FWP_E_INVALID_WEIGHT: {weight} is no class of 0 to 15"
    return next((found for c in one["conditions"] if (found := _condition(c, one["layer"]))), None)


def _condition(condition: Condition, layer: str) -> str | None:
    field = ALIASES.get(condition["field"], condition["field"])
    if field not in AVAILABLE[layer]:
        return f"FWP_E_CONDITION_NOT_FOUND: {field} at {layer}"
    kind, match, value = condition["type"], condition["match"], condition["value"]
    if kind == "EMPTY":
        if match != "EQUAL":
            return f"FWP_E_MATCH_TYPE_MISMATCH: {match} with FWP_EMPTY"
        return None if value is None else "FWP_E_TYPE_MISMATCH: FWP_EMPTY has no value"
    if field in _NUMBERS:
        return _number(field, kind, match, value)
    if match != "EQUAL":
        return f"FWP_E_MATCH_TYPE_MISMATCH: {match} on {field}"
    if field == "ALE_USER_ID":
        if kind != "SECURITY_DESCRIPTOR" or not isinstance(value, str):
            return f"FWP_E_TYPE_MISMATCH: {field} as {kind}"
        return None if owned(value) else f"FWP_E_INVALID_PARAMETER: `{value}` has no owner or entry"
    return _address(field, kind, value, int(layer[-1]))


def _number(field: str, kind: str, match: str, value: object) -> str | None:
    own = _NUMBERS[field]
    if match in _FLAG_MATCHES and field != "FLAGS":
        return f"FWP_E_MATCH_TYPE_MISMATCH: {match} on {field}"
    if (kind == "RANGE") is not (match == "RANGE"):
        return f"FWP_E_MATCH_TYPE_MISMATCH: {match} with {kind}"
    if kind not in ("RANGE", own):  # no conversion: FWP_MATCH_TYPE
        return f"FWP_E_TYPE_MISMATCH: {field} is {own}, not {kind}"
    ends = value if kind == "RANGE" else [value]
    if not isinstance(ends, list) or any(type(end) is not int for end in ends):
        return f"FWP_E_TYPE_MISMATCH: {value} as {kind}"
    if any(not 0 <= end <= _PLAIN[own] for end in ends):
        return f"FWP_E_OUT_OF_BOUNDS: {value} as {own}"
    if kind == "RANGE" and (len(ends) != 2 or ends[0] > ends[1]):
        return f"FWP_E_INVALID_RANGE: {value}"
    return None


def _address(field: str, kind: str, value: object, family: int) -> str | None:
    if not isinstance(value, str):
        return f"FWP_E_TYPE_MISMATCH: {value} as {kind}"
    if kind in _SYMBOLS:
        return None
    plain = "UINT32" if family == 4 else "BYTE_ARRAY16"
    if kind not in (f"V{family}_ADDR_MASK", plain):
        return f"FWP_E_TYPE_MISMATCH: {field} of IPv{family} as {kind}"
    base, slash, prefix = value.partition("/")
    parsed = parse_address(base)
    if parsed is None or parsed[0] != family or bool(slash) is (kind == plain):
        return f"FWP_E_TYPE_MISMATCH: {value} as {kind}"
    width = 32 if family == 4 else 128
    if slash and not (
        prefix.isascii() and prefix.isdigit() and len(prefix) < 4 and int(prefix) <= width
    ):
        return f"FWP_E_INVALID_NET_MASK: {value}"
    return None
