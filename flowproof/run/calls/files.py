"""Calls about files: seen, told and left to the kernel, which performs each of them itself.

What is told is the attempt: the kernel reads the path again, and finds out by itself whether it succeeds.
Nothing here refuses anything, so that nothing rests on what was read.
"""

from __future__ import annotations

import os
import platform
import stat
from errno import EINVAL
from struct import Struct

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.caller import AnswerError, FaultError
from flowproof.run.journal import attempt
from flowproof.run.paths import locate, opened, read_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.artifact.model import Decision
    from flowproof.run.caller import Caller
    from flowproof.run.paths import Place

    FileHandler = Callable[[Caller, tuple[int, ...]], None]

__all__ = ["FILE_CALLS"]

_HOW = Struct("=QQQ")  # struct open_how: flags, mode, resolve
_NO_FOLLOW = n.O_NOFOLLOW.get(platform.machine(), n.O_NOFOLLOW["x86_64"])
_NOTHING_THERE = "no effect: nothing is there"
_THERE = "no effect: it is there already"


def _unlink(caller: Caller, arguments: tuple[int, ...]) -> None:
    _deleted(caller, n.AT_FDCWD, arguments[0])


def _unlinkat(caller: Caller, arguments: tuple[int, ...]) -> None:
    _deleted(caller, arguments[0], arguments[1])


def _deleted(caller: Caller, folder: int, path: int) -> None:
    place = locate(caller, folder, read_path(caller, path), follow=False)
    if not place.is_kind(stat.S_IFCHR):
        _tell(caller, "delete", place, _NOTHING_THERE if place.mode == 0 else None)


def _rename(caller: Caller, arguments: tuple[int, ...]) -> None:
    _renamed(caller, (n.AT_FDCWD, arguments[0]), (n.AT_FDCWD, arguments[1]), 0)


def _renameat(caller: Caller, arguments: tuple[int, ...]) -> None:
    _renamed(caller, (arguments[0], arguments[1]), (arguments[2], arguments[3]), 0)


def _renameat2(caller: Caller, arguments: tuple[int, ...]) -> None:
    flags = arguments[4] & 0xFFFFFFFF
    _renamed(caller, (arguments[0], arguments[1]), (arguments[2], arguments[3]), flags)


def _renamed(caller: Caller, old: tuple[int, int], new: tuple[int, int], flags: int) -> None:
    source = locate(caller, old[0], read_path(caller, old[1]), follow=False)
    target = locate(caller, new[0], read_path(caller, new[1]), follow=False)
    assert source.path is not None
    assert target.path is not None
    exchange = bool(flags & n.RENAME_EXCHANGE)
    replaces = target.mode != 0 and not exchange and not flags & n.RENAME_NOREPLACE
    replaces = replaces and not target.is_kind(stat.S_IFCHR)
    if source.is_kind(stat.S_IFCHR):  # never counted; what it replaces is
        if replaces:
            _tell(caller, "delete", target, "a rename replaces it")
        return
    note = "it replaces what is there" if replaces else "exchanged" if exchange else None
    if source.mode == 0 or (exchange and target.mode == 0):
        note = _NOTHING_THERE
    elif flags & n.RENAME_NOREPLACE and target.mode:
        note = _THERE
    decision = caller.decisions.files.rename(
        source.path, target.path, replaces=replaces, exchange=exchange
    )
    _record(caller, "rename", f"{source.path}\0{target.path}", decision, note)


def _truncate(caller: Caller, arguments: tuple[int, ...]) -> None:
    place = locate(caller, n.AT_FDCWD, read_path(caller, arguments[0]), follow=True)
    if place.mode is None or place.mode == 0 or place.is_kind(stat.S_IFREG):
        _tell(caller, "truncate", place, _NOTHING_THERE if place.mode == 0 else None)


def _ftruncate(caller: Caller, arguments: tuple[int, ...]) -> None:
    place = opened(caller, arguments[0])
    if place.is_kind(stat.S_IFREG):
        _tell(caller, "truncate", place)


def _creat(caller: Caller, arguments: tuple[int, ...]) -> None:
    flags = os.O_WRONLY | n.O_CREAT | n.O_TRUNC
    _opened(caller, n.AT_FDCWD, arguments[0], flags)


def _open(caller: Caller, arguments: tuple[int, ...]) -> None:
    _opened(caller, n.AT_FDCWD, arguments[0], arguments[1] & 0xFFFFFFFF)


def _openat(caller: Caller, arguments: tuple[int, ...]) -> None:
    _opened(caller, arguments[0], arguments[1], arguments[2] & 0xFFFFFFFF)


def _openat2(caller: Caller, arguments: tuple[int, ...]) -> None:
    if arguments[3] < n.OPEN_HOW:
        raise AnswerError(EINVAL)
    flags, _mode, resolve = _HOW.unpack(caller.read(arguments[2], n.OPEN_HOW))
    in_root = bool(resolve & n.RESOLVE_IN_ROOT)
    _opened(caller, arguments[0], arguments[1], flags, in_root=in_root)


def _opened(caller: Caller, folder: int, path: int, flags: int, *, in_root: bool = False) -> None:
    """Tell an open that writes, makes or cuts a file. Devices of characters and pipes are no files."""
    makes, cuts = flags & n.O_CREAT, flags & n.O_TRUNC
    if flags & n.O_PATH or not (flags & n.O_ACCMODE or makes or cuts):
        return
    new = bool(makes and flags & n.O_EXCL)
    follow = not flags & _NO_FOLLOW and not new
    place = locate(caller, folder, read_path(caller, path), follow=follow, in_root=in_root)
    if place.path is None or place.is_kind(stat.S_IFCHR, stat.S_IFIFO):
        return
    there = place.mode != 0
    if cuts and not new and (place.mode is None or place.is_kind(stat.S_IFREG)):
        _tell(caller, "truncate", place)
    elif cuts and not there and not makes:
        _tell(caller, "truncate", place, _NOTHING_THERE)
    elif flags & n.O_ACCMODE or cuts or not there or new:
        note = _THERE if new and place.mode else None
        _tell(caller, "write", place, note if there or makes else _NOTHING_THERE)


def _by_handle(_caller: Caller, _arguments: tuple[int, ...]) -> None:
    raise FaultError(Code.UNSUPPORTED_CALL, "a file opened for writing by its handle has no path")


def _made(folder: int | None, path: int) -> FileHandler:
    """Return the handler of a call that makes a name: *folder* and *path* are places of arguments."""

    def handle(caller: Caller, arguments: tuple[int, ...]) -> None:
        base = n.AT_FDCWD if folder is None else arguments[folder]
        place = locate(caller, base, read_path(caller, arguments[path]), follow=False)
        _tell(caller, "write", place, _THERE if place.mode else None)

    return handle


def _tell(caller: Caller, operation: str, place: Place, note: str | None = None) -> None:
    if place.path is not None:
        decision = caller.decisions.files.single(operation, place.path)
        _record(caller, operation, place.path, decision, note)


def _record(
    caller: Caller, operation: str, where: str, decision: Decision, note: str | None
) -> None:
    """Tell an attempt that some rule is about, and every one of the known call before the command."""
    caller.check()  # what was read and looked up was the caller's
    if decision.asserting or decision.observing or caller.journal.canary_pid is not None:
        what = attempt(operation, ("file", where, None), decision, refused=False, note=note)
        caller.journal.attempt(caller.who(), what)


FILE_CALLS: dict[str, FileHandler] = {
    "unlink": _unlink,
    "unlinkat": _unlinkat,
    "rmdir": _unlink,
    "rename": _rename,
    "renameat": _renameat,
    "renameat2": _renameat2,
    "truncate": _truncate,
    "ftruncate": _ftruncate,
    "creat": _creat,
    "open": _open,
    "openat": _openat,
    "openat2": _openat2,
    "open_by_handle_at": _by_handle,
    "mkdir": _made(None, 0),
    "mkdirat": _made(0, 1),
    "mknod": _made(None, 0),
    "mknodat": _made(0, 1),
    "symlink": _made(None, 1),
    "symlinkat": _made(1, 2),
    "link": _made(None, 1),
    "linkat": _made(2, 3),
}
"""Call name → what tells it; the kernel goes on with the call by itself."""
