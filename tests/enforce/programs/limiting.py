"""Sets resource limits of other processes: ``limiting.py supervisor`` or ``limiting.py recorder``."""

from __future__ import annotations

import os
import resource
import socket
import sys
import time

from probe import attempt, report
from tamper import parent_of


def _wear_out(pid: int) -> dict[str, object]:
    """Leave the supervisor one second of the processor, and make it use that."""
    limited = attempt(lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
    until, seen = time.monotonic() + 30, "ok"
    while seen == "ok" and time.monotonic() < until:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            seen = attempt(lambda s=sock: s.connect(("127.0.0.1", 9)))  # type: ignore[misc]  # bound at once
            report(limited=limited, connect=seen)
    return {"limited": limited, "connect": seen}


def main() -> None:
    """Report what was done."""
    supervisor = os.getppid()
    if sys.argv[1] == "supervisor":
        report(**_wear_out(supervisor))
        return
    recorder = parent_of(supervisor)
    report(limited=attempt(lambda: resource.prlimit(recorder, resource.RLIMIT_FSIZE, (0, 0))))


main()
