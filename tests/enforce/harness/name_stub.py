"""A name server's answers: one name, an A and an AAAA record (RFC 1035)."""

from __future__ import annotations

import socket
import struct

__all__ = ["answer"]

A, AAAA, IN = 1, 28, 1


def answer(query: bytes, name: str, v4: str, v6: str) -> bytes:
    """Return the reply to *query*: the record it asks for, or NXDOMAIN for another name."""
    (ident, flags, _, _, _, _) = struct.unpack_from(">6H", query)
    end, labels = 12, []
    while query[end]:
        labels.append(query[end + 1 : end + 1 + query[end]].decode("ascii").lower())
        end += 1 + query[end]
    end += 1
    (kind,) = struct.unpack_from(">H", query, end)
    question = query[12 : end + 4]
    known = ".".join(labels) == name
    data = b""
    if known and kind == A:
        data = socket.inet_pton(socket.AF_INET, v4)
    if known and kind == AAAA:
        data = socket.inet_pton(socket.AF_INET6, v6)
    record = struct.pack(">HHHIH", 0xC00C, kind, IN, 60, len(data)) + data if data else b""
    # QR, recursion desired as asked and available; NXDOMAIN is 3
    status = 0x8080 | (flags & 0x0100) | (0 if known else 3)
    return struct.pack(">6H", ident, status, 1, 1 if data else 0, 0, 0) + question + record
