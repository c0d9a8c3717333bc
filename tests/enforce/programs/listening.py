"""C26: listens without a bind, on every address, and on loopback."""

from __future__ import annotations

import socket

from probe import attempt, report


def _listen(family: int, at: tuple[str, int] | None) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        if at:
            sock.bind(at)
        sock.listen(1)


def main() -> None:
    """Report each."""
    v4, v6 = socket.AF_INET, socket.AF_INET6
    report(
        unbound=attempt(lambda: _listen(v4, None)),
        unbound6=attempt(lambda: _listen(v6, None)),
        every=attempt(lambda: _listen(v4, ("0.0.0.0", 0))),
        every6=attempt(lambda: _listen(v6, ("::", 0))),
        loopback=attempt(lambda: _listen(v4, ("127.0.0.1", 0))),
        loopback6=attempt(lambda: _listen(v6, ("::1", 0))),
    )


main()
