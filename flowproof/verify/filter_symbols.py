"""The filters of names and variables, whose addresses a run puts in: shape against shape."""

from __future__ import annotations

from flowproof.ir import ports as port_sets
from flowproof.ir.ports import ANY_PORT
from flowproof.verify.filter_forms import symbolic
from flowproof.verify.wfp import TCP, UDP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from flowproof.ir.model import Policy

    Shape = tuple[Any, ...]

__all__ = ["odd_symbol"]


def odd_symbol(
    policy: Policy, filters: Iterable[Mapping[str, Any]]
) -> tuple[Shape, int, int] | None:
    """Return a shape that stands in comparable *filters* more or less often than *policy* wants, with how
    often it stands there and how often it should; None where there is none.
    """
    has = [_shape(one) for one in filters if symbolic(one)]
    wanted = [
        (
            f"ALE_AUTH_CONNECT_V{family}",
            *(("permit", 8) if rule.verb == "allow" else ("block", 15)),
            (rule.id,),
            f"@{symbol.kind} {symbol.value}",
            tuple(sorted(TCP if name == "tcp" else UDP for name in symbol.protocols)),
            symbol.ports,
        )
        for rule in policy.rules
        if rule.action == "connect" and (rule.refuses or rule.verb == "allow")
        for symbol in rule.targets.symbols
        if symbol.kind != "wildcard"
        for family in (4, 6)
    ]
    counts: dict[Shape, list[int]] = {}
    for side, shapes in ((0, has), (1, wanted)):
        for shape in shapes:
            counts.setdefault(shape, [0, 0])[side] += 1
    odd = min((shape for shape, (left, right) in counts.items() if left != right), default=None)
    return None if odd is None else (odd, counts[odd][0], counts[odd][1])


def _shape(one: Mapping[str, Any]) -> Shape:
    """Return what counts of a filter with a symbol; the identity is the run's in each."""
    addresses = []
    protocols: list[int] = []
    ports = []
    for condition in one["conditions"]:
        field, value = condition["field"], condition["value"]
        if field.endswith("_ADDRESS"):
            addresses.append(f"{condition['type']} {value}")
        elif field != "ALE_USER_ID":
            low, high = (value, value) if condition["match"] == "EQUAL" else value
            if field == "IP_PROTOCOL":
                protocols += range(low, high + 1)
            else:
                ports.append((low, high))
    return (
        one["layer"],
        one["action"],
        one["weight"],
        tuple(one["rules"]),
        " ".join(addresses),
        tuple(sorted(protocols)),
        port_sets.normal(ports) if ports else ANY_PORT,
    )
