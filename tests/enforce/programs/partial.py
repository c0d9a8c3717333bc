"""C05: sendmmsg of an allowed and a denied datagram, and of two on a unix datagram pair."""

from __future__ import annotations

import socket
import sys

from message import Many, message
from probe import inet, libc, report, result


def _send(sock: socket.socket, *messages: tuple[bytes | None, bytes]) -> dict[str, object]:
    many = (Many * len(messages))(*(Many(message(*one), 0) for one in messages))
    returned = libc.sendmmsg(sock.fileno(), many, len(messages), 0)
    return {"returned": result(returned), "lengths": [one.length for one in many]}


def main() -> None:
    """Send to ``ALLOWED DENIED PORT``."""
    allowed, denied, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        udp = _send(sock, (inet(allowed, port), b"first"), (inet(denied, port), b"second"))
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with left, right:
        unix = _send(left, (None, b"one"), (None, b"three"))
    report(udp=udp, unix=unix)


main()
