"""Messages sent for the caller: tried without sleeping first, and only what would sleep handed on."""

from __future__ import annotations

from errno import EAGAIN, EINTR, EPERM, EPIPE, errorcode
from signal import Signals
from struct import Struct

from flowproof.record.codes import Code
from flowproof.run.caller import FaultError, Work
from flowproof.run.calls.unix import acting_as
from flowproof.run.numbers import (
    MSG_DONTWAIT,
    MSG_FASTOPEN,
    MSG_NOSIGNAL,
    SCM_CREDENTIALS,
    SO_TYPE,
    SOCK_STREAM,
    SOL_SOCKET,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.run.caller import Caller, Operation
    from flowproof.run.calls.message import Message

__all__ = ["Sending"]

_COUNT = Struct("=I")


class Sending:
    """Messages to one socket, sent in order until one is not.

    *lengths*: where the caller wants to be told each message's length (sendmmsg), or None. *attempt* records
    a message's attempt, at the moment at which it is made.
    """

    def __init__(
        self,
        caller: Caller,
        duplicate: int,
        messages: list[Message],
        flags: int,
        attempt: Callable[[Message], None],
        lengths: list[int] | None = None,
    ) -> None:
        self._kernel = caller.kernel
        self._tid = caller.tid
        self._duplicate = duplicate
        self._messages = messages
        self._flags = flags
        self._attempt = attempt
        self._lengths = lengths
        self._at = 0
        self._taken = 0
        self._begun = False
        self._nonblocking: bool | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return what is to be closed once this is over."""
        own = [self._duplicate]
        for message in self._messages:
            own += [*message.descriptors, *message.target.held]
        return tuple(own)

    @property
    def cost(self) -> int:
        """Return how many bytes the messages keep in memory."""
        return sum(len(message.data) for message in self._messages)

    def begin(self, operation: Operation) -> int | Work:
        """Send what goes without sleeping; return the result, or the work that gives it."""
        result = self._run(operation, wait=False)
        if result is not None:
            return result
        return Work(self.finish, self.descriptors, self.cost)

    def finish(self, operation: Operation) -> int:
        """Send the rest, sleeping where the caller would."""
        result = self._run(operation, wait=True)
        assert result is not None  # only an attempt without waiting can be left undone
        return result

    def _run(self, operation: Operation, *, wait: bool) -> int | None:
        while self._at < len(self._messages):
            message = self._messages[self._at]
            if not self._begun:
                self._begun = True
                self._attempt(message)
            if message.target.refusal:
                return self._ended(-message.target.refusal)
            result = self._send(operation, message, wait=wait)
            if result is None:
                return None
            if result < 0:
                return self._ended(result)
            if self._lengths is None:
                return result
            self._tell_length(self._lengths[self._at], result)
            self._at += 1
            self._taken = 0
            self._begun = False
            if result < len(message.data):
                break
        return self._at

    def _ended(self, error: int) -> int:
        """Return what sendmmsg returns at an error: the messages sent, if there are any."""
        return self._at if self._lengths is not None and self._at else error

    def _send(self, operation: Operation, message: Message, *, wait: bool) -> int | None:
        """Return the bytes sent or -errno; None where it would sleep and may not."""
        # A Fast Open connects, so that there is no trying first: where it may sleep it is handed on.
        fast_open = bool(self._flags & MSG_FASTOPEN and message.target.act)
        if fast_open and not wait and not message.target.quick and self._may_sleep():
            return None
        asking = 0 if wait or fast_open else MSG_DONTWAIT
        while True:
            try:
                self._taken += self._once(operation, message, self._flags | MSG_NOSIGNAL | asking)
            except OSError as error:
                if error.errno == EINTR:
                    if operation.withdrawn is None:
                        continue
                    return self._taken or operation.interrupted(self._kernel, self._duplicate)
                if error.errno == EAGAIN and asking and self._may_sleep():
                    return None
                return self._failed(message, error)
            if self._taken >= len(message.data):
                return self._taken
            if asking:
                return None if self._may_sleep() else self._taken
            if operation.withdrawn is not None or not self._may_sleep():
                return self._taken

    def _once(self, operation: Operation, message: Message, flags: int) -> int:
        data = message.data[self._taken :] if self._taken else message.data
        control = b"" if self._taken else message.control
        target = message.target

        def send() -> int:
            return self._kernel.sendmsg(self._duplicate, target.act, data, control, flags)

        return acting_as(self._kernel, target.identity, send, operation)

    def _may_sleep(self) -> bool:
        if self._nonblocking is None:
            self._nonblocking = bool(self._flags & MSG_DONTWAIT) or self._kernel.nonblocking(
                self._duplicate
            )
        return not self._nonblocking

    def _failed(self, message: Message, error: OSError) -> int:
        if self._taken:
            return self._taken
        if error.errno == EPIPE and not self._flags & MSG_NOSIGNAL:
            kind = self._kernel.getsockopt(self._duplicate, SOL_SOCKET, SO_TYPE)
            if kind == SOCK_STREAM:
                self._raise_pipe()
        if error.errno == EPERM and _has_credentials(message.control):
            # Only root may name another process in SCM_CREDENTIALS, and the supervisor is another.
            raise FaultError(
                Code.UNSUPPORTED_CALL, "SCM_CREDENTIALS needs flowproof to run as root"
            )
        return -(error.errno or EPIPE)

    def _raise_pipe(self) -> None:
        """Give the caller the SIGPIPE that its own call would have raised."""
        try:
            self._kernel.tgkill(self._kernel.status(self._tid).tgid, self._tid, Signals.SIGPIPE)
        except ProcessLookupError:
            return
        except OSError as error:
            step = f"tgkill: {errorcode.get(error.errno or 0, error.errno)}"
            raise FaultError(Code.INTERRUPTION, step) from error
        except (KeyError, ValueError) as error:
            raise FaultError(Code.PERFORM, "SIGPIPE cannot be delivered") from error

    def _tell_length(self, address: int, length: int) -> None:
        try:
            written = self._kernel.write_memory(self._tid, address, _COUNT.pack(length))
        except OSError as error:
            step = f"process_vm_writev: {errorcode.get(error.errno or 0, error.errno)}"
            raise FaultError(Code.CHILD_RESULT, step) from error
        if written != _COUNT.size:
            raise FaultError(Code.CHILD_RESULT, "process_vm_writev: short")


def _has_credentials(control: bytes) -> bool:
    return Struct("=ii").pack(SOL_SOCKET, SCM_CREDENTIALS) in control
