"""Fetches ``http://HOST:PORT/PATH`` with asyncio's streams: ``fetch_asyncio.py HOST PORT PATH``."""

from __future__ import annotations

import asyncio
import hashlib
import sys


async def main(host: str, port: int, path: str) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    await writer.drain()
    _, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    print(hashlib.sha256(body).hexdigest())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
