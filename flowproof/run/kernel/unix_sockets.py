"""Which unix sockets there are: unix_diag (sock_diag(7)), and whether a file has one behind it."""

from __future__ import annotations

import os
import socket
from errno import ENOSYS
from struct import Struct

from flowproof.run import numbers as n
from flowproof.run.kernel.library import Library

__all__ = ["UnixCalls", "UnixSocket"]


_DIAG_REQUEST = Struct("=IHHIIBBHIIIII")  # nlmsghdr, unix_diag_req
_NLMSGHDR = Struct("=IHHII")
_DIAG_MESSAGE = Struct("=BBBBIII")
_ATTRIBUTE = Struct("=HH")
_VFS = Struct("=II")


class UnixSocket:
    """A unix socket of a network namespace, as unix_diag lists it.

    *inode* is the socket's (``socket:[N]``), *file* the (device in the kernel's encoding, inode) of the
    path that it is bound to, cut to 32 bits each, and *name* its bytes, an abstract one from its NUL on.
    """

    __slots__ = ("file", "inode", "name", "type")

    def __init__(
        self, inode: int, type_: int, name: bytes | None, file: tuple[int, int] | None
    ) -> None:
        self.inode = inode
        self.type = type_
        self.name = name
        self.file = file


class UnixCalls(Library):
    """What is asked about the unix sockets of this process's network namespace."""

    def unix_bound(self, path: bytes) -> bool:
        """Tell whether a socket is bound to *path* (a socket file), in whichever network namespace.

        A datagram socket of our own is pointed there: the kernel tells "nobody" (ECONNREFUSED) from "a
        socket of another type" (EPROTOTYPE), and pointing it at a datagram socket sends nothing.
        """
        with socket.socket(n.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as own:
            try:
                own.connect(path)
            except ConnectionRefusedError:
                return False
            except OSError:
                return True
        return True

    def unix_sockets(self) -> list[UnixSocket]:
        """Return the unix sockets of this process's network namespace (sock_diag(7)).

        ENOENT: the kernel has no unix_diag.
        """
        request = _DIAG_REQUEST.pack(
            _DIAG_REQUEST.size, n.SOCK_DIAG_BY_FAMILY, n.NLM_F_REQUEST | n.NLM_F_DUMP, 1, 0,
            n.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, n.UDIAG_SHOW_NAME | n.UDIAG_SHOW_VFS, 0, 0,
        )  # fmt: skip
        found: list[UnixSocket] = []
        kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
        with socket.socket(n.AF_NETLINK, kind, n.NETLINK_SOCK_DIAG) as own:
            own.sendto(request, (0, 0))
            while not _parse_diag(own.recv(1 << 16), found):
                pass
        return found


def _parse_diag(data: bytes, found: list[UnixSocket]) -> bool:
    """Add the sockets of one datagram of a dump to *found*; return whether it was the last."""
    at = 0
    while at + _NLMSGHDR.size <= len(data):
        length, kind, _flags, _sequence, _port = _NLMSGHDR.unpack_from(data, at)
        if kind == n.NLMSG_DONE:
            return True
        if kind == n.NLMSG_ERROR:
            code = -int.from_bytes(data[at + 16 : at + 20], "little", signed=True)
            raise OSError(code or ENOSYS, f"unix_diag: {os.strerror(code)}")
        found.append(_parse_socket(data[at + 16 : at + length]))
        at += (length + 3) & ~3
    return False


def _parse_socket(message: bytes) -> UnixSocket:
    """Return the socket of one struct unix_diag_msg and its attributes."""
    _family, type_, _state, _pad, inode, _cookie0, _cookie1 = _DIAG_MESSAGE.unpack_from(message)
    name: bytes | None = None
    file: tuple[int, int] | None = None
    at = _DIAG_MESSAGE.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        value = message[at + 4 : at + length]
        if kind == n.UNIX_DIAG_NAME:
            name = value
        elif kind == n.UNIX_DIAG_VFS:
            number, device = _VFS.unpack_from(value)
            file = (device, number)
        at += max((length + 3) & ~3, 4)
    return UnixSocket(inode, type_, name, file)
