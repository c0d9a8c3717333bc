"""C17: TCP Fast Open, by sendto and sendmsg with MSG_FASTOPEN and by TCP_FASTOPEN_CONNECT."""

from __future__ import annotations

import socket
import sys

from probe import attempt, report

MSG_FASTOPEN = 0x20000000  # linux/socket.h
TCP_FASTOPEN_CONNECT = 30  # linux/tcp.h


def _by(how: str, at: tuple[str, int]) -> None:
    with socket.socket() as sock:
        sock.settimeout(5)
        if how == "sendto":
            sock.sendto(b"fast", MSG_FASTOPEN, at)
        elif how == "sendmsg":
            sock.sendmsg([b"fast"], [], MSG_FASTOPEN, at)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
            sock.connect(at)
            sock.send(b"fast")


def main() -> None:
    """Try each way to the host and port of the command line."""
    at = (sys.argv[1], int(sys.argv[2]))
    report(
        **{
            how: attempt(lambda how=how: _by(how, at))  # type: ignore[misc]  # bound at once
            for how in ("sendto", "sendmsg", "connect")
        }
    )


main()
