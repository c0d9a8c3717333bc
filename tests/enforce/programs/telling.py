"""Tells without a call that is looked at: ``name TEXT`` as the process's name, ``serve PORT`` to who connects."""

from __future__ import annotations

import socket
import sys
import time

from probe import libc, report

PR_SET_NAME = 15  # linux/prctl.h


def main() -> None:
    """Stay until what was told has been heard, or for a while."""
    if sys.argv[1] == "name":
        libc.prctl(PR_SET_NAME, sys.argv[2].encode(), 0, 0, 0)
        time.sleep(2)
    else:
        with socket.create_server(("127.0.0.1", int(sys.argv[2]))) as server:
            server.settimeout(10)
            peer, _ = server.accept()
            peer.sendall(b"to who asks")
            time.sleep(0.5)
    report(told=sys.argv[1])


main()
