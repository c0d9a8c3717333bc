"""C25: ``open HOST PORT COMMAND…`` leaves descriptor 7 connected and becomes the command; ``write``
tries to use it."""

from __future__ import annotations

import os
import socket
import sys

from probe import attempt, report

INHERITED = 7


def main() -> None:
    """Do the one or the other."""
    if sys.argv[1] == "write":
        report(write=attempt(lambda: os.write(INHERITED, b"inherited")))
        return
    host, port = sys.argv[2], int(sys.argv[3])
    sock = socket.create_connection((host, port))
    os.dup2(sock.fileno(), INHERITED, inheritable=True)
    os.execvp(sys.argv[4], sys.argv[4:])


main()
