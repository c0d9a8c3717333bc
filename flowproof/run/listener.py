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
from flowproof.run.numbers import SECCOMP_USER_NOTIF_FLAG_CONTINUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flowproof.run.kernel import Kernel

__all__ = ["NOTIFICATION", "Listener"]

NOTIFICATION = Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags, nr, arch, instruction pointer, the six arguments."""
_COUNTER = Struct("<Q")
_RESPONSE = Struct("=QqiI")  # struct seccomp_notif_resp: id, val, error, flags
_POLL = 200
"""Milliseconds between looks at a listener whose kernel does not end a receive by itself."""


class Listener:
    """The listener *descriptor*, which this takes over. Safe to share between threads.

    *counters* is the page that the recorder shares: received and answered are written after each step.
    """

    def __init__(self, kernel: Kernel, descriptor: int, counters: Any) -> None:  # noqa: ANN401  a buffer
        self.descriptor = descriptor
        self.received = 0
        self.answered = 0
        self.stopping = False
        self._receiving = count(1).__next__  # atomic, unlike an addition
        self._answering = count(1).__next__
        self._write = _COUNTER.pack_into
        self._kernel = kernel
        self._counters = counters
        COUNTERS.pack_into(counters, 0, 0, 0)
        self._poll_first = not kernel.receive_ends()
        self._closed = False
        self._null = os.open(
            os.devnull, os.O_RDWR | os.O_CLOEXEC
        )  # now: later there may be no number left

    def receive(self, buffer: bytearray) -> bool:
        """Wait for a notification; False if there is none: interrupted, or its caller died meanwhile.

        *buffer* is all zero before. Raises `FaultError` where the kernel does not give it out.
        """
        try:
            if self._poll_first and not self._kernel.poll(self.descriptor, _POLL) & select.POLLIN:
                return False
            self._kernel.receive(self.descriptor, buffer)
        except OSError as error:
            if error.errno in (EINTR, ENOENT) or self.stopping:
                return False
            name = errorcode.get(error.errno or 0, error.errno)
            raise FaultError(Code.LISTENER_RECEIVE, f"NOTIF_RECV: {name}") from error
        self.received = received = self._receiving()
        self._write(self._counters, 0, received)
        return True

    def over(self) -> bool:
        """Tell whether nobody is left under the filter."""
        return self._closed or bool(self._kernel.poll(self.descriptor, 0) & select.POLLHUP)

    def over_unseen(self) -> bool:
        """Tell whether it is over where a blocked receive would not show it."""
        return self._poll_first and self.over()

    def answer(
        self, identity: int, result: int | None, response: bytearray, *, goes_on: bool = False
    ) -> None:
        """Answer a notification with a result or a negative errno; None counts one whose caller is gone.

        With *goes_on* the kernel performs the call itself.
        """
        if result is not None:
            value, error = (result, 0) if result >= 0 else (0, result)
            flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE if goes_on else 0
            _RESPONSE.pack_into(response, 0, identity, value, error, flags)
            try:
                self._kernel.send(self.descriptor, response)
            except OSError as failure:
                if failure.errno != ENOENT and not self._closed:  # ENOENT: the caller is gone
                    name = errorcode.get(failure.errno or 0, failure.errno)
                    raise FaultError(Code.LISTENER_SEND, f"NOTIF_SEND: {name}") from failure
        self.answered = answered = self._answering()
        self._write(self._counters, _COUNTER.size, answered)

    def settle(self) -> None:
        """Write the final counts: two threads may have written theirs in the wrong order."""
        self.received, self.answered = self._receiving() - 1, self._answering() - 1
        COUNTERS.pack_into(self._counters, 0, self.received, self.answered)

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
