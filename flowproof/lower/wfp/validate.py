"""What has to hold of a filter set: a breach is a bug of the compiler, found before anything is written."""

from __future__ import annotations

import re

from flowproof.addresses import LAST, parse_address
from flowproof.ir.ports import LAST_PORT
from flowproof.lower.wfp.numbers import ACTIONS, AVAILABLE, LAYERS, MATCH_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["FilterSetError", "problems", "validate"]

_WEIGHTS = {15: "block", 8: "permit", 0: "block"}
_KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
_FIELDS = {
    "ALE_USER_ID": {"SECURITY_DESCRIPTOR"},
    "IP_PROTOCOL": {"UINT8", "RANGE"},
    "IP_REMOTE_ADDRESS": {"V4_ADDR_MASK", "V6_ADDR_MASK", "@name", "@variable"},
    "IP_LOCAL_ADDRESS": {"V4_ADDR_MASK", "V6_ADDR_MASK", "EMPTY"},
    "IP_REMOTE_PORT": {"UINT16", "RANGE"},
    "IP_LOCAL_PORT": {"UINT16", "RANGE"},
}
_MATCHES = {"RANGE": "RANGE"}
_LIMITS = {"IP_PROTOCOL": 255, "IP_REMOTE_PORT": LAST_PORT, "IP_LOCAL_PORT": LAST_PORT}
_MOST = 80  # conditions of one filter: a chunk of addresses, protocols, and ports beside them


class FilterSetError(ValueError):
    """A filter set that the platform would refuse, or read otherwise than it was meant."""


def validate(filters: dict[str, Any]) -> None:
    """Raise `FilterSetError` with every problem of a filter set."""
    found = list(problems(filters))
    if found:
        raise FilterSetError("; ".join(found))


def problems(filters: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a filter set."""
    if filters["session"].get("dynamic") is not True:
        yield "the session is not dynamic: filters would outlive the run"
    keys: set[str] = set()
    for one in filters["filters"]:
        name = f"filter {one['key']} ({one['name']})"
        if one["key"] in keys or not _KEY.match(one["key"]):
            yield f"{name}: a key that is taken, or is no version 5 UUID"
        keys.add(one["key"])
        for problem in _filter(one):
            yield f"{name}: {problem}"


def _filter(one: dict[str, Any]) -> Iterator[str]:
    layer = one["layer"]
    if layer not in LAYERS:
        yield f"no layer `{layer}`"
        return
    if one["action"] not in ACTIONS or _WEIGHTS.get(one["weight"]) != one["action"]:
        yield f"{one['action']} at weight {one['weight']}: permits weigh 8, blocks 15 or 0"
    if not one["name"]:
        yield "no name: the platform wants one"
    fields = [condition["field"] for condition in one["conditions"]]
    if not fields or fields[0] != "ALE_USER_ID" or fields.count("ALE_USER_ID") != 1:
        yield "not scoped to the run's identity alone"
    runs = [field for at, field in enumerate(fields) if at == 0 or fields[at - 1] != field]
    if len(runs) != len(set(runs)):
        yield "conditions of one field do not stand together: they would be AND-ed"
    if one["action"] == "permit" and "CONNECT" in layer and "IP_PROTOCOL" not in fields:
        yield "a permit without a protocol would let ICMP pass"
    if len(fields) > _MOST and fields.count("IP_REMOTE_PORT") + fields.count("IP_LOCAL_PORT") < 2:
        yield f"{len(fields)} conditions in one filter"
    for condition in one["conditions"]:
        yield from _condition(condition, layer)


def _condition(condition: dict[str, Any], layer: str) -> Iterator[str]:
    field, kind, value = condition["field"], condition["type"], condition["value"]
    if field not in AVAILABLE[layer]:
        yield f"`{field}` is no condition of {layer}"
        return
    if kind not in _FIELDS.get(field, ()):
        yield f"`{field}` takes no {kind}"
        return
    match = condition["match"]
    if match not in MATCH_TYPES or match != _MATCHES.get(kind, "EQUAL"):
        yield f"{match} with {kind}"
    if kind in ("V4_ADDR_MASK", "V6_ADDR_MASK"):
        yield from _network(str(value), int(kind[1]), layer)
    elif kind == "RANGE":
        low, high = value
        if not 0 <= low < high <= _LIMITS[field]:
            yield f"range {low} to {high}"
    elif field in _LIMITS and not 0 <= value <= _LIMITS[field]:
        yield f"{value} is out of range"


def _network(text: str, family: int, layer: str) -> Iterator[str]:
    base, _, prefix = text.partition("/")
    parsed = parse_address(base)
    width = 32 if family == 4 else 128
    if not layer.endswith(f"V{family}"):
        yield f"{text} at {layer}"
    if parsed is None or parsed[0] != family or not prefix.isdigit() or int(prefix) > width:
        yield f"{text} is no IPv{family} network"
    elif parsed[1] & (LAST[family] >> int(prefix)):
        yield f"{text} has host bits set"
