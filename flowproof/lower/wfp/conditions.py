"""Conditions of a filter: sets of addresses, ports and protocols in the forms that the platform takes."""

from __future__ import annotations

from flowproof.addresses import LAST, format_address
from flowproof.ir.ports import ANY_PORT
from flowproof.lower.wfp.numbers import IPPROTO_TCP, IPPROTO_UDP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flowproof.ir.ports import PortSet

    Condition = dict[str, object]

__all__ = [
    "CHUNK",
    "USER",
    "addresses",
    "chunks",
    "networks",
    "other_protocols",
    "ports",
    "protocols",
    "symbol",
    "unknown",
]

CHUNK = 64
"""Addresses in one filter: no limit is documented, and a long list is slow to classify."""

USER: Condition = {
    "field": "ALE_USER_ID",
    "match": "EQUAL",
    "type": "SECURITY_DESCRIPTOR",
    "value": "@run",
}
"""The identity of the run; the descriptor grants FWP_ACTRL_MATCH_FILTER to it alone."""

_PROTOCOLS = {"tcp": IPPROTO_TCP, "udp": IPPROTO_UDP}


def networks(family: int, intervals: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Yield the fewest networks that make up *intervals* (first, last), in order."""
    width = 32 if family == 4 else 128
    for first, last in intervals:
        at = first
        while at <= last:
            aligned = (at & -at).bit_length() - 1 if at else width
            bits = min(aligned, (last - at + 1).bit_length() - 1)
            yield f"{format_address(family, at)}/{width - bits}"
            at += 1 << bits
            if at > LAST[family]:
                break


def addresses(field: str, family: int, found: Iterable[str]) -> list[Condition]:
    """Return conditions for *field* being in any of the networks: neighbours of one field are OR-ed."""
    kind = f"V{family}_ADDR_MASK"
    return [{"field": field, "match": "EQUAL", "type": kind, "value": network} for network in found]


def symbol(field: str, kind: str, value: str) -> Condition:
    """Return the condition that the address is one of a name or variable: bound before it is installed, at
    an IPv6 layer to its IPv4 addresses as well, in mapped form.
    """
    return {"field": field, "match": "EQUAL", "type": f"@{kind}", "value": value}


def unknown(field: str) -> Condition:
    """Return the condition that the layer does not know *field*: FWP_EMPTY can be matched with
    FWP_MATCH_EQUAL (*ALE Reauthorization*).
    """
    return {"field": field, "match": "EQUAL", "type": "EMPTY", "value": None}


def chunks(found: Iterable[str]) -> Iterator[list[str]]:
    """Yield *found* in lists of at most `CHUNK`."""
    listed = list(found)
    for at in range(0, len(listed), CHUNK):
        yield listed[at : at + CHUNK]


def ports(field: str, wanted: PortSet) -> list[Condition]:
    """Return conditions for *field* being one of *wanted*; none for every port."""
    if wanted == ANY_PORT:
        return []
    return [
        {"field": field, "match": "EQUAL", "type": "UINT16", "value": low}
        if low == high
        else {"field": field, "match": "RANGE", "type": "RANGE", "value": [low, high]}
        for low, high in wanted
    ]


def protocols(names: Iterable[str]) -> list[Condition]:
    """Return conditions for the protocol being one of *names* (tcp, udp)."""
    return [
        {"field": "IP_PROTOCOL", "match": "EQUAL", "type": "UINT8", "value": _PROTOCOLS[name]}
        for name in names
    ]


def other_protocols() -> list[Condition]:
    """Return conditions for the protocol being neither TCP nor UDP.

    As ranges: two NOT_EQUAL next to each other would be OR-ed, and hold always.
    """
    between = ((0, IPPROTO_TCP - 1), (IPPROTO_TCP + 1, IPPROTO_UDP - 1), (IPPROTO_UDP + 1, 255))
    return [
        {"field": "IP_PROTOCOL", "match": "RANGE", "type": "RANGE", "value": [low, high]}
        for low, high in between
    ]
