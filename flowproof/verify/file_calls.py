"""The calls by which files are deleted, renamed, truncated and written, as a proof knows them.

Numbers and flags are this module's own, from the headers of Linux 6.1 (asm/unistd_64.h,
asm-generic/unistd.h, asm-generic/fcntl.h).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FLAGS", "NUMBERS", "OPENING", "needed"]

NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "open": 2,
        "truncate": 76,
        "ftruncate": 77,
        "rename": 82,
        "mkdir": 83,
        "rmdir": 84,
        "creat": 85,
        "link": 86,
        "unlink": 87,
        "symlink": 88,
        "mknod": 133,
        "openat": 257,
        "mkdirat": 258,
        "mknodat": 259,
        "unlinkat": 263,
        "renameat": 264,
        "linkat": 265,
        "symlinkat": 266,
        "open_by_handle_at": 304,
        "renameat2": 316,
        "openat2": 437,
    },
    "aarch64": {
        "mknodat": 33,
        "mkdirat": 34,
        "unlinkat": 35,
        "symlinkat": 36,
        "linkat": 37,
        "renameat": 38,
        "truncate": 45,
        "ftruncate": 46,
        "openat": 56,
        "open_by_handle_at": 265,
        "renameat2": 276,
        "openat2": 437,
    },
}
FLAGS = {"open": 1, "openat": 2, "open_by_handle_at": 2}
"""Which argument the flags of an opening call are; those of openat2 lie in memory."""
OPENING = {"truncate": 0o1000, "write": 0o1000 | 0o100 | 0o3}
"""The flags of an open by which it may be an operation: O_TRUNC; and O_CREAT and both ways of writing."""

_DELETING = {"unlink", "unlinkat", "rmdir"}
_MOVING = {"rename", "renameat", "renameat2"}
_CUTTING = {"truncate", "ftruncate", "creat", "openat2", *FLAGS}
_BY_OPERATION = {
    "delete": _DELETING | _MOVING,
    "rename": _MOVING,
    "truncate": _CUTTING,
    "write": set(NUMBERS["x86_64"]),
}


def needed(arch: str, operations: frozenset[str]) -> Mapping[int, str]:
    """Return the calls, by number, of which some may amount to one of *operations*."""
    key = (arch, operations)
    if key not in _NEEDED:
        names = {name for operation in operations for name in _BY_OPERATION[operation]}
        _NEEDED[key] = {number: name for name, number in NUMBERS[arch].items() if name in names}
    return _NEEDED[key]


_NEEDED: dict[tuple[str, frozenset[str]], Mapping[int, str]] = {}
