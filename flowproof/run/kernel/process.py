"""The calls about this process: its rights, its descriptors, the signals it sends, its identity."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_size_t

from flowproof.run import numbers as n
from flowproof.run.kernel.library import Library

try:
    import resource
except ImportError:  # not a Unix: `Kernel` can be named there, and not used
    resource = None  # type: ignore[assignment]  # the platform has none

__all__ = ["ProcessCalls"]


class ProcessCalls(Library):
    """The calls that change or signal processes as a whole."""

    def set_no_new_privs(self) -> None:
        """Give up gaining privileges by exec, for good: an unprivileged filter needs it."""
        self._prctl(n.PR_SET_NO_NEW_PRIVS, 1)

    def set_dumpable(self, dumpable: bool) -> None:
        """Let others of the same user trace this process and read its memory, or not."""
        self._prctl(n.PR_SET_DUMPABLE, int(dumpable))

    def set_subreaper(self, on: bool = True) -> None:
        """Become the parent of every orphan below this process, or no longer."""
        self._prctl(n.PR_SET_CHILD_SUBREAPER, int(on))

    def close_range(self, first: int, last: int = 0xFFFFFFFF, flags: int = 0) -> None:
        """Close the descriptors *first* to *last*, or mark them CLOSE_RANGE_CLOEXEC."""
        arguments = (ctypes.c_uint(first), ctypes.c_uint(last), flags)
        if self._c.syscall(self._numbers["close_range"], *arguments) < 0:
            raise self._error("close_range")

    def raise_descriptor_limit(self) -> None:
        """Let this process hold as many descriptors as it may."""
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def kill(self, pid: int, number: int) -> None:
        """Send a signal to a process."""
        os.kill(pid, number)

    def tgkill(self, tgid: int, tid: int, number: int) -> None:
        """Send a signal to one thread of a process."""
        if self._c.syscall(self._numbers["tgkill"], tgid, tid, number) < 0:
            raise self._error("tgkill")

    def assume(self, uid: int, gid: int, groups: tuple[int, ...]) -> None:
        """Take on another user's identity, for the calling thread only and for good (needs root)."""
        array = (ctypes.c_uint * max(len(groups), 1))(*groups)
        c, ids = self._c, self._numbers
        user, group = ctypes.c_uint(uid), ctypes.c_uint(gid)
        if (
            c.syscall(ids["setgroups"], c_size_t(len(groups)), array) < 0
            or c.syscall(ids["setresgid"], group, group, group) < 0
            or c.syscall(ids["setresuid"], user, user, user) < 0
        ):
            raise self._error("setresuid")
