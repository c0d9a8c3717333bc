"""Every cell of call, family, length, readability: what each call makes of an address that may be none."""

from __future__ import annotations

import ctypes
import errno
import itertools
import mmap
import socket
import struct
import sys
from collections.abc import Callable

from probe import inet, libc, report, result

PAGE = mmap.PAGESIZE
PAYLOAD = b"cell"
LENGTHS = (0, 1, 2, 8, 15, 16, 24, 28, 128, 129, 0x7FFFFFFF, 0xFFFFFFFF)
READABLE = ("whole", "cut", "not")
KINDS = {
    "udp4": (socket.AF_INET, socket.SOCK_DGRAM),
    "udp6": (socket.AF_INET6, socket.SOCK_DGRAM),
    "tcp4": (socket.AF_INET, socket.SOCK_STREAM),
    "tcp6": (socket.AF_INET6, socket.SOCK_STREAM),
}
libc.mmap.restype = ctypes.c_void_p


def _addresses(host: str, host6: str, port: int) -> dict[str, bytes]:
    """Return the raw addresses, by the family that they say or pretend to be of."""
    six = struct.pack("=HHI", socket.AF_INET6, socket.htons(port), 0)
    mapped = bytes(10) + b"\xff\xff" + socket.inet_aton(host)
    return {
        "inet": inet(host, port),
        "inet6": six + socket.inet_pton(socket.AF_INET6, host6) + bytes(4),
        "mapped": six + mapped + bytes(4),
        "unspec": inet(host, port, socket.AF_UNSPEC),
        "unknown": inet(host, port, 99),
        "netlink": struct.pack("=HHII", socket.AF_NETLINK, 0, 0, 0),
    }


class Ground:
    """Two pages of which the second cannot be read."""

    def __init__(self) -> None:
        kept = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(2 * PAGE), 3, 0x22, -1, 0))
        assert kept.value is not None
        self.start = kept.value
        self.end = self.start + PAGE
        assert libc.mprotect(ctypes.c_void_p(self.end), ctypes.c_size_t(PAGE), 0) == 0

    def put(self, raw: bytes, how: str) -> int:
        """Return where *raw* lies now: wholly readable, cut behind its third byte, or not readable."""
        padded = raw + bytes(200)
        at = {"whole": self.end - len(padded), "cut": self.end - 3, "not": self.end}[how]
        ctypes.memmove(at, padded, min(len(padded), self.end - at))
        return at


def _sent(sock: int, call: str, at: int, length: int) -> int:
    """Make one call with the address at *at*; its result as C has it."""
    if call == "connect":
        return int(libc.connect(sock, ctypes.c_void_p(at), ctypes.c_uint(length)))
    if call == "sendto":
        size = ctypes.c_size_t(len(PAYLOAD))
        return int(libc.sendto(sock, PAYLOAD, size, 0, ctypes.c_void_p(at), ctypes.c_uint(length)))
    payload = ctypes.create_string_buffer(PAYLOAD, len(PAYLOAD))
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(payload), len(PAYLOAD))
    header = struct.pack("=QI4xQQQQQQ", at, length, ctypes.addressof(vector), 1, 0, 0, 0, 0)
    raw = ctypes.create_string_buffer(header, len(header))
    if call == "sendmsg":
        return int(libc.sendmsg(sock, raw, 0))
    return int(libc.sendmmsg(sock, raw, 1, 0))


def _headers(kind: tuple[int, int], ground: Ground) -> dict[str, str]:
    """Return what the calls make of a header, a vector and a payload that cannot be read."""
    with socket.socket(*kind) as sock:
        number, nowhere = sock.fileno(), ground.put(b"", "not")
        seen: dict[str, Callable[[], int]] = {
            "sendmsg header": lambda: libc.sendmsg(number, ctypes.c_void_p(nowhere), 0),
            "sendmmsg header": lambda: libc.sendmmsg(number, ctypes.c_void_p(nowhere), 1, 0),
        }
        return {name: result(act()) for name, act in seen.items()}


def main() -> None:
    """Try all cells towards ``DENIED4 DENIED6 PORT``; report each as ``call kind family length readability``."""
    addresses = _addresses(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    ground, seen = Ground(), {}
    for kind, (family, raw) in itertools.product(KINDS, addresses.items()):
        calls = (
            ("connect",) if kind.startswith("tcp") else ("connect", "sendto", "sendmsg", "sendmmsg")
        )
        for call, length, how in itertools.product(calls, LENGTHS, READABLE):
            with socket.socket(*KINDS[kind]) as sock:
                found = result(_sent(sock.fileno(), call, ground.put(raw, how), length))
                if call == "connect" and found == "0":  # does it lead anywhere
                    found = result(libc.send(sock.fileno(), PAYLOAD, len(PAYLOAD), 0))
                    found = "dissolved" if found == errno.errorcode[errno.EDESTADDRREQ] else found
            seen[f"{call} {kind} {family} {length:#x} {how}"] = found
    report(cells=seen, headers=_headers(KINDS["udp4"], ground))


main()
