"""What the supervisor tells the recorder: batches of tuples over a pipe, and counters in shared memory.

A frame is a little-endian u32 length and that many bytes of ``marshal`` (both ends are one Python): a
list of the tuples below, each beginning with its tag. Times are milliseconds since the command was
spawned, monotonic; before that they are 0.
"""

from __future__ import annotations

import marshal
from struct import Struct

__all__ = [
    "ATTEMPT",
    "CANARY",
    "CANARY_REPLY",
    "COUNTERS",
    "END",
    "EXECUTED",
    "EXITED",
    "FAULT",
    "NOT_STARTED",
    "SPAWNED",
    "SURVIVOR",
    "TOO_LARGE",
    "pack",
    "unpack",
]

ATTEMPT = "attempt"
"""(ATTEMPT, ms, pid, executable, operation, protocol, destination, port, refused, by, asserting,
observing, note)

operation: connect, send, probe, listen, socket, unix or foreign; delete, rename, truncate or write.
protocol: tcp, udp, unix, file or the family's name. destination: canonical address, unix path, family or
path, for a rename two with a zero byte between. port: an int or None. by: rule index or None.
asserting, observing: tuples of rule indices (asserting is empty for a probe). note: str or None, such as
``program is 32-bit``.
"""
TOO_LARGE = "too large"
"""The note of an attempt whose payload is more than is copied: it was let through, and got EMSGSIZE."""
FAULT = "fault"
"""(FAULT, ms, pid, code, call, detail): code is the value of a `Code`; detail a short text with errno."""
CANARY = "canary"
"""(CANARY, refused, by, operation, destination): a known call before exec, as the supervisor decided it
through the listener.
"""
CANARY_REPLY = "canary-reply"
"""(CANARY_REPLY, lane, which, errno): which of the calls planned for a lane was tried; its caller got errno,
0 for success.
"""
NOT_STARTED = "not-started"
"""(NOT_STARTED, code, detail): the command never ran; code is the value of a `Code`."""
SPAWNED = "spawned"
"""(SPAWNED, pid): the command is about to exec; time 0. A NOT_STARTED behind it takes it back."""
EXECUTED = "executed"
"""(EXECUTED,): the exec succeeded."""
EXITED = "exited"
"""(EXITED, ms, how, value): how is exit, signal or timeout or interrupt; value the code or the signal."""
SURVIVOR = "survivor"
"""(SURVIVOR, pid, executable): a process that outlived the command and was ended."""
END = "end"
"""(END, received, answered): the listener is closed, every process is gone; nothing follows."""

COUNTERS = Struct("<QQ")
"""received, answered: at offset 0 of the page that recorder and supervisor share; outlives the latter."""

_LENGTH = Struct("<I")


def pack(tuples: list[tuple[object, ...]]) -> bytes:
    """Return the frame of a batch."""
    body = marshal.dumps(tuples)
    return _LENGTH.pack(len(body)) + body


def unpack(buffer: bytes) -> tuple[list[tuple[object, ...]], bytes]:
    """Return the tuples of all whole frames in *buffer*, and what is left of it."""
    found: list[tuple[object, ...]] = []
    at = 0
    while at + 4 <= len(buffer):
        (length,) = _LENGTH.unpack_from(buffer, at)
        if at + 4 + length > len(buffer):
            break
        found.extend(marshal.loads(buffer[at + 4 : at + 4 + length]))  # noqa: S302  our own supervisor
        at += 4 + length
    return found, buffer[at:]
