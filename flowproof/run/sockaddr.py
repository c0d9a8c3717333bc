"""Raw socket addresses, as the kernel reads them: bytes in, what they name out. Pure.

What the kernel would send elsewhere than it says is rewritten in `Inet.raw`, the bytes to act with: the
wildcard address becomes loopback (Linux otherwise picks the socket's own bound address), and AF_UNSPEC
on an IPv4 datagram becomes AF_INET (``udp_sendmsg`` delivers it to ``sin_addr``).
"""

from __future__ import annotations

from struct import Struct

from flowproof.addresses import LOOPBACK, canonical, format_address
from flowproof.run.numbers import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    AF_UNSPEC,
    SOCKADDR_STORAGE,
    SOCKADDR_UN,
)
from flowproof.values import Value

__all__ = ["Inet", "Malformed", "Netlink", "SocketAddress", "Unix", "Unspecified", "parse"]

_FAMILY = Struct("=H")
_PORT = Struct(">H")
_INET_SIZE = 16  # struct sockaddr_in, the least that the kernel takes
_INET6_SIZE = 24  # SIN6_LEN_RFC2133, the least that the kernel takes: no scope id
_LOOPBACK4 = bytes((127, 0, 0, 1))
_LOOPBACK6 = bytes(15) + b"\x01"


class Inet(Value):
    """An internet address and port; *family* is 4 or 6, a v4-mapped address is the v4 one.

    *raw* is what to act with. As a destination the wildcard is loopback (*bound* keeps it).
    """

    family: int
    value: int
    port: int
    raw: bytes

    @property
    def text(self) -> str:
        """Return the canonical text of the address."""
        return format_address(self.family, self.value)

    @property
    def loopback(self) -> bool:
        """Tell whether the address is 127/8 or ::1."""
        return any(
            family == self.family and first <= self.value <= last
            for family, first, last in LOOPBACK
        )


class Unix(Value):
    """A unix path, or an abstract name (*name* is then what follows the NUL), or neither: unnamed."""

    path: bytes | None
    name: bytes | None


class Unspecified(Value):
    """AF_UNSPEC. *inet* is what an IPv4 datagram socket would send to, if there is enough of it."""

    inet: Inet | None


class Netlink(Value):
    """An AF_NETLINK address."""


class Malformed(Value):
    """Too short or too long for its family, or of no family that is known (None: not even one)."""

    family: int | None


SocketAddress = Inet | Unix | Unspecified | Netlink | Malformed


def parse(raw: bytes, *, bound: bool = False) -> SocketAddress:
    """Return what *raw* names as a destination or, with *bound*, as the address of a socket."""
    if not _FAMILY.size <= len(raw) <= SOCKADDR_STORAGE:
        return Malformed(None)
    (family,) = _FAMILY.unpack_from(raw)
    if family == AF_INET and len(raw) >= _INET_SIZE:
        return _inet(raw, bound=bound)
    if family == AF_INET6 and len(raw) >= _INET6_SIZE:
        return _inet6(raw, bound=bound)
    if family == AF_UNIX and len(raw) <= SOCKADDR_UN:
        return _unix(raw[2:])
    if family == AF_UNSPEC:
        inet = (
            _inet(_FAMILY.pack(AF_INET) + raw[2:], bound=bound) if len(raw) >= _INET_SIZE else None
        )
        return Unspecified(inet)
    if family == AF_NETLINK:
        return Netlink()
    return Malformed(family)


def _inet(raw: bytes, *, bound: bool) -> Inet:
    if not bound and not any(raw[4:8]):
        raw = raw[:4] + _LOOPBACK4 + raw[8:]
    return Inet(4, int.from_bytes(raw[4:8], "big"), _PORT.unpack_from(raw, 2)[0], raw)


def _inet6(raw: bytes, *, bound: bool) -> Inet:
    address = raw[8:24]
    if not bound and not any(address):
        address = _LOOPBACK6
    elif not bound and address == bytes(10) + b"\xff\xff\0\0\0\0":  # 0.0.0.0, v4-mapped
        address = bytes(10) + b"\xff\xff" + _LOOPBACK4
    family, value = canonical(6, int.from_bytes(address, "big"))
    return Inet(family, value, _PORT.unpack_from(raw, 2)[0], raw[:8] + address + raw[24:])


def _unix(path: bytes) -> Unix:
    if not path:
        return Unix(None, None)
    if path[0] == 0:
        return Unix(None, path[1:])
    return Unix(path.partition(b"\0")[0], None)
