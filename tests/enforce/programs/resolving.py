"""C04: getaddrinfo of a name that only the name server on loopback knows; C06: the interfaces."""

from __future__ import annotations

import socket
import sys
import time

from probe import attempt, report


def main() -> None:
    """Report the addresses of the name on the command line."""
    started = time.monotonic()
    try:
        found = {
            str(at[4][0]) for at in socket.getaddrinfo(sys.argv[1], 80, type=socket.SOCK_STREAM)
        }
    except socket.gaierror as problem:
        found = {str(problem)}
    seconds = time.monotonic() - started
    report(found=sorted(found), seconds=seconds, interfaces=attempt(socket.if_nameindex))


main()
