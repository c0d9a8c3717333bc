"""Regular files, read without ever waiting: a pipe, a socket or a device in the place of one is refused."""

from __future__ import annotations

import os
import stat

__all__ = ["read_plain"]

# A pipe without a writer would be waited for at open(2) already; a terminal is not taken over.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def read_plain(path: str, most: int = -1) -> bytes:
    """Return the bytes of the file at *path*, *most* of them where that is given.

    `OSError`, whose `strerror` says what it is, for whatever is no regular file.
    """
    _check(os.stat(path).st_mode)  # before open(2), which may set a device off
    descriptor = os.open(path, _FLAGS)
    with open(descriptor, "rb") as file:
        _check(os.fstat(descriptor).st_mode)  # and what was opened in the end
        return file.read(most)


def _check(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "it is a folder")
    if stat.S_ISFIFO(mode):
        raise OSError(None, "it is a pipe and no file")
    if stat.S_ISSOCK(mode):
        raise OSError(None, "it is a socket and no file")
    raise OSError(None, "it is a device and no file")
