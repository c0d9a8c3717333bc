"""Connects from worker threads, the first thread waiting: ``threads.py HOST PORT THREADS``."""

from __future__ import annotations

import socket
import sys
import threading

from probe import attempt, report


def main() -> None:
    """Report what each thread's connect ended with."""
    at, count = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
    seen: list[str] = []

    def work() -> None:
        with socket.socket() as sock:
            sock.settimeout(5)
            seen.append(attempt(lambda: sock.connect(at)))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(seen=seen)


main()
