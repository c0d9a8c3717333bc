"""The calls on the process that made a call: its descriptors and its memory."""

from __future__ import annotations

import ctypes
import os
from ctypes import addressof, c_size_t
from errno import EINVAL, ENOENT, EPERM, ESRCH
from struct import Struct

from flowproof.run import numbers as n
from flowproof.run.kernel.library import SCRATCH
from flowproof.run.kernel.procfs import ProcfsCalls

__all__ = ["TargetCalls"]

_PAIR = Struct("=QQ")


class TargetCalls(ProcfsCalls):
    """What is taken from, and written into, the process that made a call."""

    def __init__(self) -> None:
        super().__init__()
        self._getfd_number = self._numbers["pidfd_getfd"]
        self._threads = True  # PIDFD_THREAD is known

    def pidfd_open(self, tid: int) -> int:
        """Return a pidfd of a thread.

        Where PIDFD_THREAD is not known (Linux < 6.9) it is the leader's, once kcmp(2) has said that both
        share their descriptors; EPERM otherwise, since the leader's would be the wrong ones.
        """
        number, call = self._numbers["pidfd_open"], self._c.syscall
        if self._threads:
            found = call(number, tid, n.PIDFD_THREAD)
            if found >= 0:
                return int(found)
            if ctypes.get_errno() != EINVAL:
                raise self._error("pidfd_open")
            self._threads = False
        found = call(number, tid, 0)
        if found >= 0:
            return int(found)
        if ctypes.get_errno() not in (EINVAL, ENOENT):
            raise self._error("pidfd_open")
        leader = self.status(tid).tgid
        if leader == tid:
            raise OSError(ESRCH, "pidfd_open: no such thread")
        zero = ctypes.c_ulong(0)
        if call(self._numbers["kcmp"], tid, leader, n.KCMP_FILES, zero, zero) != 0:
            raise OSError(EPERM, "pidfd_open: a thread with descriptors of its own needs Linux 6.9")
        found = call(number, leader, 0)
        if found < 0:
            raise self._error("pidfd_open")
        return int(found)

    def thread_handles(self) -> bool:
        """Tell whether a thread has a handle of its own (PIDFD_THREAD, Linux 6.9)."""
        self.close(self.pidfd_open(os.getpid()))
        return self._threads

    def pidfd_getfd(self, pidfd: int, descriptor: int) -> int:
        """Return a duplicate (close-on-exec) of another process's descriptor. EBADF: it has none."""
        found = self._syscall(self._getfd_number, pidfd, descriptor, 0)
        if found < 0:
            raise self._error("pidfd_getfd")
        return found  # type: ignore[no-any-return]  # a C long

    def read_memory(self, tid: int, address: int, length: int) -> bytes:
        """Return up to *length* bytes of another process; fewer where its mapping ends."""
        own = self._local.scratch
        if length <= SCRATCH:
            _PAIR.pack_into(own.remote, 0, address, length)
            got = self._readv(tid, own.local_pointer, 1, own.remote_pointer, 1, 0)
            if got < 0:
                raise self._error("process_vm_readv")
            return bytes(own.view[:got])
        buffer = bytearray(length)
        pin = (ctypes.c_char * length).from_buffer(buffer)
        local = (c_size_t * 2)(addressof(pin), length)
        remote = (c_size_t * 2)(address, length)
        got = self._readv(tid, local, 1, remote, 1, 0)
        if got < 0:
            raise self._error("process_vm_readv")
        del pin
        return bytes(memoryview(buffer)[:got])

    def gather_memory(self, tid: int, vectors: list[tuple[int, int]]) -> bytes:
        """Return what up to 1024 ranges (address, length) of another process hold, one after the other.

        Fewer bytes where a range is not mapped to its end; EFAULT where the first is not mapped at all.
        """
        total = sum(length for _address, length in vectors)
        buffer = bytearray(total)
        pin = (ctypes.c_char * total).from_buffer(buffer) if total else None
        if pin is None:
            return b""
        local = (c_size_t * 2)(addressof(pin), total)
        flat = [number for vector in vectors for number in vector]
        remote = (c_size_t * len(flat))(*flat)
        got = self._readv(tid, local, 1, remote, len(vectors), 0)
        if got < 0:
            raise self._error("process_vm_readv")
        del pin
        return bytes(memoryview(buffer)[:got])

    def write_memory(self, tid: int, address: int, data: bytes) -> int:
        """Write into another process; return how many bytes were written."""
        buffer = ctypes.create_string_buffer(data, len(data))
        local = (c_size_t * 2)(addressof(buffer), len(data))
        remote = (c_size_t * 2)(address, len(data))
        got = self._c.process_vm_writev(tid, local, 1, remote, 1, 0)
        if got < 0:
            raise self._error("process_vm_writev")
        return int(got)
