"""The supervisor: readers over the listener, a pool for what sleeps, a watchdog over both.

A reader performs itself what hardly ever sleeps. When it is stuck all the same, the watchdog leaves it to
its call and starts another, so that one blocking call never holds up the others. A call that sleeps ends
when its program has a signal handler to run, or is gone.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from errno import ENOENT, errorcode
from struct import Struct
from time import monotonic

from flowproof.record.codes import Code
from flowproof.run.caller import Caller, FaultError, Known, Operation, StaleError, Work
from flowproof.run.journal import Journal
from flowproof.run.listener import Listener
from flowproof.run.pool import Pool, start_thread
from flowproof.run.reader import Reader, dispatch
from flowproof.run.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from flowproof.artifact.model import Program
    from flowproof.run.bind import Bound
    from flowproof.run.kernel import Kernel

__all__ = ["Supervisor"]

_TICK = 0.005
"""Seconds between looks of the watchdog."""
_STALL = 0.005
"""Seconds after which a reader counts as stuck: the longest that others wait is tick and stall."""
_STUCK = 0.25
"""Seconds after which that is a fault where nobody can take over: on a busy machine much takes its time."""
_FLUSH = 0.02
"""Seconds that an event waits at most before it is sent on."""
_PATIENCE = 0.02
"""Seconds after which a sleeping call is looked at for signals; shorter ones end by themselves."""
_RARELY = 0.08
"""Most seconds between two looks at one call: the longer it has slept, the less a moment matters to it."""
_LOOKS = 16
"""Sleeping calls that are looked at in one tick."""
_WAKE = signal.SIGUSR2 if hasattr(signal, "SIGUSR2") else signal.SIGTERM
"""Ends a system call of one of our threads with EINTR; its handler does nothing."""
_IDENTITY = Struct("=Q")


class Supervisor:
    """The supervision of one filter's listener, which it takes over.

    *emit* is called with batches of `record.wire` tuples, from one thread; *counters* is the buffer of
    `COUNTERS`; *clock* gives the milliseconds from the command's spawn to a
    monotonic time. `start` from the main thread.
    """

    def __init__(
        self,
        kernel: Kernel,
        listener: int,
        bound: Bound,
        program: Program,
        emit: Callable[[list[tuple[object, ...]]], None],
        counters: Any,  # noqa: ANN401  a writable buffer
        clock: Callable[[float], int],
    ) -> None:
        self._kernel = kernel
        self._decisions = bound.decisions
        self._table = dispatch(program, bound.decisions)
        self._emit = emit
        self._journal = Journal(clock)
        self._known = Known()
        self._tree = Tree(kernel, os.getpid())
        self._listener = Listener(kernel, listener, counters)
        self._pool = Pool(self._perform)
        self._readers: set[Reader] = set()
        self._threads: list[threading.Thread] = []
        self._reader: Reader | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._done = threading.Event()
        self._full = False
        self._deaf = False
        self._before: Any = None

    @property
    def canary_pid(self) -> int | None:
        """The process whose attempts are told as the canary's, while it is set."""
        return self._journal.canary_pid

    @canary_pid.setter
    def canary_pid(self, pid: int | None) -> None:
        self._journal.canary_pid = pid

    @property
    def received(self) -> int:
        """Notifications received so far."""
        return self._listener.received

    @property
    def answered(self) -> int:
        """Notifications answered so far, those whose caller died among them."""
        return self._listener.answered

    def start(self) -> None:
        """Begin to answer. Only the main thread may: a signal handler is installed."""
        self._before = signal.signal(_WAKE, lambda _number, _frame: None)
        with suppress(OSError, ValueError):  # where it is not raised, fewer calls sleep at once
            self._kernel.raise_descriptor_limit()
        with suppress(OSError):  # a favour: the reply wakes the caller on this CPU (Linux 6.6)
            self._kernel.set_sync_wake_up(self._listener.descriptor)
        self._add_reader()
        self._threads += [
            start_thread(self._guarded(self._watch), "watchdog"),
            start_thread(self._guarded(self._flush), "flusher"),
        ]

    def wait_closed(self, timeout: float) -> bool:
        """Wait at most *timeout* seconds until nobody is left under the filter.

        True too where the supervisor had to close the listener by itself, which it tells as a fault.
        """
        return self._closed.wait(timeout)

    def stop(self) -> None:
        """End every thread, close the listener, and emit what is left. No event follows.

        A second call does nothing.
        """
        if self._done.is_set():
            return
        self._listener.stopping = True
        workers = self._pool.stop()
        end = monotonic() + 2.0
        while monotonic() < end:
            for operation in tuple(self._pool.pending):
                operation.withdrawn = operation.withdrawn or "dead"
                self._interrupt(operation)
            for reader in tuple(self._readers):
                self._interrupt(reader.operation)
            if not self._readers and not any(worker.is_alive() for worker in workers):
                break
            self._done.wait(0.002)
        self._done.set()
        for thread in self._threads:
            thread.join(2.0)
        self._listener.settle()
        stuck = bool(self._readers) or any(worker.is_alive() for worker in workers)
        if stuck:
            self._listener.close()
        else:
            self._listener.release()
        self._emit_events()
        if self._before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(_WAKE, self._before)

    # --- readers ---

    def _add_reader(self) -> None:
        caller = Caller(
            self._kernel,
            self._listener.descriptor,
            self._decisions,
            self._journal,
            self._tree,
            self._known,
        )
        caller.share(len(self._readers))
        reader = Reader(
            self._listener, caller, self._table, self._pool, self._reader_ended, self._fail
        )
        with self._lock:
            self._readers.add(reader)
            self._reader = reader
        start_thread(reader.run, "reader")

    def _reader_ended(self, reader: Reader) -> None:
        with self._lock:
            self._readers.discard(reader)
        self._pool.pending.discard(reader.operation)
        if not reader.retired or self._listener.over():
            self._closed.set()

    def _fail(self, error: BaseException) -> None:
        """Close the listener: what is not answered by the policy is not answered at all (ENOSYS)."""
        if isinstance(error, FaultError):
            self._journal.fault(0, error.code, "listener", error.detail)
        else:
            detail = f"{type(error).__name__}: {error}{_place(error)}"
            self._journal.fault(0, Code.SUPERVISOR_BUG, "supervisor", detail)
        self._listener.stopping = True
        self._listener.close()
        for reader in tuple(self._readers):  # one that waits in a receive holds the listener open
            self._interrupt(reader.operation)
        self._closed.set()

    def _guarded(self, loop: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                loop()
            except BaseException as error:  # noqa: BLE001  told and fatal
                self._fail(error)

        return run

    # --- the pool ---

    def _perform(self, operation: Operation, work: Work) -> None:
        """Perform a call that may sleep and answer it."""
        try:
            result: int | None
            try:
                result = work.perform(operation)
            except StaleError:
                result = None
            except FaultError as error:
                self._journal.fault(operation.tid, error.code, operation.call, error.detail)
                result = -error.errno
            except OSError as error:
                name = str(errorcode.get(error.errno or 0, error.errno))
                self._journal.fault(operation.tid, Code.PERFORM, operation.call, name)
                result = -1
            for descriptor in work.descriptors:
                self._kernel.close(descriptor)
            self._listener.answer(operation.id, result)
        except BaseException as error:  # noqa: BLE001  told and fatal
            self._fail(error)

    # --- the watchdog ---

    def _watch(self) -> None:
        while not self._done.wait(_TICK):
            now = monotonic()
            reader = self._reader
            if reader is not None and not reader.retired:
                started = reader.operation.started
                if started and now - started > _STALL:
                    self._take_over(reader)
            self._look(now)
            if self._listener.over_unseen():  # Linux < 6.11: no receive ends by itself
                self._closed.set()

    def _take_over(self, reader: Reader) -> None:
        """Leave a stuck reader to its call, and start another; beyond the cap every call waits for it."""
        if self._pool.full:
            started = reader.operation.started
            if not self._full and started and monotonic() - started > _STUCK:
                self._full = True
                detail = f"too many calls sleep, and a reader is stuck in {reader.operation.call}"
                self._journal.fault(reader.operation.tid, Code.WORKERS, "supervisor", detail)
            return
        self._full = False
        reader.retired = True
        self._pool.pending.add(reader.operation)
        with self._lock:
            ended = reader not in self._readers
        if ended:  # just now: it was quicker than this thread
            self._pool.pending.discard(reader.operation)
        self._add_reader()

    def _look(self, now: float) -> None:
        """End the sleeping calls whose program has a signal to handle, or is gone."""
        due = []
        for operation in tuple(self._pool.pending):
            if operation.withdrawn is not None:
                self._interrupt(operation)  # again: the last one may have come before the call
                continue
            if not operation.started:  # a retired reader that waits for its last notification
                continue
            slept = now - operation.started
            pause = min(max(_PATIENCE, slept / 8), _RARELY)
            if slept >= _PATIENCE and now - operation.looked >= pause:
                due.append(operation)
        if len(due) > _LOOKS:  # whoever has waited longest: none is passed over for ever
            due.sort(key=_last_look)
            del due[_LOOKS:]
        for operation in due:
            operation.looked = now
            identity = operation.id
            why = self._withdrawal(operation)
            if why is not None and operation.id == identity:
                operation.withdrawn = why
                self._interrupt(operation)

    def _withdrawal(self, operation: Operation) -> str | None:
        """Return why a sleeping call has to end: dead, signal or restart; None if it may sleep on."""
        try:
            self._kernel.id_valid(
                self._listener.descriptor, bytearray(_IDENTITY.pack(operation.id))
            )
            status = self._kernel.status(operation.tid)
        except FileNotFoundError:
            return "dead"
        except (OSError, KeyError, ValueError):  # ValueError, KeyError: gone between open and read
            return "dead" if self._gone(operation) else None
        handled = status.caught & ~status.blocked & ~status.ignored
        if status.thread & handled:
            return "restart"
        if status.shared & handled:
            return "restart" if status.threads == 1 else "signal"
        return None

    def _gone(self, operation: Operation) -> bool:
        try:
            self._kernel.id_valid(
                self._listener.descriptor, bytearray(_IDENTITY.pack(operation.id))
            )
        except OSError as error:
            return error.errno == ENOENT
        return False

    def _interrupt(self, operation: Operation) -> None:
        """End the system call that an operation's thread is in, if it is in one, with EINTR."""
        if not operation.thread:
            return
        try:
            self._kernel.tgkill(os.getpid(), operation.thread, _WAKE)
        except ProcessLookupError:  # it has ended
            return
        except OSError as error:
            if not self._deaf:  # once: it is asked again at each tick
                self._deaf = True
                name = errorcode.get(error.errno or 0, str(error.errno))
                self._journal.fault(
                    operation.tid, Code.INTERRUPTION, operation.call, f"tgkill: {name}"
                )

    # --- events ---

    def _flush(self) -> None:
        while not self._done.wait(_FLUSH):
            self._emit_events()

    def _emit_events(self) -> None:
        batch = self._journal.take()
        if batch:
            self._emit(batch)


def _last_look(operation: Operation) -> float:
    return operation.looked


def _place(error: BaseException) -> str:
    """Return `` at <file>:<line>`` of where an exception was raised."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
