"""What /proc says of threads and processes: their state, children, descriptors and folders."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_size_t

from flowproof.run import numbers as n
from flowproof.run.kernel.library import Library

__all__ = ["ProcfsCalls", "ThreadStatus"]


class ThreadStatus:
    """What ``/proc/<tid>/status`` says of a thread: its process, signals (bit masks) and identity.

    `ValueError` where a line is missing. Ten of some fifty lines are looked for: taking all of them apart
    costs four times as much, and the watchdog reads this for every call that sleeps.
    """

    __slots__ = ("blocked", "caught", "gids", "groups", "ignored", "shared", "tgid", "thread",
                 "threads", "uids")  # fmt: skip

    def __init__(self, text: str) -> None:
        text = "\n" + text  # so that each line begins behind one
        self.tgid = int(_line(text, "Tgid"))
        self.threads = int(_line(text, "Threads"))
        self.uids = tuple(map(int, _line(text, "Uid").split()))
        self.gids = tuple(map(int, _line(text, "Gid").split()))
        self.groups = tuple(map(int, _line(text, "Groups").split()))
        self.thread = int(_line(text, "SigPnd"), 16)
        self.shared = int(_line(text, "ShdPnd"), 16)
        self.blocked = int(_line(text, "SigBlk"), 16)
        self.ignored = int(_line(text, "SigIgn"), 16)
        self.caught = int(_line(text, "SigCgt"), 16)


def _line(text: str, name: str) -> str:
    """Return what stands behind ``<name>:`` at the start of a line."""
    key = f"\n{name}:"
    start = text.index(key) + len(key)
    return text[start : text.index("\n", start)]


class ProcfsCalls(Library):
    """What is read of another thread or process through /proc."""

    def status(self, tid: int) -> ThreadStatus:
        """Return what /proc says of a thread."""
        with open(f"/proc/{tid}/status", "rb") as file:
            return ThreadStatus(file.read().decode("ascii", "replace"))

    def executable(self, tid: int) -> str:
        """Return the path of the program that a thread runs."""
        return os.readlink(f"/proc/{tid}/exe")

    def children(self, pid: int) -> tuple[int, ...]:
        """Return the process ids of a process's children, those of each of its threads."""
        found: list[int] = []
        folder = f"/proc/{pid}/task"
        for tid in os.listdir(folder):
            try:
                with open(f"{folder}/{tid}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
            except (FileNotFoundError, ProcessLookupError):
                if not os.path.exists("/proc/thread-self/children"):  # no CONFIG_PROC_CHILDREN
                    return self._children_by_parent(pid)
        return tuple(found)

    @staticmethod
    def _children_by_parent(pid: int) -> tuple[int, ...]:
        """Return the children of a process by looking at every process there is."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(
                    f"/proc/{name}/stat", "rb"
                ) as file:  # a decoder would be loaded from disk
                    parent = file.read().rpartition(b")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == pid:
                found.append(int(name))
        return tuple(found)

    def descriptors(self, pid: int) -> dict[str, str]:
        """Return the descriptors of a process: number → what it is, such as ``socket:[4711]``."""
        folder = f"/proc/{pid}/fd"
        found = {}
        for name in os.listdir(folder):
            try:
                found[name] = os.readlink(f"{folder}/{name}")
            except FileNotFoundError:  # closed meanwhile
                continue
        return found

    def descriptor(self, pid: int, name: str) -> str:
        """Return what one descriptor of a process is."""
        return os.readlink(f"/proc/{pid}/fd/{name}")

    def ended(self, pid: int) -> bool:
        """Tell whether a process has ended, reaped or not: a zombie holds nothing any more."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # a decoder would be loaded from disk
                return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
        except (FileNotFoundError, ProcessLookupError):
            return True

    def folders(self, tid: int) -> tuple[int, int | None, bytes]:
        """Return where a thread's paths begin: O_PATH descriptors of its folder and of its root.

        The root is None where it is this process's own; else the third is the folder as text below it.
        """
        folder = os.open(f"/proc/{tid}/cwd", n.O_PATH | n.O_CLOEXEC)
        try:
            same = os.readlink(f"/proc/{tid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
            if same and os.path.samestat(os.stat(f"/proc/{tid}/root"), os.stat("/")):
                return folder, None, b""
            above = os.fsencode(os.readlink(f"/proc/{tid}/root")).rstrip(b"/")
            text = os.fsencode(os.readlink(f"/proc/{tid}/cwd"))
            root = os.open(f"/proc/{tid}/root", n.O_PATH | n.O_CLOEXEC)
        except OSError:
            os.close(folder)
            raise
        return folder, root, text.removeprefix(above)

    def same_network(self, tid: int) -> bool:
        """Tell whether a thread is in this process's network namespace."""
        return os.readlink(f"/proc/{tid}/ns/net") == os.readlink("/proc/self/ns/net")

    def unix_names(self, tid: int) -> str:
        """Return ``/proc/<tid>/net/unix``, the unix sockets of a thread's network namespace."""
        with open(f"/proc/{tid}/net/unix", encoding="utf-8", errors="backslashreplace") as file:
            return file.read()

    def open_path(
        self, path: str | bytes, folder: int | None = None, root: int | None = None
    ) -> int:
        """Return an O_PATH descriptor of *path*, symbolic links followed.

        A relative path begins at *folder*. With *root*, that is the root of every absolute path and link.
        """
        if root is None:
            return os.open(path, n.O_PATH | n.O_CLOEXEC, dir_fd=folder)
        how = (ctypes.c_uint64 * 3)(n.O_PATH | n.O_CLOEXEC, 0, n.RESOLVE_IN_ROOT)
        text = os.fsencode(path)
        got = self._c.syscall(self._numbers["openat2"], root, text, how, c_size_t(24))
        if got < 0:
            raise self._error("openat2")
        return int(got)
