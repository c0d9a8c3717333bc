"""C30: makes its memory unreadable to others, then connects."""

from __future__ import annotations

import socket
import sys

from probe import attempt, libc, report

PR_SET_DUMPABLE = 4  # linux/prctl.h


def main() -> None:
    """Report the connect to the host and port of the command line."""
    host, port = sys.argv[1], int(sys.argv[2])
    set_to = libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    with socket.socket() as sock:
        sock.settimeout(5)
        report(prctl=set_to, connect=attempt(lambda: sock.connect((host, port))))


main()
