"""The filters of a set as far as they can be compared: where on the lines of a layer each one matches."""

from __future__ import annotations

from flowproof.addresses import LAST, parse_address
from flowproof.ir import ports as port_sets
from flowproof.ir.ports import ANY_PORT
from flowproof.values import Value
from flowproof.verify.wfp_install import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from flowproof.ir.ports import PortSet

    Condition = Mapping[str, Any]
    Filter = Mapping[str, Any]
    Spans = tuple[tuple[int, int], ...]

__all__ = ["LAYERS", "SIDES", "Form", "form", "incomparable", "shaped", "symbolic"]

SIDES = {  # layer → whose address, whose port
    "ALE_AUTH_CONNECT": ("IP_REMOTE_ADDRESS", "IP_REMOTE_PORT"),
    "ALE_AUTH_LISTEN": ("IP_LOCAL_ADDRESS", "IP_LOCAL_PORT"),
    "ALE_AUTH_RECV_ACCEPT": ("IP_REMOTE_ADDRESS", "IP_LOCAL_PORT"),
}
"""The fields of a layer that the comparison varies, besides protocol and identity. A filter that asks for
another (a local address of a connect, a flag) could match what is never tried, and is refused."""

LAYERS = tuple(f"{layer}_V{family}" for layer in SIDES for family in (4, 6))

_SET = ("filters", "session", "sublayer")
_TEXTS = ("key", "name", "layer", "action")
_FILTER = (*_TEXTS, "weight", "rules", "conditions")
_CONDITION_TEXTS = ("field", "match", "type")
_CONDITION = (*_CONDITION_TEXTS, "value")


class Form(Value):
    """Where filter *at* matches: protocols, addresses and ports. None: any, a field that is empty included.

    *unaddressed*: it matches where the layer knows no address.
    """

    at: int
    protocols: Spans | None
    spans: Spans | None
    ports: PortSet | None
    unaddressed: bool

    def takes(self, protocol: int) -> bool:
        """Tell whether attempts of *protocol* may match."""
        return self.protocols is None or any(
            low <= protocol <= high for low, high in self.protocols
        )


def shaped(filters: Mapping[str, Any]) -> bool:
    """Tell whether *filters* has the members of a filter set and no others: what is not known here, a flag
    of a filter say, might change what it does.
    """
    listed = filters.get("filters")
    return (
        sorted(filters) == sorted(_SET)
        and _members(filters.get("session"), ("dynamic", "name"))
        and _members(filters.get("sublayer"), ("key", "weight"))
        and isinstance(listed, list)
        and all(_is_filter(one) for one in listed)
    )


def _members(value: object, names: Sequence[str]) -> bool:
    return isinstance(value, dict) and sorted(value) == sorted(names)


def _is_filter(one: dict[str, Any]) -> bool:
    return (
        _members(one, _FILTER)
        and all(isinstance(one[name], str) for name in _TEXTS)
        and isinstance(one["rules"], list)
        and all(isinstance(rule, str) for rule in one["rules"])
        and isinstance(one["conditions"], list)
        and all(
            _members(condition, _CONDITION)
            and all(isinstance(condition[name], str) for name in _CONDITION_TEXTS)
            for condition in one["conditions"]
        )
    )


def incomparable(one: Filter) -> str | None:
    """Return why filter *one* would not be added, or why what it does is not compared; None where it is."""
    if one["layer"] not in LAYERS:
        return f"no filter at {one['layer']} is compared"
    if one["action"] not in ("permit", "block"):
        return f"{one['action']} is neither permit nor block"
    if type(one["weight"]) is not int:
        return f"a weight {one['weight']}"
    refused = refusal(one)
    if refused is not None:
        return refused
    varied = {"ALE_USER_ID", "IP_PROTOCOL", *SIDES[one["layer"][:-3]]}
    fields: list[str] = []
    for condition in one["conditions"]:
        field = condition["field"]
        if field not in varied:
            return f"{field} at {one['layer']}, which no attempt here has"
        if condition["match"] not in ("EQUAL", "RANGE"):
            return f"{condition['match']} on {field}"
        problem = _odd_value(condition)
        if problem is not None:
            return problem
        if not fields or fields[-1] != field:
            fields.append(field)
    if len(set(fields)) != len(fields):
        return "conditions of one field stand apart: both have to hold"
    users = [c["value"] for c in one["conditions"] if c["field"] == "ALE_USER_ID"]
    if users != ["@run"] and (one["action"] == "block" or users):
        return f"{one['action']} for {users or 'everybody'}, where it is for the run alone"
    return None


def _odd_value(condition: Condition) -> str | None:
    kind, value = condition["type"], condition["value"]
    if kind == "EMPTY" and condition["field"] != "IP_LOCAL_ADDRESS":
        return f"an empty {condition['field']}"
    if kind in ("V4_ADDR_MASK", "V6_ADDR_MASK"):
        base, _, prefix = value.partition("/")
        parsed = parse_address(base)
        if parsed is None or parsed[1] & (LAST[parsed[0]] >> int(prefix)):
            return f"{value} has bits behind its mask: no document says what they do"
    elif kind in ("UINT32", "BYTE_ARRAY16") and condition["field"].endswith("ADDRESS"):
        return f"an address as {kind}"
    return None


def symbolic(one: Filter) -> bool:
    """Tell whether filter *one* is about a name or a variable: a run puts its addresses in."""
    return any(condition["type"].startswith("@") for condition in one["conditions"])


def form(at: int, one: Filter) -> Form:
    """Return where a comparable filter matches."""
    address, port = SIDES[one["layer"][:-3]]
    protocols: list[tuple[int, int]] = []
    spans: list[tuple[int, int]] = []
    ports: list[tuple[int, int]] = []
    addressed = unaddressed = False
    for condition in one["conditions"]:
        field, value = condition["field"], condition["value"]
        if field == address:
            addressed = True
            if condition["type"] == "EMPTY":
                unaddressed = True
            elif not condition["type"].startswith("@"):
                spans.append(_network(value))
        elif field in ("IP_PROTOCOL", port):
            found = protocols if field == "IP_PROTOCOL" else ports
            found.append((value, value) if condition["match"] == "EQUAL" else (value[0], value[1]))
    return Form(
        at,
        tuple(protocols) or None,
        _joined(spans) if addressed else None,
        port_sets.normal(ports) if ports else None,
        unaddressed or not addressed,
    )


def _network(text: str) -> tuple[int, int]:
    base, _, prefix = text.partition("/")
    parsed = parse_address(base)
    assert parsed is not None, text  # it was found installable
    family, value = parsed
    size = 1 << ((32 if family == 4 else 128) - int(prefix))
    low = value & ~(size - 1)
    return low, min(low + size - 1, LAST[family])


def _joined(spans: list[tuple[int, int]]) -> Spans:
    """Return *spans* in order with what overlaps or touches joined: no filter stands twice at a place."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def ports_of(held: Form) -> PortSet:
    """Return the ports that a form takes where the port is known."""
    return ANY_PORT if held.ports is None else held.ports
