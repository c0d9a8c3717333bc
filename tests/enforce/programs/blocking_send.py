"""C09: a blocking send of 2 MB on a socketpair whose reader has to connect before it reads."""

from __future__ import annotations

import os
import socket
import threading
import time

from probe import report

SIZE = 2 * 1024 * 1024


def _reader(end: socket.socket, at: tuple[str, int]) -> None:
    time.sleep(0.1)  # the sender is blocked by now
    with socket.create_connection(at, timeout=10):
        pass
    left = SIZE
    while left:
        left -= len(end.recv(1 << 16))


def main() -> None:
    """Report how long it took, by sendall (NULL address) and by sendmsg (trapped and performed)."""
    seen: dict[str, object] = {}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for how in ("send", "sendmsg"):
            left, right = socket.socketpair()
            started = time.monotonic()
            child = os.fork()
            if not child:
                left.close()
                _reader(right, listener.getsockname())
                os._exit(0)
            right.close()
            accepting = threading.Thread(target=listener.accept)
            accepting.start()
            sent, payload = 0, memoryview(bytes(SIZE))
            while sent < SIZE:
                rest = payload[sent:]
                sent += left.send(rest) if how == "send" else left.sendmsg([rest])
            _, status = os.waitpid(child, 0)
            accepting.join(10)
            seen[how] = {"seconds": time.monotonic() - started, "status": status}
    report(**seen)


main()
