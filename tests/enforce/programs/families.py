"""C18, C20: sockets of the families, types and protocols that are refused, and of those that are not."""

from __future__ import annotations

import ctypes
import socket

from probe import attempt, libc, report, result

AF_VSOCK, AF_XDP, AF_BLUETOOTH, AF_ALG = 40, 44, 31, 38  # linux/socket.h
SOCK_PACKET, ETH_P_ALL = 10, 0x0003  # linux/net.h, linux/if_ether.h (big-endian in the call)
IPPROTO_MPTCP, IPPROTO_SCTP = 262, 132

REFUSED = {
    "packet": (socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)),
    "sock-packet": (socket.AF_INET, SOCK_PACKET, socket.htons(ETH_P_ALL)),
    "raw": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "raw6": (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6),
    "raw-dgram": (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
    "vsock": (AF_VSOCK, socket.SOCK_STREAM, 0),
    "xdp": (AF_XDP, socket.SOCK_RAW, 0),
    "alg": (AF_ALG, socket.SOCK_SEQPACKET, 0),
    "mptcp": (socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP),
    "sctp": (socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SCTP),
    "uevent": (socket.AF_NETLINK, socket.SOCK_RAW, 15),  # NETLINK_KOBJECT_UEVENT
}
LEFT_ALONE = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM, 0),
    "udp6": (socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_UDP),
    "cloexec": (socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK, 6),
    "unix": (socket.AF_UNIX, socket.SOCK_SEQPACKET, 0),
    "route": (socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE),
}


def _open(family: int, kind: int, protocol: int) -> None:
    socket.socket(family, kind, protocol).close()


def main() -> None:
    """Report each socket, and a socketpair of the first."""
    pair = libc.socketpair(socket.AF_PACKET, socket.SOCK_RAW, 0, (ctypes.c_int * 2)())
    report(
        refused={name: attempt(lambda a=args: _open(*a)) for name, args in REFUSED.items()},  # type: ignore[misc]  # bound at once
        left={name: attempt(lambda a=args: _open(*a)) for name, args in LEFT_ALONE.items()},  # type: ignore[misc]  # bound at once
        pair=result(pair),
    )


main()
