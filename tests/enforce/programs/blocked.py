"""Connects that block: a listener with a full backlog, beside connects that must not wait for it."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from probe import attempt, inet, libc, report, result

__all__ = ["full"]


def full() -> tuple[socket.socket, list[socket.socket]]:
    """Return a loopback listener that takes no more connections, and what fills it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    filling = []
    for _ in range(4):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
        filling.append(sock)
    time.sleep(0.05)
    return listener, filling


def _quick(at: tuple[str, int]) -> tuple[str, float]:
    began = time.monotonic()
    with socket.socket() as sock:
        seen = attempt(lambda: sock.connect(at))
    return seen, time.monotonic() - began


def main() -> None:
    """Report quick connects beside blocked ones, and a blocked one that a signal interrupts."""
    host, port = sys.argv[1], int(sys.argv[2])
    listener, filling = full()
    blocked = []
    for _ in range(3):
        child = os.fork()
        if not child:
            with socket.socket() as sock:
                sock.connect(listener.getsockname())
            os._exit(0)
        blocked.append(child)
    time.sleep(0.2)
    quick = [_quick((host, port)) for _ in range(20)]

    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    raw = inet(*listener.getsockname())
    began = time.monotonic()
    with socket.socket() as sock:
        interrupted = result(libc.connect(sock.fileno(), raw, len(raw)))
    took = time.monotonic() - began
    waiting = [os.waitpid(child, os.WNOHANG)[0] == 0 for child in blocked]
    for child in blocked:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    for sock in filling:
        sock.close()
    report(
        quick=sorted({seen for seen, _ in quick}),
        slowest=max(seconds for _, seconds in quick),
        waiting=waiting,
        interrupted=interrupted,
        seconds=took,
        ended=time.monotonic(),
    )


if __name__ == "__main__":
    main()
