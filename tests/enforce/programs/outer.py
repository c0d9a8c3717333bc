"""Installs a plain seccomp filter that refuses calls, then becomes the command: ``outer.py CALLS COMMAND…``.

CALLS is a list like ``310,438=38,157:0:4``: a number, behind a first ``:`` the index of an argument whose low
word must be the value behind the second, and behind ``=`` the errno that it gets (EPERM by default).

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


def instructions(calls: str) -> bytes:
    """Return the filter: an errno for each of *calls*, ALLOW for all else."""
    rows = [(LOAD, 0, 0, 0)]
    for call in calls.split(","):
        what, _, errno = call.partition("=")
        number, *argument = (int(word, 0) for word in what.split(":"))
        refusal = (RETURN, 0, 0, ERRNO | int(errno or EPERM))
        if not argument:
            rows += [(EQUAL, 0, 1, number), refusal]
        else:
            index, value = argument
            rows += [
                (EQUAL, 0, 4, number),
                (LOAD, 0, 0, 16 + 8 * index),
                (EQUAL, 0, 1, value),
                refusal,
                (LOAD, 0, 0, 0),
            ]
    rows.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


def main() -> None:
    """Install, and become the command."""
    calls, *command = sys.argv[1:]
    code = instructions(calls)
    program = Program(len(code) // 8, code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise SystemExit("no_new_privs refused")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise SystemExit(f"no outer filter: {os.strerror(ctypes.get_errno())}")
    os.execvp(command[0], command)


main()
