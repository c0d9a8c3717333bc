"""C01: datagrams to an address whose family says AF_UNSPEC, by sendto and by sendmsg; C08: connect."""

from __future__ import annotations

import ctypes
import socket
import sys

from message import message
from probe import inet, libc, report, result


def main() -> None:
    """Send to the host and port of the command line; then dissolve an association to a second host."""
    host, port, allowed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    at = inet(host, port, socket.AF_UNSPEC)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        by_sendto = libc.sendto(sock.fileno(), b"unspec", 6, 0, at, len(at))
        seen = {"sendto": result(by_sendto)}
        header = message(at, b"unspec")
        seen["sendmsg"] = result(libc.sendmsg(sock.fileno(), ctypes.byref(header), 0))
        there = inet(allowed, port)
        seen["connect"] = result(libc.connect(sock.fileno(), there, len(there)))
        gone = inet("0.0.0.0", 0, socket.AF_UNSPEC)
        seen["dissolve"] = result(libc.connect(sock.fileno(), gone, len(gone)))
    report(**seen)


main()
