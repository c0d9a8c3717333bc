"""Makes each attempt of PACK_ATTEMPTS (JSON: ``[kind, host, port]`` each) and writes how it ended to PACK_REPORT."""

from __future__ import annotations

import errno
import json
import os
import socket


def _echoed(sock: socket.socket) -> None:
    sock.settimeout(5)
    sock.sendall(b"a pack is tried")
    if sock.recv(64) != b"a pack is tried":
        raise OSError(errno.EPROTO, "no echo")


def _attempt(kind: str, host: str, port: int) -> None:
    if kind == "unix":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(host)
            _echoed(sock)
        return
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock:
        if kind == "listen":
            sock.bind((host, port))
            sock.listen()
        else:
            sock.settimeout(5)
            sock.connect((host, port))
            _echoed(sock)


def _ended(kind: str, host: str, port: int) -> str:
    try:
        _attempt(kind, host, port)
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, str(problem))
    return "ok"


if __name__ == "__main__":
    wanted = json.loads(os.environ["PACK_ATTEMPTS"])
    seen = [_ended(*each) for each in wanted]
    with open(os.environ["PACK_REPORT"], "w", encoding="utf-8") as report:
        json.dump(seen, report)
