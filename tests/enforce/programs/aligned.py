"""SUNS-07: sends whose address lies where the low 32 bits of the pointer are zero: ``aligned.py ALLOWED DENIED PORT``."""

from __future__ import annotations

import ctypes
import socket
import sys

from message import Many, message
from probe import inet, libc, report, result

AT = 0x5_0000_0000  # a multiple of 4 GiB
PAGE = 4096
PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, MAP_FIXED_NOREPLACE = 3, 0x22, 0x100000  # linux/mman.h


def _batch(*names: int) -> ctypes.Array[Many]:
    """Return messages whose names lie at these addresses."""
    batch = (Many * len(names))(*(Many(message(b"-" * 16, b"aligned"), 0) for _ in names))
    for one, name in zip(batch, names, strict=True):
        ctypes.c_void_p.from_address(ctypes.addressof(one)).value = name  # msg_name comes first
    return batch


def _page(at: int) -> int:
    libc.mmap.restype = ctypes.c_void_p
    flags = MAP_PRIVATE_ANONYMOUS | MAP_FIXED_NOREPLACE
    found = libc.mmap(ctypes.c_void_p(at), PAGE, PROT_READ_WRITE, flags, -1, 0)
    assert found == at, "the place is taken"
    return at


def main() -> None:
    """Report what the sends returned."""
    allowed, denied, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    data = ctypes.create_string_buffer(b"aligned", 7)
    first, second = _page(AT), _page(2 * AT)
    ctypes.memmove(first, inet(denied, port), 16)
    ctypes.memmove(second, inet(allowed, port), 16)
    length = ctypes.c_uint(16)
    to_denied = result(
        libc.sendto(sock.fileno(), data, ctypes.c_size_t(7), 0, ctypes.c_void_p(first), length)
    )
    to_allowed = result(
        libc.sendto(sock.fileno(), data, ctypes.c_size_t(7), 0, ctypes.c_void_p(second), length)
    )
    sent = result(libc.sendmmsg(sock.fileno(), _batch(second, first), 2, 0))
    report(denied=to_denied, allowed=to_allowed, batch=sent)


main()
