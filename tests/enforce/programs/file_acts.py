"""Does each act on files in turn and reports its errno: ``ACT FIRST SECOND`` (``-`` for none).

Paths are as given; ``unlinkat``, ``renameat`` and their like begin at the folder that ``in FOLDER -`` opened
last. Acts named after a system call make that very call.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import time

from probe import report

NUMBERS = {
    "x86_64": {
        "open": 2, "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85,
        "link": 86, "unlink": 87, "symlink": 88, "mknod": 133, "openat": 257, "mkdirat": 258, "mknodat": 259,
        "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "renameat2": 316, "openat2": 437,
    },
    "aarch64": {
        "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38,
        "truncate": 45, "ftruncate": 46, "openat": 56, "renameat2": 276, "openat2": 437,
    },
}[os.uname().machine]  # fmt: skip
LIBC = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2
FIFO = 0o010644
_FOLDER = [-100]
_OLD_ROOT: list[int] = []


def _call(name: str, *arguments: object) -> int:
    found = int(LIBC.syscall(NUMBERS[name], *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def _closed(descriptor: int) -> None:
    os.close(descriptor)


def _how(flags: int, resolve: int = 0) -> bytes:
    return struct.pack("=QQQ", flags, 0o644 if flags & os.O_CREAT else 0, resolve)


def _openat2(path: bytes, flags: int, resolve: int = 0) -> None:
    how = _how(flags, resolve)
    _closed(_call("openat2", _FOLDER[0], path, how, len(how)))


def _plain(act: str, one: bytes, two: bytes) -> bool:
    """Make one of the calls without a folder; False where *act* is none."""
    trunc, make = os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREAT
    match act:
        case "unlink" | "rmdir":
            _call(act, one)
        case "rename" | "link" | "symlink":
            _call(act, one, two)
        case "mkdir":
            _call(act, one, 0o755)
        case "mknod":
            _call(act, one, FIFO, 0)
        case "truncate":
            _call(act, one, ctypes.c_long(0))
        case "creat":
            _closed(_call(act, one, 0o644))
        case "open-cut":
            _closed(_call("open", one, trunc))
        case "open-write":
            _closed(_call("open", one, os.O_RDWR))
        case "open-make":
            _closed(_call("open", one, make, 0o644))
        case "open-read":
            _closed(_call("open", one, os.O_RDONLY))
        case _:
            return False
    return True


def _at(act: str, one: bytes, two: bytes) -> bool:
    base = _FOLDER[0]
    match act:
        case "in":
            _FOLDER[0] = os.open(one, os.O_RDONLY)
        case "unlinkat":
            _call(act, base, one, 0)
        case "removedir":
            _call("unlinkat", base, one, 0x200)
        case "renameat":
            _call(act, base, one, base, two)
        case "keep":
            _call("renameat2", base, one, base, two, NOREPLACE)
        case "exchange":
            _call("renameat2", base, one, base, two, EXCHANGE)
        case "mkdirat":
            _call(act, base, one, 0o755)
        case "mknodat":
            _call(act, base, one, FIFO, 0)
        case "symlinkat":
            _call(act, one, base, two)
        case "linkat":
            _call(act, base, one, base, two, 0)
        case "openat-cut":
            _closed(_call("openat", base, one, os.O_RDONLY | os.O_TRUNC))
        case "openat-append":
            _closed(_call("openat", base, one, os.O_WRONLY | os.O_APPEND))
        case "openat-nofollow":
            _closed(_call("openat", base, one, os.O_WRONLY | os.O_NOFOLLOW))
        case "openat-new":
            _closed(_call("openat", base, one, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        case "openat-read":
            _closed(_call("openat", base, one, os.O_RDONLY))
        case "openat2-cut":
            _openat2(one, os.O_WRONLY | os.O_TRUNC)
        case "openat2-root":
            _openat2(one, os.O_WRONLY | os.O_TRUNC, 0x10)
        case "openat2-read":
            _openat2(one, os.O_RDONLY)
        case _:
            return False
    return True


def _other(act: str, one: bytes, two: bytes) -> None:
    match act:
        case "ftruncate":
            descriptor = os.open(one, os.O_WRONLY)
            _call(act, descriptor, ctypes.c_long(0))
            _closed(descriptor)
        case "ftruncate-unnamed":
            descriptor = os.memfd_create("unnamed")
            _call("ftruncate", descriptor, ctypes.c_long(4096))
            _closed(descriptor)
        case "chdir":
            os.chdir(one)
        case "chroot":
            _OLD_ROOT.append(os.open("/", os.O_RDONLY))
            os.chroot(one)
        case "mounts":
            _unshare()
        case "undumpable":
            LIBC.prctl(4, 0, 0, 0, 0)
        case "bad-pointer":
            _call("unlinkat", -100, ctypes.c_void_p(8), 0)
        case "exit":
            report(**SEEN)
            raise SystemExit(int(one))
        case "sleep":
            report(**SEEN)
            time.sleep(float(one))
        case "linger":
            if os.fork() == 0:
                time.sleep(float(one))
                os._exit(0)
        case _:
            raise SystemExit(f"no such act: {act} {two!r}")


def _unshare() -> None:
    if LIBC.unshare(0x10000000 | 0x00020000) < 0:  # CLONE_NEWUSER | CLONE_NEWNS
        raise OSError(ctypes.get_errno(), "unshare")


SEEN: dict[str, object] = {}


def main() -> None:
    """Do the acts of the command line."""
    words = sys.argv[1:]
    for at in range(0, len(words), 3):
        act, one, two = words[at], os.fsencode(words[at + 1]), os.fsencode(words[at + 2])
        try:
            if not (_plain(act, one, two) or _at(act, one, two)):
                _other(act, one, two)
            found = "ok"
        except OSError as error:
            found = errno.errorcode.get(error.errno or 0, str(error.errno))
        SEEN[" ".join(words[at : at + 3])] = found
    for root in _OLD_ROOT:  # back to where the report lies
        os.fchdir(root)
        os.chroot(".")
    report(**SEEN)


main()
