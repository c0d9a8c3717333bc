"""C15: connects of event loops: asyncio, and O_NONBLOCK with poll and SO_ERROR."""

from __future__ import annotations

import asyncio
import select
import socket
import sys
import time

from probe import named, report


def _polled(host: str, port: int) -> dict[str, object]:
    with socket.socket() as sock:
        sock.setblocking(False)
        started = time.monotonic()
        first = sock.connect_ex((host, port))
        took = time.monotonic() - started
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        ready = bool(poll.poll(5000))
        after = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        peer = sock.connect_ex((host, port))
        return {
            "first": named(first) if first else "ok",
            "seconds": took,
            "ready": ready,
            "error": named(after) if after else "ok",
            "again": named(peer) if peer else "ok",
        }


async def _asyncio(host: str, port: int) -> str:
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 5)
    except OSError as problem:
        return named(problem.errno or 0)
    writer.write(b"asyncio")
    await writer.drain()
    said = await asyncio.wait_for(reader.read(64), 5)
    writer.close()
    await writer.wait_closed()
    return "ok" if said == b"asyncio" else repr(said)


def main() -> None:
    """Report both ways for each host of the command line."""
    port = int(sys.argv[1])
    seen = {
        host: {"poll": _polled(host, port), "asyncio": asyncio.run(_asyncio(host, port))}
        for host in sys.argv[2:]
    }
    report(**seen)


main()
