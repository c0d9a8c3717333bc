"""C25: ``open DESCRIPTOR HOST PORT COMMAND…`` leaves that descriptor connected and becomes the command;
``write DESCRIPTOR`` tries to use it."""

from __future__ import annotations

import os
import socket
import sys

from probe import attempt, report


def main() -> None:
    """Do the one or the other."""
    descriptor = int(sys.argv[2])
    if sys.argv[1] == "write":
        report(write=attempt(lambda: os.write(descriptor, b"inherited")))
        return
    host, port = sys.argv[3], int(sys.argv[4])
    sock = socket.create_connection((host, port))
    os.dup2(sock.fileno(), descriptor, inheritable=True)
    os.execvp(sys.argv[5], sys.argv[5:])


main()
