"""The listing of a Windows artifact: the filter set as a reviewer reads it and goldens pin it."""

from __future__ import annotations

from flowproof.lower import listing as common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from flowproof.artifact.model import Artifact

__all__ = ["listing"]

_WORDS = {
    "IP_PROTOCOL": "protocol",
    "IP_REMOTE_ADDRESS": "remote",
    "IP_LOCAL_ADDRESS": "local",
    "IP_REMOTE_PORT": "remote port",
    "IP_LOCAL_PORT": "local port",
}
_PROTOCOLS = {6: "tcp", 17: "udp"}
_COLUMNS = (len("ALE_AUTH_RECV_ACCEPT_V4"), len("weight"), len("action"), 36)
_SHOWN = 12  # values of one field; the key of a filter is a digest over all of them


def listing(artifact: Artifact) -> str:
    """Return *artifact* in words, filter by filter."""
    if artifact.filters is None:
        raise ValueError(f"`{artifact.target}` has no filter set")
    sections = [
        list(common.heading(artifact)),
        list(common.rules(artifact)),
        list(common.fidelity(artifact)),
        list(common.differences(artifact)),
        list(common.symbols(artifact)),
        list(_filters(dict(artifact.filters))),
        list(common.tables(artifact)) if artifact.lanes else [],
        list(common.places(artifact)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _filters(held: dict[str, Any]) -> Iterator[str]:
    filters = held["filters"]
    if not filters:
        yield "Filters: none; nothing is refused"
        return
    yield (
        f"Filters, {len(filters)} in one sublayer (weight {held['sublayer']['weight']}) of a dynamic session,"
        " each for the run's identity only"
    )
    heads = ("layer", "weight", "action", "key", "rules: conditions")
    yield f"  {common.row(*heads, widths=_COLUMNS)}"
    for one in filters:
        whose = ", ".join(one["rules"]) or f"no rule ({one['name']})"
        cells = (
            one["layer"],
            str(one["weight"]),
            one["action"],
            one["key"],
            f"{whose}: {'; '.join(_conditions(one['conditions'])) or 'anything'}",
        )
        yield f"  {common.row(*cells, widths=_COLUMNS)}"


def _conditions(conditions: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each field with its values: neighbours are alternatives, fields all have to hold."""
    grouped: dict[str, list[str]] = {}
    for condition in conditions:
        if condition["field"] != "ALE_USER_ID":
            grouped.setdefault(condition["field"], []).append(_value(condition))
    for field, values in grouped.items():
        left = len(values) - _SHOWN
        shown = [*values[:_SHOWN], f"{left} more up to {values[-1]}"] if left > 1 else values
        yield f"{_WORDS[field]} {' | '.join(shown)}"


def _value(condition: dict[str, Any]) -> str:
    value = condition["value"]
    match condition["type"]:
        case "@name":
            return str(value)
        case "@variable":
            return f"${{{value}}}"
        case "RANGE":
            return f"{value[0]}-{value[1]}"
        case "UINT8":
            return _PROTOCOLS.get(value, str(value))
        case "EMPTY":
            return "unknown"
        case _:
            return str(value)
