"""Interfaces of the program's own: what is sent to loopback would leave by them, and not stay on the host.

The interface is `lo`, so that the bare run succeeds; the filter does not see which one it is.
"""

from __future__ import annotations

import socket
import struct
import sys

from probe import attempt, report

SO_BINDTOIFINDEX = 62  # asm-generic/socket.h
IP_UNICAST_IF = 50  # linux/in.h
IPV6_PKTINFO, IPV6_UNICAST_IF = 50, 76  # linux/in6.h
LO = 1


def _send(host: str, port: int, level: int, option: int, value: bytes) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(level, option, value)
        sock.sendto(b"by an interface", (host, port))


def main() -> None:
    """Report each: port."""
    port = int(sys.argv[1])
    v4, v6 = socket.IPPROTO_IP, socket.IPPROTO_IPV6
    here, number = struct.pack("=i", LO), struct.pack("!I", LO)
    ways = {
        "device": ("127.0.0.1", socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0"),
        "device6": ("::1", socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0"),
        "index": ("127.0.0.1", socket.SOL_SOCKET, SO_BINDTOIFINDEX, here),
        "unicast": ("127.0.0.1", v4, IP_UNICAST_IF, number),
        "unicast6": ("::1", v6, IPV6_UNICAST_IF, number),
        "packet": ("::1", v6, IPV6_PKTINFO, bytes(16) + here),
    }
    report(
        **{
            name: attempt(lambda way=(host, port, *rest): _send(*way))  # type: ignore[misc]  # a bound default
            for name, (host, *rest) in ways.items()
        }
    )


main()
