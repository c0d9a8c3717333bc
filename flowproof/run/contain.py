"""The supervisor's process: it starts the command under the filter, outlives it, and ends its tree.

It is the parent of everything contained and a subreaper, so nothing gets out from below it. It tells the
recorder everything over a pipe; the recorder's going away ends the run.
"""

from __future__ import annotations

import os
import select
import signal
import time
import traceback
from threading import Lock

from flowproof.record import wire
from flowproof.record.codes import Code
from flowproof.run.caller import FaultError
from flowproof.run.descendants import Descendants
from flowproof.run.launch import Child, NotStartedError, error_text, fork_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, Protocol

    from flowproof.run.file_canary import FileCanary
    from flowproof.run.kernel import Kernel
    from flowproof.run.launch import Spawn

    class Guard(Protocol):
        """What `contain` needs of the supervisor's loop."""

        canary_pid: int | None

        def start(self) -> None: ...
        def wait_closed(self, timeout: float) -> bool: ...
        def stop(self) -> None: ...

    Emit = Callable[[list[tuple[object, ...]]], None]
    Counters = Callable[[], tuple[int, int]]
    MakeGuard = Callable[[Kernel, int, Emit, Callable[[float], int]], Guard]

__all__ = ["INTERRUPT_GRACE", "SETTLE", "contain"]

SETTLE = 0.15
"""Seconds that processes may outlive the command without counting as survivors: a pipeline's last ones."""
INTERRUPT_GRACE = 0.25
"""Seconds that an interrupted command has to end by itself."""
_ENDING = 5.0
_REPORT = 2.0
"""Seconds for the guard to report a call that its caller has an answer to already."""
_SURVIVORS = 100
"""Survivors that are listed."""
_TICK = 1.0
_IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")  # by name: not every platform has each


class _Emitter:
    """The way to the recorder. `canary` is what the guard said of the known call, `fault` its first fault."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._lock = Lock()
        self.canary: tuple[object, ...] | None = None
        self.fault: tuple[object, ...] | None = None

    def __call__(self, tuples: list[tuple[object, ...]]) -> None:
        for found in tuples:
            if found[0] == wire.CANARY:
                self.canary = found
            elif found[0] == wire.FAULT and self.fault is None:
                self.fault = found
        data = memoryview(wire.pack(tuples))
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._file, data) :]
            except BrokenPipeError:  # the recorder is gone: the control stream's end says so too
                return


class _Clock:
    """Whole milliseconds from the command's spawn to a monotonic time; 0 before."""

    def __init__(self) -> None:
        self.spawned: float | None = None

    def __call__(self, at: float) -> int:
        if self.spawned is None:
            return 0
        return max(int((at - self.spawned) * 1000), 0)


def contain(
    kernel: Kernel,
    spawn: Spawn,
    make_guard: MakeGuard,
    events: int,
    control: int,
    counters: Counters,
) -> NoReturn:
    """Run the command of *spawn* to its end; the whole life of the supervisor's process.

    *events* is written, *control* read: a signal's number ends the run, so does the end of the stream.
    *counters* returns (received, answered) when called.
    """
    code = 1
    emit = _Emitter(events)
    try:
        _Containment(kernel, spawn, make_guard, emit, control, counters, _ignore()).run(events)
        code = 0
    except BaseException as error:  # noqa: BLE001  nothing may get past the end of this process
        traceback.print_exc()
        bug = (wire.FAULT, 0, 0, Code.SUPERVISOR_BUG.value, "contain", type(error).__name__)
        emit([bug])
    finally:
        Descendants(kernel).end(_ENDING)
        os._exit(code)


def _ignore() -> tuple[int, ...]:
    """Ignore what would end this process; return the signals that the caller did not ignore itself."""
    numbers = [getattr(signal, name) for name in _IGNORED]
    return tuple(x for x in numbers if signal.signal(x, signal.SIG_IGN) is not signal.SIG_IGN)


def _keep_only(kernel: Kernel, *files: int) -> None:
    """Close what was inherited but the standard streams and *files*: lanes are nobody else's business."""
    first = 3
    for file in sorted(files):
        if file > first:
            kernel.close_range(first, file - 1)
        first = file + 1
    kernel.close_range(first)


class _Containment:
    """One run, as its supervisor's process sees it."""

    def __init__(
        self,
        kernel: Kernel,
        spawn: Spawn,
        make_guard: MakeGuard,
        emit: _Emitter,
        control: int,
        counters: Counters,
        signals: tuple[int, ...] = (),
    ) -> None:
        self._signals = signals
        self._kernel = kernel
        self._spawn = spawn
        self._make_guard = make_guard
        self._emit = emit
        self._control = control
        self._counters = counters
        self._clock = _Clock()
        self._guard: Guard | None = None

    def run(self, events: int) -> None:
        """Start, watch, end. What cannot be started is told, and ends as quietly."""
        code = Code.DESCRIPTORS
        try:
            _keep_only(self._kernel, events, self._control)
            code = Code.SUBREAPER
            self._kernel.set_subreaper()
            code = Code.THREADS
            child = fork_command(self._kernel, self._spawn, self._signals)
        except OSError as error:
            self._not_started(NotStartedError(code, error_text(error)))
            return
        tree = Descendants(self._kernel)
        failure: NotStartedError | None = None
        try:
            self._start(child)
        except NotStartedError as error:
            failure = error
        else:
            self._watch(child.pid, tree)
        self._finish(tree, failure)

    def _start(self, child: Child) -> None:
        try:
            self._kernel.set_dumpable(False)  # only now: the child had to inherit it
        except OSError as error:
            raise NotStartedError(Code.UNDUMPABLE, error_text(error)) from error
        listener = child.fetch_listener()
        guard = self._make_guard(self._kernel, listener, self._emit, self._clock)
        guard.canary_pid = child.pid
        try:
            guard.start()
        except FaultError as error:
            raise NotStartedError(error.code, error.detail) from error
        self._guard = guard
        if self._spawn.canaries:
            which, errno = child.try_canary()
            self._emit([(wire.CANARY_REPLY, "connect", which, errno)])
            self._await_canary(which, errno)
        if self._spawn.file_canary is not None:
            errno = child.try_file_canary()
            self._emit([(wire.CANARY_REPLY, "files", 0, errno)])
            self._await_file_canary(self._spawn.file_canary, errno)
        guard.canary_pid = None
        self._clock.spawned = time.monotonic()
        self._emit([(wire.SPAWNED, child.pid)])  # before: it may end this process at once
        child.execute()
        child.close()
        self._emit([(wire.EXECUTED,)])

    def _await_canary(self, which: int, errno: int) -> None:
        """Wait until the guard reports the known call, and hold it against what was planned."""
        told = self._told_canary()
        planned = self._spawn.canaries[which]
        if told[1] is not planned.refused:
            raise NotStartedError(Code.CANARY, "the known call was not decided as planned")
        if errno != planned.errno:
            raise NotStartedError(Code.CANARY, f"the caller of the known call got errno {errno}")

    def _await_file_canary(self, planned: FileCanary, errno: int) -> None:
        if not planned.is_held(self._told_canary(), errno):
            detail = f"the known {planned.call} was not seen as it was made"
            raise NotStartedError(Code.CANARY, detail)

    def _told_canary(self) -> tuple[object, ...]:
        """Return what the guard reports of the known call that was made last."""
        deadline = time.monotonic() + _REPORT
        while self._emit.canary is None:
            if time.monotonic() > deadline or self._emit.fault is not None:
                raise NotStartedError(Code.CANARY, "the known call was not reported")
            time.sleep(0.001)
        told, self._emit.canary = self._emit.canary, None
        return told

    def _watch(self, pid: int, tree: Descendants) -> None:
        """Wait for the end of the command, its time or a request, whichever is first."""
        handle = os.pidfd_open(pid)
        limit = self._spawn.command.timeout
        assert self._clock.spawned is not None
        deadline = None if limit is None else self._clock.spawned + limit
        how, value = self._await_end(handle, deadline, tree)
        if how == "interrupt":
            if pid not in tree.statuses:
                self._kernel.kill(pid, signal.SIGTERM)
            _readable(handle, INTERRUPT_GRACE)
        milliseconds = self._clock(time.monotonic())
        if how == "exit":
            tree.reap()
            status = tree.statuses[pid]
            if os.WIFSIGNALED(status):
                how, value = "signal", os.WTERMSIG(status)
            else:
                value = os.WEXITSTATUS(status)
        os.close(handle)
        self._emit([(wire.EXITED, milliseconds, how, value)])
        if how in ("exit", "signal") and not tree.wait(SETTLE):
            self._emit(
                [(wire.SURVIVOR, left, program) for left, program in tree.alive()[:_SURVIVORS]]
            )

    def _await_end(self, handle: int, deadline: float | None, tree: Descendants) -> tuple[str, int]:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.register(self._control, select.POLLIN)
        while True:
            left = _TICK if deadline is None else min(_TICK, deadline - time.monotonic())
            ready = {file for file, _event in poller.poll(max(int(left * 1000), 0))}
            if self._control in ready:
                word = os.read(self._control, 1)
                return "interrupt", word[0] if word else int(signal.SIGHUP)
            if handle in ready:
                return "exit", 0
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout", int(signal.SIGKILL)
            tree.reap()  # orphans of the command are this process's to bury

    def _finish(self, tree: Descendants, failure: NotStartedError | None) -> None:
        """End what is left, let the guard see that nobody is, and say that this is the end."""
        gone = tree.end(_ENDING)
        closed = True
        if self._guard is not None:
            closed = self._guard.wait_closed(_ENDING)
            self._guard.stop()
        if failure is not None:
            self._not_started(failure)
        if not (gone and closed):
            detail = "processes are left that could not be ended"
            fault = (
                wire.FAULT,
                self._clock(time.monotonic()),
                0,
                Code.SURVIVORS.value,
                "kill",
                detail,
            )
            self._emit([fault])
        received, answered = self._counters()
        self._emit([(wire.END, received, answered)])

    def _not_started(self, error: NotStartedError) -> None:
        """Tell why the command never ran: a fault of the mechanism, where one is behind it."""
        code, detail = error.code.value, error.detail
        if error.code in (Code.CANARY, Code.HANDSHAKE) and self._emit.fault is not None:
            _tag, _ms, _pid, fault, call, why = self._emit.fault
            code, detail = str(fault), f"{call}: {why}"
        self._emit([(wire.NOT_STARTED, code, detail)])


def _readable(file: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(file, select.POLLIN)
    return bool(poller.poll(int(seconds * 1000)))
