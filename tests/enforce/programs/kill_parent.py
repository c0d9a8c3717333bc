"""C28: kills the process that it was started by (or, asked for it, the recorder behind that one), waits, and
tries to connect: ``kill_parent.py HOST PORT [recorder]``.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from probe import attempt, report
from tamper import parent_of


def main() -> None:
    """Kill the supervisor, then try the host and port of the command line."""
    host, port = sys.argv[1], int(sys.argv[2])
    report(killed="about to", connect="not reached")  # the tree may be ended before the next line
    whom = parent_of(os.getppid()) if "recorder" in sys.argv else os.getppid()
    killed = attempt(lambda: os.kill(whom, signal.SIGKILL))
    report(killed=killed, connect="not reached")
    time.sleep(0.2)
    with socket.socket() as sock:
        sock.settimeout(5)
        seen = attempt(lambda: sock.connect((host, port)))
    report(killed=killed, connect=seen)
    time.sleep(30)


main()
