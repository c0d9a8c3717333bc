"""The C library as the parts of `Kernel` call it: raw calls, errno, and a thread's buffers."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from ctypes import addressof, c_size_t, c_void_p

from flowproof.run import numbers as n

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SCRATCH", "Library"]

SCRATCH = 4096
"""Bytes of a thread's buffer: what a small read of another process's memory is read into."""


class _Local(threading.local):
    """What each thread has one of."""

    def __init__(self) -> None:
        self.scratch = _Scratch()


class _Scratch:
    """A buffer and two iovecs of one thread, so that a small read allocates nothing."""

    __slots__ = ("data", "length", "length_pointer", "local", "local_pointer", "option",
                 "option_pointer", "pin", "remote", "remote_pin", "remote_pointer", "view")  # fmt: skip

    def __init__(self) -> None:
        self.data = bytearray(SCRATCH)
        self.view = memoryview(self.data)
        self.pin = (ctypes.c_char * SCRATCH).from_buffer(self.data)
        self.local = (c_size_t * 2)(addressof(self.pin), SCRATCH)
        self.remote = bytearray(16)
        self.remote_pin = (ctypes.c_char * 16).from_buffer(self.remote)
        self.local_pointer = c_void_p(addressof(self.local))
        self.remote_pointer = c_void_p(addressof(self.remote_pin))
        self.option = (ctypes.c_int * 1)()
        self.length = (ctypes.c_uint * 1)(4)
        self.option_pointer = c_void_p(addressof(self.option))
        self.length_pointer = c_void_p(addressof(self.length))


class Library:
    """What every part of `Kernel` has: the functions of the C library and this machine's numbers."""

    def __init__(self) -> None:
        self._numbers = n.SYSCALLS.get(platform.machine(), n.SYSCALLS["x86_64"])
        if platform.system() == "Linux":
            self._load()

    def _load(self) -> None:
        """Fetch the functions of the C library. No argtypes: prepared pointers are a third cheaper."""
        self._c: Any = ctypes.CDLL(None, use_errno=True)
        self._connect = self._c.connect
        self._syscall = self._c.syscall
        self._readv = self._c.process_vm_readv
        self._getsockopt = self._c.getsockopt
        for function in (self._readv, self._c.process_vm_writev, self._c.sendto, self._c.sendmsg):
            function.restype = ctypes.c_ssize_t
        self._syscall.restype = ctypes.c_long
        self._local = _Local()

    @staticmethod
    def _error(call: str) -> OSError:
        code = ctypes.get_errno()
        return OSError(code, f"{call}: {os.strerror(code)}")

    def _prctl(self, option: int, value: int) -> None:
        zero = ctypes.c_ulong(0)
        if self._c.prctl(option, ctypes.c_ulong(value), zero, zero, zero) < 0:
            raise self._error("prctl")

    def close(self, descriptor: int) -> None:
        """Close a descriptor of this process."""
        os.close(descriptor)
