"""Names resolved once, at the start of a run: in parallel and with a deadline."""

from __future__ import annotations

import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Resolver = Callable[[str], Sequence[str]]

__all__ = ["RESOLVE_DEADLINE", "resolve_all", "system_resolver"]

RESOLVE_DEADLINE = 10.0
"""Seconds that a run waits for its names before it gives up on those without an answer."""
_THREADS = 16


def system_resolver(name: str) -> tuple[str, ...]:
    """Return the addresses of a name in text form, as this host resolves it; none if it does not."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(str(address[0]) for *_ignored, address in found)


def resolve_all(
    names: Sequence[str], resolve: Resolver, deadline: float
) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each name that was answered within *deadline* seconds."""
    answers: dict[str, tuple[str, ...]] = {}
    waiting = list(reversed(names))

    def work() -> None:
        while waiting:
            try:
                name = waiting.pop()
            except IndexError:  # another thread took the last one
                return
            answers[name] = tuple(resolve(name))

    # Daemon threads: one that still waits for a name server must not hold up the end of the run.
    threads = [
        threading.Thread(target=work, name="resolver", daemon=True)
        for _ in range(min(_THREADS, len(names)))
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(answers)
