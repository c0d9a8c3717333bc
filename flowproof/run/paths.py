"""Where a path of the calling thread leads: what it names, as text, and what lies there.

The kernel will read the path again, and may find another one then: what is found here is what was attempted.
Where this process cannot tell what the thread would find, that is a fault; where nothing can come of the
call, the rest of the path is taken as it is written.
"""

from __future__ import annotations

import os
import re
import stat
from errno import (
    EACCES,
    EBADF,
    EINVAL,
    ELOOP,
    ENAMETOOLONG,
    ENOENT,
    ENOTDIR,
)

from flowproof.record.codes import Code
from flowproof.run.caller import AnswerError, FaultError
from flowproof.run.numbers import AT_FDCWD, PATH_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller

__all__ = ["Place", "locate", "opened", "read_path"]

_PAGE = 4096
_LINKS = 40  # path_resolution(7): more are ELOOP
_DELETED = " (deleted)"  # what the kernel puts behind the name of what has none any more
_NOTHING = (ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP)
_MAGIC = re.compile(r"/[0-9]+/(?:task/[0-9]+/)?(?:(?:fd|map_files|ns)/[^/]+|cwd|root|exe)\Z")


class Place:
    """Where a path leads. *mode* is 0 where nothing lies there, and None where that could not be told.

    *path* is None for what has no path: a pipe, a socket, a file without a name.
    """

    __slots__ = ("mode", "path")

    def __init__(self, path: str | None, mode: int | None) -> None:
        self.path = path
        self.mode = mode

    def is_kind(self, *kinds: int) -> bool:
        """Tell whether what lies there is of one of *kinds*, as `stat.S_IFMT` has them."""
        return self.mode is not None and stat.S_IFMT(self.mode) in kinds


def read_path(caller: Caller, address: int) -> bytes:
    """Return the path at *address* of the caller's memory; one too long to be one is answered as bare."""
    found = b""
    while len(found) < PATH_MAX:
        chunk = caller.read(address, min(_PAGE - address % _PAGE, PATH_MAX - len(found)))
        end = chunk.find(b"\0")
        if end >= 0:
            return found + chunk[:end]
        found += chunk
        address += len(chunk)
    raise AnswerError(ENAMETOOLONG)


def opened(caller: Caller, descriptor: int) -> Place:
    """Return the place of a file that the caller has open."""
    number = _number(descriptor)
    _check_view(caller)
    text = _folder(caller, number)
    try:
        status = caller.kernel.open_file(caller.tid, number)
    except OSError as error:
        raise caller.fault(Code.CHILD_PROCESS, "/proc/<tid>/fd", error) from error
    if not text.startswith("/") or (text.endswith(_DELETED) and not status.st_nlink):
        return Place(None, status.st_mode)
    return Place(_named(caller, text)[0], status.st_mode)


def locate(
    caller: Caller, descriptor: int, raw: bytes, *, follow: bool, in_root: bool = False
) -> Place:
    """Return the place that the caller names by *raw*, from the folder *descriptor* on (AT_FDCWD: its own).

    *follow*: a link at its end is followed. *in_root*: *descriptor* is the root of the path as well.
    """
    if not raw:
        raise AnswerError(ENOENT)
    path = os.fsdecode(raw)
    _check_view(caller)
    if not follow and "/" not in path and path not in (".", ".."):
        found = _entry(caller, descriptor, path)
        if found is not None:
            return found
    absolute = path.startswith("/")
    top = "/"
    if "/" in path or follow:
        top = _root(caller)
    start = top
    if not absolute or in_root:
        start = _folder(caller, None if _signed(descriptor) == AT_FDCWD else _number(descriptor))
        if not start.startswith("/"):
            raise AnswerError(ENOTDIR)
        start, gone = _named(caller, start)
        if gone:  # nothing is found from a folder that was removed
            return Place(os.path.normpath(f"{start}/{path}"), 0)
    if in_root:
        top = start
    walk = _Walk(caller, top)
    if top == "/":
        found = walk.quick(start, path, follow=follow)
        if found is not None:
            return found
    return walk.slow(top if absolute else start, path, follow=follow)


def _entry(caller: Caller, descriptor: int, name: str) -> Place | None:
    """Return the place of an entry of a folder, the most frequent of all; None: it takes more to tell."""
    folder = _folder(caller, None if _signed(descriptor) == AT_FDCWD else _number(descriptor))
    whole = f"{folder}/{name}"
    if whole[0] != "/" or whole[1] == "/" or folder.endswith(_DELETED) or _in_procfs(whole):
        return None
    try:
        return Place(whole, caller.kernel.entry(whole).st_mode)
    except FileNotFoundError:
        return Place(whole, 0)
    except OSError:
        return None


def _signed(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number > 0x7FFFFFFF else number


def _number(descriptor: int) -> int:
    number = _signed(descriptor)
    if number < 0:
        raise AnswerError(EBADF)
    return number


def _check_view(caller: Caller) -> None:
    """Refuse to guess where the caller sees other file systems than this process does."""
    try:
        same = caller.kernel.same_mounts(caller.tid)
    except OSError as error:
        raise caller.fault(Code.CHILD_PROCESS, "/proc/<tid>/ns/mnt", error) from error
    if not same:
        raise FaultError(Code.PATH, "the program is in a mount namespace of its own")


def _root(caller: Caller) -> str:
    try:
        return caller.kernel.root_of(caller.tid)
    except OSError as error:
        raise caller.fault(Code.CHILD_PROCESS, "/proc/<tid>/root", error) from error


def _folder(caller: Caller, descriptor: int | None) -> str:
    try:
        return caller.kernel.folder_of(caller.tid, descriptor)
    except OSError as error:
        if error.errno == ENOENT and descriptor is not None:
            caller.check()
            raise AnswerError(EBADF) from error
        where = "cwd" if descriptor is None else "fd"
        raise caller.fault(Code.CHILD_PROCESS, f"/proc/<tid>/{where}", error) from error


def _named(caller: Caller, text: str) -> tuple[str, bool]:
    """Return the path that a link of /proc reads as, and whether what it led to was removed."""
    if not text.endswith(_DELETED):
        return text, False
    try:
        caller.kernel.entry(text)
    except OSError:
        return text.removesuffix(_DELETED), True
    return text, False  # it is called so


class _Walk:
    """The resolution of paths of one caller whose root is *top*."""

    def __init__(self, caller: Caller, top: str) -> None:
        self._caller = caller
        self._kernel = caller.kernel
        self._top = top

    def quick(self, start: str, path: str, *, follow: bool) -> Place | None:
        """Return the place by the kernel's own resolution, or None where that might not be the caller's."""
        stripped = path.rstrip("/")
        above, _, name = stripped.rpartition("/")
        if name in ("", ".", ".."):
            return None
        try:
            folder = start
            if above or path.startswith("/"):
                folder = self._kernel.located(os.path.join(start, above or "/"))
            whole = f"{folder.rstrip('/')}/{name}"
            if _in_procfs(whole):
                return None
            mode = self._mode(whole)
            if mode and stat.S_ISLNK(mode) and (follow or stripped != path):
                whole = self._kernel.located(whole)
                if _in_procfs(whole):
                    return None
                mode = self._mode(whole)
        except OSError:  # step by step it shows where, and whether that matters
            return None
        return Place(whole, mode)

    def slow(self, start: str, path: str, *, follow: bool) -> Place:
        """Return the place step by step, as path_resolution(7) has it."""
        current, links = start, 0
        waiting = path.split("/")[::-1]
        follow = follow or path.endswith("/")
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                current = current if current == self._top else os.path.dirname(current)
                continue
            entry = f"{current.rstrip('/')}/{part}"
            last = not any(part not in ("", ".") for part in waiting)
            held = None if last and not follow else self._link(current, part, entry)
            if held is None:
                current = entry
                continue
            links += 1
            if links > _LINKS:
                raise AnswerError(ELOOP)
            if self._is_magic(entry):
                if not held.startswith("/"):
                    return Place(None, self._mode(entry, follow=True))
                current, gone = _named(self._caller, held)
                if gone and last and self._is_unnamed(entry):
                    return Place(None, self._mode(entry, follow=True))
            else:
                current = self._top if held.startswith("/") else current
                waiting += held.split("/")[::-1]
        return Place(current, self._mode(current))

    def _link(self, folder: str, part: str, entry: str) -> str | None:
        """Return what the link at *entry* holds for the caller, None where there is no link."""
        try:
            if part in ("self", "thread-self") and self._is_proc_root(folder):
                process = self._kernel.status(self._caller.tid).tgid
                return str(process) if part == "self" else f"{process}/task/{self._caller.tid}"
            return self._kernel.link_of(entry)
        except OSError as error:
            if error.errno in (EINVAL, *_NOTHING):
                return None
            self._refused(error)
            return None  # it cannot get any further there than this process does
        except (KeyError, ValueError) as error:
            self._caller.check()
            raise FaultError(Code.CHILD_PROCESS, "/proc/<tid>/status cannot be read") from error

    def _mode(self, path: str, *, follow: bool = False) -> int | None:
        """Return the mode of what lies at *path*: 0 for nothing, None where this process may not look."""
        try:
            return (self._kernel.target(path) if follow else self._kernel.entry(path)).st_mode
        except OSError as error:
            if error.errno in _NOTHING:
                return 0
            self._refused(error)
            return None

    def _refused(self, error: OSError) -> None:
        """Raise a fault where the caller might get on: it may do no more than this process does, but for
        one in a user namespace of its own.
        """
        caller = self._caller
        try:
            alike = error.errno == EACCES and self._kernel.same_users(caller.tid)
        except OSError as failure:
            raise caller.fault(Code.CHILD_PROCESS, "/proc/<tid>/ns/user", failure) from failure
        if not alike:
            raise caller.fault(Code.PATH, "a folder on the way", error) from error

    def _is_proc_root(self, folder: str) -> bool:
        return self._kernel.entry(folder).st_ino == 1 and self._in_procfs(folder)

    def _is_magic(self, entry: str) -> bool:
        return _MAGIC.search(entry) is not None and self._in_procfs(os.path.dirname(entry))

    def _in_procfs(self, folder: str) -> bool:
        """Tell whether *folder* is one of a proc file system, wherever that is mounted."""
        try:
            return self._kernel.is_procfs(folder)
        except OSError as error:
            if error.errno in (EACCES, *_NOTHING):  # what cannot be gone into is none
                return False
            raise self._caller.fault(Code.PATH, "statfs", error) from error

    def _is_unnamed(self, entry: str) -> bool:
        """Tell whether the file that a link of /proc leads to has no name left."""
        try:
            return self._kernel.target(entry).st_nlink == 0
        except OSError as error:
            raise self._caller.fault(Code.PATH, "stat", error) from error


def _in_procfs(path: str) -> bool:
    """Tell whether *path* may be one of a proc file system, in which a name means another thing to each."""
    return path.startswith("/proc/") or f"/{os.getpid()}/" in path
