"""A door in front of a real server: it logs who arrives, and passes the bytes on and back unread.

A server keeps its own log in its own words and time; the arrival log of the namespace has one row for
each address that anything reached, whatever is behind it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading

__all__ = ["listen", "pass_through"]

Place = tuple[str, int] | str
"""A host and port, or the path of a unix socket."""


def _socket(place: Place) -> socket.socket:
    if isinstance(place, str):
        return socket.socket(socket.AF_UNIX)
    return socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET)


def listen(place: Place) -> socket.socket:
    """Return a listener at *place*, which every user may reach."""
    listener = _socket(place)
    if listener.family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(place)
    if isinstance(place, str):
        os.chmod(place, 0o777)
    listener.listen(256)
    return listener


def pass_through(peer: socket.socket, behind: Place) -> None:
    """Connect *peer* with the server *behind* it, until both sides are done; returns at once."""
    peer.setblocking(True)
    server = _socket(behind)
    try:
        server.connect(behind)
    except OSError:  # the client sees an end without an answer, as it would of a dead server
        peer.close()
        server.close()
        return
    ways = [threading.Thread(target=_carry, args=way) for way in ((peer, server), (server, peer))]

    def both() -> None:
        for way in ways:
            way.start()
        for way in ways:
            way.join()
        peer.close()
        server.close()

    threading.Thread(target=both, daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):  # a reset of one side ends this way of the two
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    with contextlib.suppress(OSError):
        source.shutdown(socket.SHUT_RD)
