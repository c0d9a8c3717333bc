"""One run from an artifact and a command to a record on disk: the process that outlives the others.

It tests the host, binds the artifact, starts the supervisor, takes down what that tells, and gives the exit
code. Whatever a user or a kernel can cause ends in a record that says so; what cannot be written down is an
evidence error.
"""

from __future__ import annotations

import mmap
import os
import platform
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from struct import Struct

from flowproof.exit_codes import ExitCode
from flowproof.record import wire
from flowproof.record.codes import Code
from flowproof.record.model import End
from flowproof.record.store import RunFolder, UnwritableRecord, new_run_id
from flowproof.run.account import Account
from flowproof.run.bind import Bound, bind
from flowproof.run.canary import canaries
from flowproof.run.channel import Channel
from flowproof.run.command import Command
from flowproof.run.contain import contain
from flowproof.run.descendants import Descendants
from flowproof.run.file_canary import file_canary
from flowproof.run.kernel import Kernel
from flowproof.run.launch import Spawn, error_text
from flowproof.run.selftest import self_test
from flowproof.run.steps import first_failure
from flowproof.run.supervisor import Supervisor
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flowproof.artifact.model import Artifact, Program
    from flowproof.record.model import RunRecord
    from flowproof.run.channel import Receiver
    from flowproof.run.contain import Emit, Guard

    Progress = Callable[[float, int, int], None]

__all__ = ["CARRIED_LANES", "Command", "Outcome", "run"]

_HANDSHAKE = 10.0
_OVERDUE = 15.0
"""Seconds past its own limits after which a supervisor that has not ended is taken for lost."""
_ENDING = 5.0
_TICK = 0.5
_PIPE_BYTES = 1 << 20
_INSTRUCTION = Struct("=HBBI")  # struct sock_filter
_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
CARRIED_LANES = frozenset({"connect", "files"})
"""The lanes that this runner engages."""


class Outcome(Value):
    """What became of a run. *folder* is None where no record could be written; *record* is what would have
    been. *reasons* are the sentences behind the exit code.
    """

    record: RunRecord
    folder: str | None
    exit_code: ExitCode
    reasons: tuple[str, ...]


def run(
    artifact: Artifact,
    command: Command,
    *,
    record_root: str,
    stdout_to_stderr: bool = False,
    kernel: Kernel | None = None,
    progress: Progress | None = None,
    run_set: str | None = None,
    shard: str | None = None,
    proven: bool = False,
) -> Outcome:
    """Run *command* under *artifact*; leave the record under ``<record_root>/.flowproof/runs``.

    *proven* tells that whoever calls has proved the artifact; what it says of itself is no proof, and no rule
    passes by it.

    *progress* is told about twice a second, from when the command runs under its filter to its end: the
    seconds since, and how many attempts were let through and refused so far. Never raises for what a user
    or a kernel can cause.
    """
    run_id = new_run_id(time.time())
    account = Account(artifact, command, run_id, run_set, shard, proven=proven)
    try:
        folder = RunFolder(record_root, run_id)
    except UnwritableRecord as error:
        account.block(Code.NOT_STARTED, str(error))
        return _unwritten(account, str(error))
    steps = _Run(account, folder, kernel or Kernel(), progress, stdout_to_stderr)
    try:
        with steps.interrupts():
            folder.write(account.record(complete=False))  # can it be written at all
            steps.go()
            account.close_lanes()
            folder.link_lanes()
            record = account.record(complete=True)
            folder.write(record)
            folder.check_place()
    except UnwritableRecord as error:
        return _unwritten(account, str(error))
    finally:
        folder.close()
    return Outcome(record, folder.path, record.exit.code, record.exit.because)


def _unwritten(account: Account, why: str) -> Outcome:
    record = account.record(complete=False)
    reasons = tuple(dict.fromkeys((why, *record.exit.because)))
    return Outcome(record, None, ExitCode.EVIDENCE, reasons)


class _Run:
    """One run on its way through its steps. A step that cannot be taken is blocked, and the rest skipped."""

    def __init__(
        self,
        account: Account,
        folder: RunFolder,
        kernel: Kernel,
        progress: Progress | None,
        stdout_to_stderr: bool,
    ) -> None:
        self._account = account
        self._folder = folder
        self._kernel = kernel
        self._progress = progress
        self._stdout_to_stderr = stdout_to_stderr
        self._interrupted: int | None = None
        self._control: int | None = None

    def go(self) -> None:
        """Take the steps."""
        program = self._program()
        if program is None or not self._host_can():
            return
        bound = self._bound()
        if bound is None:
            return
        trapped = frozenset(call.call for call in program.trapped)
        self._account.planned = canaries(bound.tables, bound.decisions, trapped)
        self._account.planned_file = file_canary(trapped)
        if not self._account.planned and self._account.planned_file is None:
            self._block(Code.UNASSERTED, "no rule of the control needs to see a call")
            return
        if self._interrupted is not None:
            self._block(Code.INTERRUPTED, "the run was interrupted before its command")
            return
        self._account.engage(self._folder, bound.names)
        try:
            self._account.seclusion = self._kernel.seclusion() or "the rules of this host"
        except OSError as error:
            self._block(Code.DOMAIN, error_text(error))
            return
        self._contained(program, bound)

    def _block(self, code: Code, detail: str) -> None:
        self._account.block(code, detail)

    def _program(self) -> Program | None:
        """Return the program for this machine."""
        artifact = self._account.artifact
        machine = platform.machine()
        if not sys.platform.startswith("linux"):
            self._block(
                Code.PLATFORM, f"there is no runner for {platform.system() or sys.platform}"
            )
        elif artifact.program is None or artifact.program.arch != machine:
            self._block(Code.PLATFORM, f"the artifact is for {artifact.target}, this is {machine}")
        elif not CARRIED_LANES.issuperset(artifact.lanes):
            left = ", ".join(sorted(set(artifact.lanes) - CARRIED_LANES))
            self._block(Code.NOT_CARRIED, f"the runner does not carry the lane {left}")
        elif not artifact.lanes:
            self._block(Code.UNASSERTED, "no rule of the control engages a lane")
        else:
            return artifact.program
        return None

    def _host_can(self) -> bool:
        self._account.capabilities = self_test(self._kernel)
        failure = first_failure(self._account.capabilities)
        if failure is None:
            return True
        self._block(failure.code or Code.SELF_TEST, f"self-test {failure.id}: {failure.detail}")
        return False

    def _bound(self) -> Bound | None:
        command = self._account.command
        bound = bind(self._account.artifact, os.environ, cwd=command.folder)
        if isinstance(bound, Bound):
            self._account.bindings = bound.bindings
            return bound
        for code, detail in bound:
            self._block(code, detail)
        return None

    def _contained(self, program: Program, bound: Bound) -> None:
        """Start the supervisor, listen to it until its end, see that nothing is left of its tree."""
        kernel = self._kernel
        code = Code.CHILD_PROCESS
        try:
            spare = frozenset(kernel.children(os.getpid()))
            code = Code.SUBREAPER
            kernel.set_subreaper()
            code = Code.THREADS
            events, pid = self._fork(program, bound)
        except OSError as error:
            self._block(code, error_text(error))
            return
        self._shut_memory()
        try:
            self._listen(events, pid)
        finally:
            self._close_control()
            events.close()
            if not Descendants(kernel, spare).end(_ENDING):
                self._account.fault(Code.SURVIVORS, "kill", "processes are left")
            with suppress(OSError):  # both were for the run only
                kernel.set_dumpable(True)
            with suppress(OSError):
                kernel.set_subreaper(False)

    def _fork(self, program: Program, bound: Bound) -> tuple[Receiver, int]:
        command = self._account.command
        spawn = Spawn(
            program=b"".join(
                _INSTRUCTION.pack(i.code, i.jt, i.jf, i.k) for i in program.instructions
            ),
            command=command,
            environment=command.environment(os.environ),
            canaries=self._account.planned,
            file_canary=self._account.planned_file,
            stdout_to_stderr=self._stdout_to_stderr,
            seconds=_HANDSHAKE,
        )
        self._page = mmap.mmap(-1, mmap.PAGESIZE)  # shared: it outlives the supervisor
        page = self._page
        events, control = Channel(), Channel()
        import fcntl  # noqa: PLC0415  only a Unix has it

        with suppress(OSError):  # a larger pipe is a favour
            fcntl.fcntl(events.ends[0], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

        def make_guard(
            kernel: Kernel, listener: int, emit: Emit, clock: Callable[[float], int]
        ) -> Guard:
            return Supervisor(kernel, listener, bound, program, emit, page, clock)

        pid = os.fork()
        if pid == 0:
            told, asked = events.writer(), control.reader().file
            contain(self._kernel, spawn, make_guard, told, asked, self._counters)
        self._control = control.writer()
        return events.reader(), pid

    def _counters(self) -> tuple[int, int]:
        received, answered = wire.COUNTERS.unpack_from(self._page, 0)
        return received, answered

    def _shut_memory(self) -> None:
        """Keep the contained processes, of the same user, out of the record in the making."""
        try:
            self._kernel.set_dumpable(False)
        except OSError as error:
            self._account.fault(Code.UNDUMPABLE, "prctl", error_text(error))

    def _listen(self, events: Receiver, pid: int) -> None:
        """Take down what the supervisor tells, to its end or its death."""
        account = self._account
        patience = _Patience(account.command.timeout)
        began: float | None = None
        while not events.ended:
            if events.wait(_TICK):
                events.read()
            for told in events.take():
                account.take(told)
            if account.executed and self._progress is not None:
                began = time.monotonic() if began is None else began
                self._progress(time.monotonic() - began, *account.attempts)
            if patience.is_over(pid, self._interrupted is not None):
                os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        account.lost += events.torn
        if not account.ended or status != 0:
            account.ended = False
            account.received, account.answered = self._counters()
        if (
            self._interrupted is not None
            and account.end is not None
            and account.end.how == "signal"
        ):
            account.end = End("interrupt", self._interrupted)

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """Turn Ctrl-C and SIGTERM into the end of the run, with a complete record."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may take signals
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            if before[number] is not signal.SIG_IGN:  # as nohup(1) wants it
                signal.signal(number, self._interrupt)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: object) -> None:
        self._interrupted = number
        if self._control is not None:
            with suppress(OSError):  # it is gone already
                os.write(self._control, bytes([number]))

    def _close_control(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None


class _Patience:
    """How long a supervisor is waited for: it may be stopped, or stuck, by what it contains."""

    def __init__(self, timeout: float | None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout + _OVERDUE
        self._interrupted = False
        self._looked = time.monotonic()
        self._stopped = 0

    def is_over(self, pid: int, interrupted: bool) -> bool:
        """Return whether the supervisor is to be given up."""
        now = time.monotonic()
        if interrupted and not self._interrupted:
            self._interrupted = True
            self._deadline = now + _OVERDUE
        if now - self._looked >= 1.0:
            self._looked = now
            # Twice in a row: after a Ctrl-Z the whole group is continued one by one.
            self._stopped = self._stopped + 1 if _is_stopped(pid) else 0
        return self._stopped >= 2 or (self._deadline is not None and now > self._deadline)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # a decoder would be loaded from disk, now
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False
