"""The calls that supervision rests on, as an outer filter can tell them apart."""

from __future__ import annotations

import os

__all__ = ["NUMBERS", "PIDFD_GETFD", "PIDFD_OPEN", "REFUSED"]

MACHINE = os.uname().machine
NUMBERS = {
    "x86_64": {
        "seccomp": 317,
        "prctl": 157,
        "ioctl": 16,
        "readv": 310,
        "acct": 163,
        "unshare": 272,
    },
    "aarch64": {"seccomp": 277, "prctl": 167, "ioctl": 29, "readv": 270, "acct": 89, "unshare": 97},
}[MACHINE]
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # asm-generic/unistd.h, and the same on x86_64

REFUSED = {
    "seccomp": (NUMBERS["seccomp"], "-", 0),
    "seccomp SET_MODE_FILTER": (NUMBERS["seccomp"], "0", 1),
    "seccomp GET_NOTIF_SIZES": (NUMBERS["seccomp"], "0", 3),
    "prctl SET_NO_NEW_PRIVS": (NUMBERS["prctl"], "0", 38),
    "prctl SET_DUMPABLE": (NUMBERS["prctl"], "0", 4),
    "prctl SET_CHILD_SUBREAPER": (NUMBERS["prctl"], "0", 36),
    "ioctl NOTIF_RECV": (NUMBERS["ioctl"], "1", 0xC0502100),
    "ioctl NOTIF_SEND": (NUMBERS["ioctl"], "1", 0xC0182101),
    "ioctl NOTIF_ID_VALID": (NUMBERS["ioctl"], "1", 0x40082102),
    "pidfd_open": (PIDFD_OPEN, "-", 0),
    "pidfd_getfd": (PIDFD_GETFD, "-", 0),
    "process_vm_readv": (NUMBERS["readv"], "-", 0),
}
"""Mechanism call → its number, and the argument and value that tell it (linux/seccomp.h, prctl.h)."""
