"""Installs a plain seccomp filter that refuses one call, then becomes the command: ``outer.py NR ARG VALUE
COMMAND…``. ARG is the index of an argument whose low word must be VALUE, or ``-`` for any.

The filter has no listener, so it nests under any other; it stays with every descendant.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from probe import libc

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2  # linux/prctl.h, seccomp.h
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
ALLOW, ERRNO, EPERM = 0x7FFF0000, 0x00050000, 1


class Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def instructions(number: int, argument: int | None, value: int) -> bytes:
    """Return the filter: EPERM for *number* (where *argument* is *value*), ALLOW for all else."""
    rows = [(LOAD, 0, 0, 0)]
    if argument is None:
        rows += [(EQUAL, 0, 1, number)]
    else:
        rows += [(EQUAL, 0, 3, number), (LOAD, 0, 0, 16 + 8 * argument), (EQUAL, 0, 1, value)]
    rows += [(RETURN, 0, 0, ERRNO | EPERM), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


def main() -> None:
    """Install, and become the command."""
    number, argument, value = sys.argv[1:4]
    code = instructions(int(number), None if argument == "-" else int(argument), int(value, 0))
    program = Program(len(code) // 8, code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise SystemExit("no_new_privs refused")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise SystemExit(f"no outer filter: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[4], sys.argv[4:])


main()
