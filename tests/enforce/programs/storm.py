"""Connects again and again while a timer interrupts it: ``storm.py HOST PORT TIMES SECONDS-BETWEEN-SIGNALS``."""

from __future__ import annotations

import signal
import socket
import sys

from probe import attempt, report


def _connect(host: str, port: int) -> None:
    with socket.socket() as sock:
        sock.settimeout(5)
        sock.connect((host, port))
        sock.sendall(b"storm")
        assert sock.recv(64) == b"storm"  # it is in the arrival log


def main() -> None:
    """Report how many connects succeeded, what others ended with, and how many signals came."""
    host, port, times, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    signals = 0

    def count(_number: int, _frame: object) -> None:
        nonlocal signals
        signals += 1

    signal.signal(signal.SIGALRM, count)
    # As SA_RESTART has it: a call that nobody had received yet when the signal came begins anew.
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    seen = [attempt(lambda: _connect(host, port)) for _ in range(times)]
    signal.setitimer(signal.ITIMER_REAL, 0)
    report(ok=seen.count("ok"), others=sorted(set(seen) - {"ok"}), signals=signals)


main()
