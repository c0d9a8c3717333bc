"""The one seam between the runner and Linux: every call of the mechanism is a method of `Kernel`.

A test stages a failure by a subclass that raises from one method. Every method raises `OSError` with the
errno of the call. The package imports on any platform; only calling a method needs Linux.
"""

from __future__ import annotations

from flowproof.run.kernel.files import FileCalls
from flowproof.run.kernel.notification import FILTER_FLAGS, NotificationCalls, WaitKillableError
from flowproof.run.kernel.process import ProcessCalls
from flowproof.run.kernel.procfs import ThreadStatus
from flowproof.run.kernel.reach import Reach, StagedReach
from flowproof.run.kernel.seclusion import SeclusionCalls
from flowproof.run.kernel.sockets import SocketCalls
from flowproof.run.kernel.target import TargetCalls
from flowproof.run.kernel.unix_sockets import UnixCalls, UnixSocket

__all__ = ["FILTER_FLAGS", "Kernel", "ThreadStatus", "UnixSocket", "WaitKillableError"]

_REACHED = frozenset(
    ("receive", "send", "id_valid", "read_memory", "pidfd_getfd", "getsockopt", "connect", "close")
)


class Kernel(
    ProcessCalls,
    SeclusionCalls,
    NotificationCalls,
    TargetCalls,
    FileCalls,
    SocketCalls,
    UnixCalls,
):
    """The calls of the mechanism, one method each. Safe to share between threads."""

    def reach(self) -> Reach:
        """Return the calls of a reader without their methods; where one is another's, by the methods."""
        if type(self) is not Kernel or not _REACHED.isdisjoint(vars(self)):
            return StagedReach(self)
        return Reach(self._getfd_number).bind(self._c)
