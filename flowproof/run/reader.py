"""A reader: receives one notification after the other and sees to it itself, unless it may sleep."""

from __future__ import annotations

import threading
from errno import EPERM
from errno import errorcode as _names
from time import monotonic

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.caller import AnswerError, Caller, FaultError, Operation, StaleError, Work
from flowproof.run.calls import CALLS
from flowproof.run.calls.files import FILE_CALLS
from flowproof.run.calls.fixed import record_foreign, record_socket
from flowproof.run.calls.shortcut import shortcut
from flowproof.run.listener import NOTIFICATION, RESPONSE
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flowproof.artifact.model import Decision, Program
    from flowproof.run.calls import Handler
    from flowproof.run.calls.files import FileHandler
    from flowproof.run.decide import Decisions
    from flowproof.run.listener import Listener
    from flowproof.run.pool import Pool

__all__ = ["Dispatch", "Reader", "dispatch"]

_GOES_ON = n.SECCOMP_USER_NOTIF_FLAG_CONTINUE
_ZERO = bytes(NOTIFICATION.size)
_ERRNO = {name: number for number, name in _names.items()}


class Dispatch(Value):
    """What becomes of a notification by its architecture and number, as the artifact's program has it.

    *calls*: number → (name, handler); one of a call about files only tells it, and the kernel goes on with
    it. *fixed*: number → (event, errno, decision); errno 0: the call goes on. *foreign*: (errno, decision),
    or None if no reply is fixed.
    """

    arch: int
    x32: bool
    calls: Mapping[int, tuple[str, Handler | FileHandler]]
    fixed: Mapping[int, tuple[str, int, Decision]]
    foreign: tuple[int, Decision] | None


def dispatch(program: Program, decisions: Decisions) -> Dispatch:
    """Return the dispatch of a program; an unknown call or errno name is a `KeyError`."""
    foreign = None
    fixed = {}
    for reply in program.fixed:
        errno = _ERRNO[reply.errno] if reply.errno else 0
        decision = decisions.special(reply.special)
        if reply.number is None:
            foreign = (errno, decision)
        else:
            fixed[reply.number] = (reply.event, errno, decision)
    return Dispatch(
        arch=n.AUDIT_ARCH[program.arch],
        x32=program.arch == "x86_64",
        calls={
            row.number: (row.call, CALLS.get(row.call) or FILE_CALLS[row.call])
            for row in program.trapped
        },
        fixed=fixed,
        foreign=foreign,
    )


class Reader:
    """One thread's loop over the listener. Once *retired* it ends after the call that it is in.

    *pool* is given the calls that may sleep; *failed* is told what no loop survives.
    """

    def __init__(
        self,
        listener: Listener,
        caller: Caller,
        table: Dispatch,
        pool: Pool,
        ended: Callable[[Reader], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.retired = False
        self.operation = caller.operation
        self._listener = listener
        self._caller = caller
        self._table = table
        self._pool = pool
        caller.crowded = pool.crowded
        self._ended = ended
        self._failed = failed

    def run(self) -> None:
        """Read until retired or until nobody is left under the filter."""
        self.operation.thread = threading.get_native_id()
        try:
            self._loop()
        except BaseException as error:  # noqa: BLE001  told and fatal: the listener is closed then
            self._failed(error)
        finally:
            self._caller.close()
            self._ended(self)

    def _loop(self) -> None:
        listener, caller, operation = self._listener, self._caller, self.operation
        buffer, response = caller.notification, bytearray(RESPONSE.size)
        ioctl, unpack, pack = caller.reach.ioctl, NOTIFICATION.unpack_from, RESPONSE.pack_into
        counts, receiving, answering = listener.counts, listener.receiving, listener.answering
        descriptor, poll_first = listener.descriptor, listener.poll_first
        calls, arch, short = self._table.calls, self._table.arch, shortcut(caller)
        while not self.retired:
            buffer[:] = _ZERO
            try:
                there = not poll_first or listener.waiting()
                if there:
                    ioctl(descriptor, n.SECCOMP_IOCTL_NOTIF_RECV, buffer)
            except OSError as error:
                listener.unreceived(error)
                there = False
            if not there:
                if listener.stopping or listener.over():
                    return
                continue
            counts[0] = receiving()
            operation.withdrawn = None
            operation.started = monotonic()
            fields = unpack(buffer)
            identity = operation.id = fields[0]
            caller.tid = operation.tid = fields[1]
            caller.pointer = fields[5]
            found = calls.get(fields[3]) if fields[4] == arch else None
            result: int | None
            flags = 0
            try:
                if found is None:
                    operation.call = "fixed"
                    result = self._fixed(fields)
                    flags = 0 if result else _GOES_ON
                else:
                    call = operation.call = found[0]
                    outcome = short(fields) if call == "connect" else found[1](caller, fields[6:])
                    if isinstance(outcome, Work):
                        self._later(outcome)
                        continue
                    if outcome is None:  # about files: the kernel's to do; of a connect it never is
                        outcome, flags = 0, _GOES_ON
                    result = outcome
            except AnswerError as error:
                result = -error.errno
            except StaleError:
                result = None
            except FaultError as error:
                caller.note_fault(error, operation.call)
                result = -error.errno
            except OSError as error:
                name = _names.get(error.errno or 0, error.errno)
                caller.note_fault(FaultError(Code.PERFORM, str(name)), operation.call)
                result = -EPERM
            if result is not None:
                if result > 0:
                    pack(response, 0, identity, result, 0, 0)
                else:
                    pack(response, 0, identity, 0, result, flags)
                try:
                    ioctl(descriptor, n.SECCOMP_IOCTL_NOTIF_SEND, response)
                except OSError as error:
                    listener.unsent(error)
            counts[1] = answering()
            operation.started = 0.0

    def _later(self, work: Work) -> None:
        """Hand a call to the pool, with an operation of its own."""
        own = self.operation
        operation = Operation()
        operation.id, operation.tid, operation.call = own.id, own.tid, own.call
        own.started = 0.0  # the pool's now: it counts once, should this reader be taken over
        taken = self._pool.submit(operation, work)
        self._caller.crowded = self._pool.crowded  # nothing else fills it under a reader
        if taken:
            return
        for descriptor in work.descriptors:
            self._caller.kernel.close(descriptor)
        raise FaultError(Code.WORKERS, "too many calls that sleep")

    def _fixed(self, fields: tuple[int, ...]) -> int:
        """Answer what no code decides: a foreign ABI, or a socket of another family. 0: it goes on.

        That is no race: the kernel reads the three arguments of socket(2) from registers.
        """
        table, native = self._table, fields[4] == self._table.arch
        number = fields[3] & 0xFFFFFFFF
        if not native or (table.x32 and number >= n.X32_SYSCALL_BIT):
            if table.foreign is not None:
                errno, decision = table.foreign
                record_foreign(self._caller, decision, number, native=native)
                return -errno
        elif number in table.fixed:
            event, errno, decision = table.fixed[number]
            record_socket(self._caller, event, decision, fields[6:])
            return -errno
        raise FaultError(Code.UNSUPPORTED_CALL, f"call {number} of {fields[4]:#x} has no handler")
