"""The calls of seccomp: installing a filter, receiving its notifications and answering them."""

from __future__ import annotations

import ctypes
import platform
import select
from ctypes import addressof, c_size_t, c_void_p
from errno import EINVAL
from struct import Struct

from flowproof.run import numbers as n
from flowproof.run.kernel.library import Library

try:
    import fcntl
except ImportError:  # not a Unix: `Kernel` can be named there, and not used
    fcntl = None  # type: ignore[assignment]  # the platform has none

__all__ = ["FILTER_FLAGS", "NotificationCalls", "WaitKillableError"]

FILTER_FLAGS = n.SECCOMP_FILTER_FLAG_NEW_LISTENER | n.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
"""What every run's filter is installed with: without killable waits a signal repeats what was done."""

_SCRATCH = 4096

_SIZES = Struct("=HHH")


class WaitKillableError(OSError):
    """The kernel refuses SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux < 5.19)."""


class NotificationCalls(Library):
    """The calls on a filter and on its listener."""

    def notification_sizes(self) -> tuple[int, int, int]:
        """Return the kernel's sizes of seccomp_notif, seccomp_notif_resp and seccomp_data."""
        buffer = ctypes.create_string_buffer(_SIZES.size)
        if self._c.syscall(self._numbers["seccomp"], n.SECCOMP_GET_NOTIF_SIZES, 0, buffer) < 0:
            raise self._error("seccomp(GET_NOTIF_SIZES)")
        first, second, third = _SIZES.unpack(buffer.raw)
        return first, second, third

    def install_filter(self, program: bytes, flags: int = FILTER_FLAGS) -> int:
        """Put *program* (8 bytes per sock_filter) on this thread; return its listener (close-on-exec).

        Raises `WaitKillableError` where the kernel knows the flags but for WAIT_KILLABLE_RECV. EBUSY: there
        is a listener already. EACCES: no_new_privs is not set.
        """
        code = ctypes.create_string_buffer(program, len(program))
        fprog = (c_size_t * 2)(len(program) // 8, addressof(code))  # u16 len, padding, pointer
        number = self._numbers["seccomp"]
        listener = self._c.syscall(number, n.SECCOMP_SET_MODE_FILTER, ctypes.c_uint(flags), fprog)
        if listener >= 0:
            return int(listener)
        error = self._error("seccomp(SET_MODE_FILTER)")
        killable = n.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
        if error.errno == EINVAL and flags & killable and not self._knows_flag(killable):
            raise WaitKillableError(EINVAL, "seccomp: WAIT_KILLABLE_RECV is not known")
        raise error

    def _knows_flag(self, flag: int) -> bool:
        """Tell whether the kernel knows a filter flag: a NULL program is then EFAULT, not EINVAL."""
        both = ctypes.c_uint(flag | n.SECCOMP_FILTER_FLAG_NEW_LISTENER)
        number = self._numbers["seccomp"]
        self._c.syscall(number, n.SECCOMP_SET_MODE_FILTER, both, c_void_p(None))
        return ctypes.get_errno() != EINVAL

    def receive(self, listener: int, buffer: bytearray) -> None:
        """Wait for a notification; *buffer* is struct seccomp_notif, all zero before.

        ENOENT: the caller died meanwhile, or (Linux 6.11 and newer) nobody is left under the filter.
        """
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_RECV, buffer)

    def send(self, listener: int, response: bytearray) -> None:
        """Answer a notification: struct seccomp_notif_resp. ENOENT: the caller is gone."""
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_SEND, response)

    def id_valid(self, listener: int, notification: bytearray) -> None:
        """Raise ENOENT if the caller of a notification (its id, 8 bytes) is gone."""
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_ID_VALID, notification)

    def set_sync_wake_up(self, listener: int) -> None:
        """Let a reply wake the caller on this CPU; EINVAL where it is not known (Linux < 6.6)."""
        fcntl.ioctl(listener, n.SECCOMP_IOCTL_NOTIF_SET_FLAGS, n.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)

    def poll(self, listener: int, milliseconds: int) -> int:
        """Return the poll events of the listener; POLLHUP means that nobody is left under its filter."""
        poller = select.poll()
        poller.register(listener, select.POLLIN)
        found = poller.poll(milliseconds)
        return found[0][1] if found else 0

    def receive_ends(self) -> bool:
        """Tell whether a blocked `receive` returns when the last user of the filter is gone (6.11)."""
        release = platform.release().split(".")
        try:
            return (int(release[0]), int(release[1])) >= (6, 11)
        except (IndexError, ValueError):
            return False
