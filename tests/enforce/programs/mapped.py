"""C03: connects over IPv6 sockets to IPv4 addresses in their mapped form."""

from __future__ import annotations

import socket
import sys

from probe import attempt, report


def _connect(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
        sock.connect((host, port))
        sock.sendall(b"mapped")


def main() -> None:
    """Connect to each address of the command line, mapped."""
    port = int(sys.argv[1])
    mapped = [f"::ffff:{host}" for host in sys.argv[2:]]
    report(**{host: attempt(lambda host=host: _connect(host, port)) for host in mapped})  # type: ignore[misc]  # bound at once


main()
