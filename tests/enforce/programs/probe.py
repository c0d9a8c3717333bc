"""What the probe programs share: attempts named by their errno, and the report that they leave."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import struct
from collections.abc import Callable

__all__ = ["attempt", "inet", "libc", "named", "report", "result"]

libc = ctypes.CDLL(None, use_errno=True)


def named(number: int) -> str:
    """Return the name of an errno."""
    return errno.errorcode.get(number, str(number))


def attempt(work: Callable[[], object]) -> str:
    """Return ``ok``, or the name of the errno that *work* ended with."""
    try:
        work()
    except OSError as problem:
        return named(problem.errno) if problem.errno else type(problem).__name__
    return "ok"


def result(returned: int) -> str:
    """Return what a libc call returned, or the name of its errno."""
    return str(returned) if returned >= 0 else named(ctypes.get_errno())


def report(**seen: object) -> None:
    """Leave what the program saw where the test reads it (PROBE_REPORT)."""
    path = os.environ["PROBE_REPORT"]
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(seen, file)
    os.rename(path + ".new", path)


def inet(host: str, port: int, family: int = socket.AF_INET) -> bytes:
    """Return a raw ``struct sockaddr_in`` whose family field says *family*."""
    return struct.pack(
        "=HH4s8x", family, socket.htons(port), socket.inet_pton(socket.AF_INET, host)
    )
