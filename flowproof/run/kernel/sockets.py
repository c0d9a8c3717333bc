"""The calls on sockets, with raw addresses as a caller gave them."""

from __future__ import annotations

import ctypes
import os
import socket
from ctypes import addressof, c_size_t, c_void_p

from flowproof.run import numbers as n
from flowproof.run.kernel.library import Library

try:
    import fcntl
except ImportError:  # not a Unix: `Kernel` can be named there, and not used
    fcntl = None  # type: ignore[assignment]  # the platform has none

__all__ = ["SocketCalls"]


class SocketCalls(Library):
    """What is done with a duplicate of a caller's socket."""

    def connect(self, descriptor: int, address: bytes) -> None:
        """Connect a socket to a raw address."""
        if self._connect(descriptor, address, len(address)) < 0:
            raise self._error("connect")

    def listen(self, descriptor: int, backlog: int) -> None:
        """Let a socket take connections."""
        if self._c.listen(descriptor, backlog) < 0:
            raise self._error("listen")

    def sendto(self, descriptor: int, data: bytes, flags: int, address: bytes) -> int:
        """Send to a raw address; return how many bytes were taken."""
        got = self._c.sendto(
            descriptor, data, c_size_t(len(data)), flags, address or None, len(address)
        )
        if got < 0:
            raise self._error("sendto")
        return int(got)

    def sendmsg(
        self, descriptor: int, address: bytes, data: bytes, control: bytes, flags: int
    ) -> int:
        """Send one message, return how many bytes were taken; an empty *address* or *control* is none."""
        name = ctypes.create_string_buffer(address, len(address)) if address else None
        extra = ctypes.create_string_buffer(control, len(control)) if control else None
        payload = ctypes.c_char_p(data)
        start = ctypes.cast(payload, c_void_p).value or 0
        vector = (c_size_t * 2)(start, len(data))
        # struct msghdr: name, u32 namelen (and padding), iov, iovlen, control, controllen, int flags
        header = (c_size_t * 7)(
            addressof(name) if name else 0,
            len(address),
            addressof(vector),
            1,
            addressof(extra) if extra else 0,
            len(control),
            0,
        )
        got = self._c.sendmsg(descriptor, header, flags)
        if got < 0:
            raise self._error("sendmsg")
        return int(got)

    def getsockname(self, descriptor: int) -> bytes:
        """Return the raw address that a socket is bound to."""
        buffer = ctypes.create_string_buffer(n.SOCKADDR_STORAGE)
        length = ctypes.c_uint(n.SOCKADDR_STORAGE)
        if self._c.getsockname(descriptor, buffer, ctypes.byref(length)) < 0:
            raise self._error("getsockname")
        return buffer.raw[: min(length.value, n.SOCKADDR_STORAGE)]

    def getsockopt(self, descriptor: int, level: int, option: int) -> int:
        """Return an option of a socket that is an int. ENOTSOCK: it is no socket."""
        own = self._local.scratch
        if self._getsockopt(descriptor, level, option, own.option_pointer, own.length_pointer) < 0:
            raise self._error("getsockopt")
        return own.option[0]

    def send_timeout(self, descriptor: int) -> bool:
        """Tell whether a socket has a send timeout: an interrupted call is then never restarted."""
        with socket.socket(fileno=os.dup(descriptor)) as own:
            return any(own.getsockopt(n.SOL_SOCKET, n.SO_SNDTIMEO, 16))

    def nonblocking(self, descriptor: int) -> bool:
        """Tell whether the open file of a descriptor has O_NONBLOCK."""
        return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_NONBLOCK)

    def shutdown(self, descriptor: int, how: int) -> None:
        """Shut a socket down, as the constants of `socket` say how."""
        if self._c.shutdown(descriptor, how) < 0:
            raise self._error("shutdown")
