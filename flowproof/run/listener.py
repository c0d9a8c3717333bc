"""The listener of a run's filter: notifications in, answers out, both counted in the shared page."""

from __future__ import annotations

import os
import select
from errno import EINTR, ENOENT, errorcode
from itertools import count
from struct import Struct

from flowproof.record.codes import Code
from flowproof.record.wire import COUNTERS
from flowproof.run.caller import FaultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flowproof.run.kernel import Kernel

__all__ = ["NOTIFICATION", "RESPONSE", "Listener"]

NOTIFICATION = Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags, nr, arch, instruction pointer, the six arguments."""
RESPONSE = Struct("=QqiI")
"""struct seccomp_notif_resp: id, val, error, flags."""
_POLL = 200
"""Milliseconds between looks at a listener whose kernel does not end a receive by itself."""


class Listener:
    """The listener *descriptor*, which this takes over. Safe to share between threads.

    *counters* is the page that the recorder shares: received and answered are written after each step.
    """

    def __init__(self, kernel: Kernel, descriptor: int, counters: Any) -> None:  # noqa: ANN401  a buffer
        self.descriptor = descriptor
        self.stopping = False
        COUNTERS.pack_into(counters, 0, 0, 0)
        self.counts = memoryview(counters)[: COUNTERS.size].cast("B").cast("Q")
        """Received and answered, written by whoever received or answered with the next number of each."""
        self.receiving = count(1).__next__  # atomic, unlike an addition
        self.answering = count(1).__next__
        self.poll_first = not kernel.receive_ends()
        self._kernel = kernel
        self._closed = False
        self._null = os.open(
            os.devnull, os.O_RDWR | os.O_CLOEXEC
        )  # now: later there may be no number left

    @property
    def received(self) -> int:
        """Notifications received so far."""
        return self.counts[0]

    @property
    def answered(self) -> int:
        """Notifications answered so far, those whose caller died among them."""
        return self.counts[1]

    def waiting(self) -> bool:
        """Tell whether there is a notification, after a while at most."""
        return bool(self._kernel.poll(self.descriptor, _POLL) & select.POLLIN)

    def unreceived(self, error: OSError) -> None:
        """Take the failure of a receive; `FaultError` unless it was interrupted, or its caller died."""
        if error.errno not in (EINTR, ENOENT) and not self.stopping:
            name = errorcode.get(error.errno or 0, error.errno)
            raise FaultError(Code.LISTENER_RECEIVE, f"NOTIF_RECV: {name}") from error

    def over(self) -> bool:
        """Tell whether nobody is left under the filter."""
        return self._closed or bool(self._kernel.poll(self.descriptor, 0) & select.POLLHUP)

    def over_unseen(self) -> bool:
        """Tell whether it is over where a blocked receive would not show it."""
        return self.poll_first and self.over()

    def answer(self, identity: int, result: int | None) -> None:
        """Answer a notification with a result or a negative errno; None counts one whose caller is gone."""
        if result is not None:
            value, error = (result, 0) if result >= 0 else (0, result)
            response = bytearray(RESPONSE.pack(identity, value, error, 0))
            try:
                self._kernel.send(self.descriptor, response)
            except OSError as failure:
                self.unsent(failure)
        self.counts[1] = self.answering()

    def unsent(self, error: OSError) -> None:
        """Take the failure of an answer; `FaultError` unless its caller is gone."""
        if error.errno != ENOENT and not self._closed:
            name = errorcode.get(error.errno or 0, error.errno)
            raise FaultError(Code.LISTENER_SEND, f"NOTIF_SEND: {name}") from error

    def settle(self) -> None:
        """Write the final counts: two threads may have written theirs in the wrong order."""
        self.counts[0], self.counts[1] = self.receiving() - 1, self.answering() - 1

    def close(self) -> None:
        """Let go of the listener: what is trapped from then on gets ENOSYS.

        The number stays taken, by /dev/null, so that a late answer cannot reach another file.
        """
        if self._closed:
            return
        self._closed = True
        os.dup2(self._null, self.descriptor, inheritable=False)

    def release(self) -> None:
        """Give the number back, once no thread is left that could answer."""
        self.close()
        os.close(self.descriptor)
        os.close(self._null)
