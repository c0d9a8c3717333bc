"""A process outside of the run that acts for it, then becomes the command: ``outside.py ROLE WORDS… --
COMMAND…``.

``broker PATH HOST PORT`` dials HOST for whoever connects to the unix socket at PATH, and passes the connection
on. ``forward PORT HOST PORT`` listens on loopback and carries bytes on. ``courier PATH HOST PORT`` sends what
stands in a file. ``caller PORT HOST PORT`` connects to loopback and sends what it reads there. ``reader HOST
PORT`` sends the name of a process that begins with ``tell-``.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable

LIMIT = 30
"""Seconds after which it ends by itself."""


def _dial(host: str, port: str, data: bytes) -> None:
    with socket.create_connection((host, int(port)), timeout=5) as out:
        out.sendall(data)
        out.recv(64)


def _broker(path: str, host: str, port: str) -> Callable[[], None]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen(1)

    def serve() -> None:
        peer, _ = listener.accept()
        with socket.create_connection((host, int(port)), timeout=5) as out:
            socket.send_fds(peer, [b"here"], [out.fileno()])

    return serve


def _forward(own: str, host: str, port: str) -> Callable[[], None]:
    listener = socket.create_server(("127.0.0.1", int(own)))

    def serve() -> None:
        peer, _ = listener.accept()
        _dial(host, port, peer.recv(1024))

    return serve


def _courier(path: str, host: str, port: str) -> Callable[[], None]:
    def serve() -> None:
        while not os.path.exists(path):
            time.sleep(0.02)
        with open(path, "rb") as file:
            _dial(host, port, file.read())

    return serve


def _caller(own: str, host: str, port: str) -> Callable[[], None]:
    def serve() -> None:
        while True:
            try:
                peer = socket.create_connection(("127.0.0.1", int(own)), timeout=5)
            except ConnectionRefusedError:
                time.sleep(0.02)
                continue
            return _dial(host, port, peer.recv(1024))

    return serve


def _named() -> bytes:
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/comm", "rb") as file:
                name = file.read().strip()
        except OSError:
            continue
        if name.startswith(b"tell-"):
            return name
    return b""


def _reader(host: str, port: str) -> Callable[[], None]:
    def serve() -> None:
        while not (name := _named()):
            time.sleep(0.02)
        _dial(host, port, name)

    return serve


ROLES: dict[str, Callable[..., Callable[[], None]]] = {
    "broker": _broker,
    "forward": _forward,
    "courier": _courier,
    "caller": _caller,
    "reader": _reader,
}


def main() -> None:
    """Be ready before the command starts; end with the work, or after a while."""
    at = sys.argv.index("--")
    role, *words = sys.argv[1:at]
    serve = ROLES[role](*words)
    if os.fork():
        os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])
    signal.alarm(LIMIT)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    serve()


main()
