"""Internet addresses as integers: families, text forms, and the address classes of the language.

Imported by the compiler and the runner alike, so that both mean the same by ``loopback``.
"""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_ntop, inet_pton

__all__ = [
    "CLASSES",
    "LAST",
    "LOOPBACK",
    "METADATA",
    "UNBINDABLE",
    "Interval",
    "canonical",
    "format_address",
    "parse_address",
]

Interval = tuple[int, int, int]
"""(family 4 or 6, first, last): addresses as unsigned integers, both ends included."""

LAST: dict[int, int] = {4: (1 << 32) - 1, 6: (1 << 128) - 1}
"""The last address of each family."""


def parse_address(text: str) -> tuple[int, int] | None:
    """Return (family, value) of an address in text form, or None if it is none.

    Strict as ``inet_pton``: four decimal octets without leading zeros, or RFC 4291 text. A zone id is
    no part of an address. A v4-mapped address stays v6 here; `canonical` makes it v4.
    """
    try:
        if ":" in text:
            return 6, int.from_bytes(inet_pton(AF_INET6, text), "big")
        return 4, int.from_bytes(inet_pton(AF_INET, text), "big")
    except (OSError, ValueError):  # ValueError: an embedded null, or text that is no ASCII
        return None


def canonical(family: int, value: int) -> tuple[int, int]:
    """Return the address that *value* is, a v4-mapped one as the v4 address it stands for."""
    if family == 6 and value >> 32 == 0xFFFF:
        return 4, value & 0xFFFFFFFF
    return family, value


def format_address(family: int, value: int) -> str:
    """Return the canonical text of an address (RFC 5952 for v6)."""
    if family == 4:
        return inet_ntop(AF_INET, value.to_bytes(4, "big"))
    return inet_ntop(AF_INET6, value.to_bytes(16, "big"))


def _cidr(text: str) -> Interval:
    base, _, prefix = text.partition("/")
    parsed = parse_address(base)
    assert parsed is not None, text
    family, first = parsed
    width = 32 if family == 4 else 128
    return family, first, first | ((1 << (width - int(prefix or width))) - 1)


LOOPBACK: tuple[Interval, ...] = (_cidr("127.0.0.0/8"), _cidr("::1"))  # RFC 1122, RFC 4291
METADATA: tuple[Interval, ...] = (
    _cidr("169.254.169.254"),  # AWS, Azure, GCP and others: instance metadata
    _cidr("fd00:ec2::254"),  # AWS over IPv6
    _cidr("168.63.129.16"),  # Azure: wire server
    _cidr("100.100.100.200"),  # Alibaba Cloud
)
_PRIVATE = (
    _cidr("10.0.0.0/8"),  # RFC 1918
    _cidr("172.16.0.0/12"),
    _cidr("192.168.0.0/16"),
    _cidr("100.64.0.0/10"),  # RFC 6598
    _cidr("fc00::/7"),  # RFC 4193
)
_LINK_LOCAL = (_cidr("169.254.0.0/16"), _cidr("fe80::/10"))  # RFC 3927, RFC 4291
_MULTICAST = (
    _cidr("224.0.0.0/4"),  # RFC 5771
    _cidr("255.255.255.255"),  # RFC 919, limited broadcast
    _cidr("ff00::/8"),  # RFC 4291
)

CLASSES: dict[str, tuple[Interval, ...]] = {
    "loopback": LOOPBACK,
    "private": _PRIVATE,
    "link-local": _LINK_LOCAL,
    "metadata": METADATA,
    "multicast": _MULTICAST,
}
"""The words of the language that stand for addresses, and what each covers."""

UNBINDABLE: tuple[tuple[str, tuple[Interval, ...]], ...] = (
    ("metadata", METADATA),
    ("loopback", LOOPBACK),
    ("link-local", _LINK_LOCAL),
    ("multicast", _MULTICAST),
)
"""Space that a name may not bind to: a run with such a name does not start."""
