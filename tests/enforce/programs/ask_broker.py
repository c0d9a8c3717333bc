"""C23: asks a broker outside of the run for a connection, and uses it: ``ask_broker.py PATH``."""

from __future__ import annotations

import socket
import sys

from probe import attempt, report


def main() -> None:
    """Report how far it got."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        asked = attempt(lambda: sock.connect(sys.argv[1]))
        sent = "not asked"
        if asked == "ok":
            _, files, _, _ = socket.recv_fds(sock, 16, 1)
            with socket.socket(fileno=files[0]) as passed:
                sent = attempt(lambda: passed.sendall(b"through a broker"))
    report(connect=asked, sent=sent)


main()
