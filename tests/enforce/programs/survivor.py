"""C27: ends at once and leaves a daemon that connects later."""

from __future__ import annotations

import os
import signal
import sys
import time

from probe import report


def main() -> None:
    """Leave a daemon of its own session that sends to the host and port of the command line."""
    host, port = sys.argv[1], sys.argv[2]
    reader, writer = os.pipe()
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writer, b"here")
        null = os.open(os.devnull, os.O_RDWR)
        for end in (0, 1, 2):
            os.dup2(null, end)
        time.sleep(2)
        os.execv(
            sys.executable,
            [sys.executable, os.path.join(sys.path[0], "reach.py"), "udp", host, port],
        )
    os.read(reader, 4)
    report(ended=time.monotonic(), left="a daemon")


main()
