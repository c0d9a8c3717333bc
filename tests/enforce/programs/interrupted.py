"""C13: a blocking connect that a handler without SA_RESTART interrupts, and that completes later."""

from __future__ import annotations

import select
import signal
import socket
import time

from blocked import full
from probe import inet, libc, report, result

SECONDS = 20.0


def main() -> None:
    """Interrupt a connect to a listener that takes nothing, then let the listener take what there is."""
    listener, filling = full()
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)  # no SA_RESTART
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    raw = inet(*listener.getsockname())
    sock = socket.socket()
    first = result(libc.connect(sock.fileno(), raw, len(raw)))
    own = sock.getsockname()
    signal.setitimer(signal.ITIMER_REAL, 0)

    listener.setblocking(False)
    poller = select.poll()
    poller.register(sock, select.POLLOUT)
    peers, until, ready = [], time.monotonic() + SECONDS, False
    while time.monotonic() < until:
        try:
            peers.append(listener.accept())
        except BlockingIOError:
            if ready:
                break
        if not ready and poller.poll(50):
            ready = True
            until = time.monotonic() + 1  # whatever else of this connection would come, comes now
            sock.sendall(b"once")
    mine = [peer for peer, at in peers if at == own]
    report(
        connect=first,
        ready=ready,
        error=sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
        accepted=len(mine),
        received=[peer.recv(64).decode() for peer in mine],
    )
    for filler in filling:
        filler.close()


main()
