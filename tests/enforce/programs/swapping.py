"""Deletes files by a path that another thread keeps changing: ``swapping.py ONE TWO COUNT``.

The folders have names of one length. Reports which files of the first are gone.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

from probe import libc, report


def main() -> None:
    """Delete, and see what was deleted."""
    one, two, count = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]), int(sys.argv[3])
    assert len(one) == len(two)
    done = threading.Event()
    held = [ctypes.create_string_buffer(256)]

    def swap() -> None:
        while not done.is_set():
            buffer = held[0]
            ctypes.memmove(buffer, one, len(one))
            ctypes.memmove(buffer, two, len(two))

    names = [b"/%04d" % at for at in range(count)]
    for name in names:
        for folder in (one, two):
            os.close(os.open(folder + name, os.O_WRONLY | os.O_CREAT, 0o600))
    thread = threading.Thread(target=swap)
    thread.start()
    for name in names:
        held[0] = ctypes.create_string_buffer(two + name, 256)
        libc.unlink(held[0])
    done.set()
    thread.join()
    report(gone=[name[1:].decode() for name in names if not os.path.exists(one + name)])


main()
