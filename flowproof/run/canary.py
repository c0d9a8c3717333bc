"""The known call before each command: proof that this run's filter and listener do what they say.

A refused UDP connect where the policy refuses one: it sends nothing even where no filter is in force. A TCP
connect only from a socket that is tied to the loopback device. Where a policy refuses nothing, a call that
is let through and has to be seen.
"""

from __future__ import annotations

import socket
from errno import ECONNREFUSED, EPERM

from flowproof.addresses import LAST, format_address, parse_address
from flowproof.run import numbers as n
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.model import Tables
    from flowproof.run.decide import Decisions

__all__ = ["Canary", "canaries"]

_DISCARD = 9  # RFC 863, assigned and served by nobody
_PREFERRED = {4: "192.0.2.1", 6: "2001:db8::1"}  # RFC 5737, RFC 3849: documentation, never routed
_EPHEMERAL = 49152  # RFC 6335


class Canary(Value):
    """A call to try: *refused* is what the tables say of it."""

    call: str
    protocol: str
    family: int
    address: str
    port: int
    refused: bool

    @property
    def errno(self) -> int:
        """What the caller gets where the call is handled as the tables say."""
        if not self.refused:
            return 0
        return EPERM if self.call == "listen" else ECONNREFUSED

    def open(self) -> socket.socket:
        """Return a socket to try the call on; `OSError` where this host has none of its kind."""
        family = socket.AF_INET if self.family == 4 else socket.AF_INET6
        kind = socket.SOCK_DGRAM if self.protocol == "udp" else socket.SOCK_STREAM
        found = socket.socket(family, kind)
        try:
            self._prepare(found)
        except OSError:
            found.close()
            raise
        return found

    def _prepare(self, found: socket.socket) -> None:
        if self.call == "listen":
            if self.port or self.address != "0.0.0.0":  # noqa: S104  it is compared, not bound
                freebind = (n.IPPROTO_IP, n.IP_FREEBIND)
                if self.family == 6:
                    freebind = (n.IPPROTO_IPV6, n.IPV6_FREEBIND)
                found.setsockopt(*freebind, 1)
                found.bind((self.address, self.port))
        elif self.protocol == "tcp":
            # Without a filter the connect would find no way but the loopback device.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
            found.bind(("127.0.0.1" if self.family == 4 else "::1", 0))
            found.setblocking(False)

    def attempt(self, found: socket.socket) -> int:
        """Try the call; return its errno, 0 for success."""
        if self.call == "listen":
            try:
                found.listen(1)
            except OSError as error:
                return error.errno or 0
            return 0
        return found.connect_ex((self.address, self.port))


def canaries(tables: Tables, decisions: Decisions, trapped: frozenset[str]) -> tuple[Canary, ...]:
    """Return the calls that would show that the run is in force, best first; none if nothing is trapped."""
    refused: list[Canary] = []
    if "connect" in trapped:
        refused += (found for plane in _CONNECT if (found := _refused(tables, decisions, *plane)))
    if "listen" in trapped:
        refused += _refused_listens(tables, decisions)
    if refused:
        return tuple(refused)
    if "connect" in trapped:
        return (Canary("connect", "udp", 4, "127.0.0.1", _DISCARD, False),)
    if "listen" in trapped:
        return (Canary("listen", "tcp", 4, "127.0.0.1", 0, False),)
    return ()


_CONNECT = (("udp", 4), ("udp", 6), ("tcp", 4), ("tcp", 6))


def _refused(tables: Tables, decisions: Decisions, protocol: str, family: int) -> Canary | None:
    plane = f"{protocol}{family}"
    preferred = parse_address(_PREFERRED[family])
    assert preferred is not None
    for value, port in ((preferred[1], _DISCARD), *_cells(tables, plane, _DISCARD, family)):
        mapped = family == 6 and value >> 32 == 0xFFFF  # the kernel takes it for the v4 address
        if not mapped and value and decisions.address(plane, value, port).refused:
            text = format_address(family, value)
            return Canary("connect", protocol, family, text, port, True)
    return None


def _refused_listens(tables: Tables, decisions: Decisions) -> Iterator[Canary]:
    if decisions.address("listen-any4", 0, 0).refused:
        yield Canary("listen", "tcp", 4, "0.0.0.0", 0, True)  # noqa: S104  refused, or closed at once
    for family in (4, 6):
        plane = f"listen{family}"
        for value, port in _cells(tables, plane, _EPHEMERAL, family):
            if value and port and decisions.address(plane, value, port).refused:
                yield Canary("listen", "tcp", family, format_address(family, value), port, True)
                break


def _cells(tables: Tables, plane: str, least: int, family: int) -> Iterator[tuple[int, int]]:
    """Yield an address and a port inside each cell of a plane; the port from *least* on, if it can be."""
    own = tables.planes[plane]
    for index, (first, cell) in enumerate(zip(own.starts, own.cells, strict=True)):
        last = own.starts[index + 1] - 1 if index + 1 < len(own.starts) else LAST[family]
        address = max(first, 1) if last else 0
        ports = tables.ports[cell].starts
        for at, low in enumerate(ports):
            high = ports[at + 1] - 1 if at + 1 < len(ports) else 0xFFFF
            yield address, min(max(low, least), high)
