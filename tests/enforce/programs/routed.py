"""Source routes: an address that may be reached, by way of one that may not."""

from __future__ import annotations

import socket
import struct
import sys

from probe import attempt, report

IP_OPTIONS = 4  # linux/in.h
IPV6_RTHDR = 57  # linux/in6.h
LOOSE_ROUTE = 0x83  # RFC 791: type, length, pointer, addresses
SEGMENTS = struct.pack("!BBBBBBH", 0, 4, 4, 1, 1, 0, 0)  # RFC 8754, section 2: two of them


def _loose(via: str, host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        route = bytes([LOOSE_ROUTE, 7, 4]) + socket.inet_pton(socket.AF_INET, via) + b"\x01"
        sock.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, route)
        sock.sendto(b"by a loose route", (host, port))


def _segments(via: str, host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        way = [socket.inet_pton(socket.AF_INET6, address) for address in (host, via)]
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, SEGMENTS + b"".join(way))
        sock.sendto(b"by segments", (host, port))


def main() -> None:
    """Report each: port, the allowed addresses, the denied ones."""
    port = int(sys.argv[1])
    allowed4, allowed6, denied4, denied6 = sys.argv[2:]
    report(
        loose=attempt(lambda: _loose(denied4, allowed4, port)),
        segments=attempt(lambda: _segments(denied6, allowed6, port)),
    )


main()
