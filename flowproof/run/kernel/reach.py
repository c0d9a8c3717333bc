"""A reader's reach: the calls of nearly every notification as bare C functions, nothing in between.

A frame of Python costs a microsecond where the processor comes from another process, so that a reader that
takes eight calls through `Kernel` spends a fifth of a supervised connect on frames. `Reach` has the same
calls without: they give what C gives, -1 with ctypes' errno, and take their arguments as laid out here.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import addressof, c_size_t, c_void_p
from errno import EIO
from struct import Struct

from flowproof.run import numbers as n

try:
    import fcntl
except ImportError:  # not a Unix: `Kernel` can be named there, and not used
    fcntl = None  # type: ignore[assignment]  # the platform has none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flowproof.run.kernel import Kernel

__all__ = ["ADDRESS", "Reach", "StagedReach"]

ADDRESS = 28
"""Bytes that an address has at most to be read here: struct sockaddr_in6."""
_VECTOR = Struct("=QQ")  # struct iovec


class Reach:
    """The bare calls, and the buffers that they fill; one thread's.

    ``ioctl(listener, request, buffer)`` raises `OSError`. ``read(tid, into, 1, of, 1, 0)``: process_vm_readv,
    from the iovec in `remote` into `address`. ``fetch(getfd, pidfd, descriptor, 0)``: pidfd_getfd.
    ``option(descriptor, level, option, value, length)``: getsockopt, into `found`. ``connect(descriptor,
    address, length)``. ``close(descriptor)`` raises `OSError`.
    """

    __slots__ = ("_keep", "address", "close", "connect", "fetch", "found", "getfd", "into", "ioctl",
                 "length", "of", "option", "read", "remote", "value")  # fmt: skip

    def __init__(self, getfd: int) -> None:
        self.getfd = getfd
        self.address = bytearray(ADDRESS)
        self.remote = bytearray(_VECTOR.size)
        self.found = (ctypes.c_int * 1)()
        length = (ctypes.c_uint * 1)(4)
        address = (ctypes.c_char * ADDRESS).from_buffer(self.address)
        remote = (ctypes.c_char * _VECTOR.size).from_buffer(self.remote)
        local = (c_size_t * 2)(addressof(address), ADDRESS)
        self._keep = (address, remote, local, length)  # the pointers keep nothing alive
        self.into = c_void_p(addressof(local))
        self.of = c_void_p(addressof(remote))
        self.value = c_void_p(addressof(self.found))
        self.length = c_void_p(addressof(length))

    def bind(self, library: Any) -> Reach:  # noqa: ANN401  ctypes.CDLL
        """Take the functions of the C library."""
        self.ioctl: Any = fcntl.ioctl
        self.read: Any = library.process_vm_readv
        self.fetch: Any = library.syscall
        self.option: Any = library.getsockopt
        self.connect: Any = library.connect
        self.close: Any = os.close
        return self


class StagedReach(Reach):
    """The same calls by the methods of a kernel that is not quite `Kernel`: what is staged there counts."""

    __slots__ = ("_kernel",)

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(0)
        self._kernel = kernel
        self.ioctl = self._ioctl
        self.read = self._read
        self.fetch = self._fetch
        self.option = self._option
        self.connect = self._connect
        self.close = kernel.close

    def _ioctl(self, listener: int, request: int, buffer: bytearray) -> None:
        kernel = self._kernel
        if request == n.SECCOMP_IOCTL_NOTIF_RECV:
            kernel.receive(listener, buffer)
        elif request == n.SECCOMP_IOCTL_NOTIF_SEND:
            kernel.send(listener, buffer)
        else:
            assert request == n.SECCOMP_IOCTL_NOTIF_ID_VALID
            kernel.id_valid(listener, buffer)

    def _read(self, tid: int, *_vectors: object) -> int:
        start, length = _VECTOR.unpack(self.remote)
        try:
            data = self._kernel.read_memory(tid, start, length)
        except OSError as error:
            return _failed(error)
        self.address[: len(data)] = data
        return len(data)

    def _fetch(self, _getfd: int, pidfd: int, descriptor: int, _flags: int) -> int:
        try:
            return self._kernel.pidfd_getfd(pidfd, descriptor)
        except OSError as error:
            return _failed(error)

    def _option(self, descriptor: int, level: int, option: int, *_into: object) -> int:
        try:
            self.found[0] = self._kernel.getsockopt(descriptor, level, option)
        except OSError as error:
            return _failed(error)
        return 0

    def _connect(self, descriptor: int, address: bytes, _length: int) -> int:
        try:
            self._kernel.connect(descriptor, address)
        except OSError as error:
            return _failed(error)
        return 0


def _failed(error: OSError) -> int:
    """Return what C returns at an error, and leave its errno where C leaves it."""
    ctypes.set_errno(error.errno or EIO)
    return -1
