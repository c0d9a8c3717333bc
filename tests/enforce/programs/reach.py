"""Does each act in turn and reports it: ``tcp HOST PORT``, ``udp``, ``udp-connect`` (with a send),
``udp-probe`` (without), ``unix PATH -``; also ``exit CODE -``, ``sleep SECONDS -``, ``signal N -``."""

from __future__ import annotations

import os
import socket
import sys
import time

from probe import attempt, report


def _each(host: str, port: str, kind: socket.SocketKind) -> list[tuple[int, tuple[str, int]]]:
    if not port.isdigit():
        return []
    found = socket.getaddrinfo(host, int(port), type=kind)
    return [(family, (str(at[0]), int(at[1]))) for family, _, _, _, at in found]


def _tcp(host: str, port: str) -> None:
    for family, at in _each(host, port, socket.SOCK_STREAM):
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(5)
            sock.connect(at)
            sock.sendall(b"tcp probe")
            assert sock.recv(64) == b"tcp probe"


def _udp(host: str, port: str, how: str) -> None:
    for family, at in _each(host, port, socket.SOCK_DGRAM):
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            if how == "udp":
                sock.sendto(b"udp probe", at)
            else:
                sock.connect(at)
            if how == "udp-connect":
                sock.send(b"udp probe")


def _act(kind: str, first: str, second: str) -> None:
    if kind == "tcp":
        _tcp(first, second)
    elif kind in {"udp", "udp-connect", "udp-probe"}:
        _udp(first, second, kind)
    elif kind == "unix":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(first)
            sock.sendall(b"unix probe")
    elif kind == "sleep":
        time.sleep(float(first))
    elif kind == "signal":
        os.kill(os.getpid(), int(first))
    else:
        raise SystemExit(f"no such act: {kind}")


def main() -> None:
    """Do the acts of the command line."""
    seen: dict[str, object] = {}
    words, code = sys.argv[1:], 0
    for at in range(0, len(words), 3):
        kind, first, second = words[at : at + 3]
        if kind == "exit":
            code = int(first)
            continue
        seen[f"{kind} {first} {second}"] = attempt(lambda k=kind, f=first, s=second: _act(k, f, s))  # type: ignore[misc]  # bound at once
        report(**seen)
    report(**seen, ended=time.monotonic(), prompt=os.environ.get("FLOWPROOF_PROMPT", ""))
    raise SystemExit(code)


main()
