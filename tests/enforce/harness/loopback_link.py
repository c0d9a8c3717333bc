"""Addresses on the loopback link of a fresh network namespace, over rtnetlink (no iproute2 needed).

Numbers from linux/rtnetlink.h, linux/if_addr.h, linux/if.h.
"""

from __future__ import annotations

import os
import socket
import struct

__all__ = ["LOOPBACK_INDEX", "add_address", "set_up"]

LOOPBACK_INDEX = 1  # a namespace's first link is its loopback

RTM_NEWLINK, RTM_NEWADDR = 16, 20
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 1, 4, 0x200, 0x400
NLMSG_ERROR = 2
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFA_F_NODAD = 2
IFF_UP = 1


def _ask(kind: int, flags: int, body: bytes) -> None:
    header = struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
        route.send(header + body)
        answer = route.recv(65536)
    (reply,) = struct.unpack_from("=H", answer, 4)
    (error,) = struct.unpack_from("=i", answer, 16)
    if reply != NLMSG_ERROR or error:
        raise OSError(-error, os.strerror(-error))


def set_up(index: int = LOOPBACK_INDEX) -> None:
    """Bring the link up."""
    _ask(RTM_NEWLINK, 0, struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, IFF_UP, IFF_UP))


def add_address(address: str, index: int = LOOPBACK_INDEX) -> None:
    """Give the link *address* as a single one (/32 or /128), usable at once."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    attributes = b"".join(
        struct.pack("=HH", 4 + len(packed), kind) + packed for kind in (IFA_LOCAL, IFA_ADDRESS)
    )
    body = struct.pack("=BBBBi", family, len(packed) * 8, IFA_F_NODAD, 0, index)
    _ask(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body + attributes)
