"""Where a thread's paths lead: its folders and root as text, links, and what lies at a path."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_size_t

from flowproof.run import numbers as n
from flowproof.run.kernel.procfs import ProcfsCalls

__all__ = ["FileCalls"]

_STATFS = 256  # no less than sizeof(struct statfs), 120 on both architectures; f_type comes first


class FileCalls(ProcfsCalls):
    """What is asked about files that another thread names. Paths are text as this process sees them."""

    _mounts: str | None = None

    def same_mounts(self, tid: int) -> bool:
        """Tell whether a thread is in this process's mount namespace: else its paths are other files."""
        if self._mounts is None:
            self._mounts = os.readlink("/proc/self/ns/mnt")
        return os.readlink(f"/proc/{tid}/ns/mnt") == self._mounts

    def same_users(self, tid: int) -> bool:
        """Tell whether a thread is in this user namespace: in another it may be let in where we are not."""
        return os.readlink(f"/proc/{tid}/ns/user") == os.readlink("/proc/self/ns/user")

    def root_of(self, tid: int) -> str:
        """Return the root of a thread's absolute paths."""
        return os.readlink(f"/proc/{tid}/root")

    def folder_of(self, tid: int, descriptor: int | None) -> str:
        """Return the folder that a thread has open as *descriptor*, None: the one that it is in."""
        if descriptor is None:
            return os.readlink(f"/proc/{tid}/cwd")
        return os.readlink(f"/proc/{tid}/fd/{descriptor}")

    def open_file(self, tid: int, descriptor: int) -> os.stat_result:
        """Return the status of the file that a thread has open as *descriptor*."""
        return os.stat(f"/proc/{tid}/fd/{descriptor}")

    def located(self, path: str) -> str:
        """Return *path* with its links resolved. ELOOP: one of them is a link of /proc to an open file."""
        how = (ctypes.c_uint64 * 3)(n.O_PATH | n.O_CLOEXEC, 0, n.RESOLVE_NO_MAGICLINKS)
        text = os.fsencode(path)
        got = self._syscall(self._numbers["openat2"], n.AT_FDCWD, text, how, c_size_t(24))
        if got < 0:
            raise self._error("openat2")
        try:
            return os.readlink(f"/proc/self/fd/{got}")
        finally:
            os.close(got)

    def link_of(self, path: str) -> str:
        """Return what a symbolic link holds. EINVAL: it is none."""
        return os.readlink(path)

    def entry(self, path: str) -> os.stat_result:
        """Return the status of what lies at *path*, a link itself where it is one."""
        return os.lstat(path)

    def target(self, path: str) -> os.stat_result:
        """Return the status of what a link of /proc leads to."""
        return os.stat(path)

    def is_procfs(self, folder: str) -> bool:
        """Tell whether a folder is on a proc file system (statfs(2))."""
        buffer = ctypes.create_string_buffer(_STATFS)
        if self._c.statfs(os.fsencode(folder), buffer) < 0:
            raise self._error("statfs")
        return int.from_bytes(buffer.raw[:8], "little") == n.PROC_SUPER_MAGIC
