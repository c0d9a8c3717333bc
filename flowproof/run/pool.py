"""Threads for calls that may sleep: as many as are needed at once, up to a hard cap."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from time import monotonic

from flowproof.record.codes import Code
from flowproof.run.caller import FaultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.run.caller import Operation, Work

    Finish = Callable[[Operation, Work], None]

__all__ = ["THREADS", "Pool", "start_thread"]

THREADS = 512
"""Most calls that sleep at once; a thread costs 50 kB. One more is refused, and a fault."""
_BYTES = 256 << 20
"""Most payload that waits in memory at once."""
_STACK = 256 << 10
_starting = threading.Lock()


def start_thread(target: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread with a small stack; `FaultError` where there is none to be had."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    with _starting:  # the stack size is the process's, for whoever starts a thread next
        before = threading.stack_size(_STACK)
        try:
            thread.start()
        except RuntimeError as error:  # what Python makes of a clone(2) that fails
            raise FaultError(Code.THREADS, "clone: no thread is to be had") from error
        finally:
            threading.stack_size(before)
    return thread


class Pool:
    """A pool that grows on demand. *finish* performs a call, answers it, and never raises.

    *pending* holds the operations under way, for the watchdog: those of the pool, and those of readers that
    were left to their call.
    """

    def __init__(self, finish: Finish) -> None:
        self.pending: set[Operation] = set()
        self._finish = finish
        self._queue: SimpleQueue[tuple[Operation, Work] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._bytes = 0

    @property
    def crowded(self) -> bool:
        """Tell whether half of the cap is in use: a reader no longer risks its own sleep then."""
        return self.holds(THREADS // 2)

    @property
    def full(self) -> bool:
        """Tell whether as many calls sleep as may."""
        return self.holds(THREADS)

    def holds(self, number: int) -> bool:
        """Tell whether *number* calls sleep; a reader that was left and has ended its call is none."""
        if len(self.pending) < number:
            return False
        return sum(bool(operation.started) for operation in tuple(self.pending)) >= number

    def submit(self, operation: Operation, work: Work) -> bool:
        """Have a call performed by a thread of the pool; False beyond the cap."""
        with self._lock:
            if self.full or self._bytes + work.cost > _BYTES:
                return False
            operation.started = monotonic()
            self.pending.add(operation)
            self._bytes += work.cost
            grow = not self._idle
            if not grow:
                self._idle -= 1
        if grow:
            try:
                thread = start_thread(self._run, "worker")
            except FaultError:
                with self._lock:
                    self.pending.discard(operation)
                    self._bytes -= work.cost
                return False
            self._threads.append(thread)
        self._queue.put((operation, work))
        return True

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            operation, work = item
            operation.thread = threading.get_native_id()
            self._finish(operation, work)
            with self._lock:
                self.pending.discard(operation)
                self._bytes -= work.cost
                self._idle += 1
            del item, operation, work

    def stop(self) -> list[threading.Thread]:
        """Ask every thread to end after its call; return them."""
        for _thread in self._threads:
            self._queue.put(None)
        return self._threads
