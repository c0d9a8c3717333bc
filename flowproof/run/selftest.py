"""The self-test before each run: every mechanism call for real, in a throwaway child.

What it finds decides the tier; a probe that only asks whether a call exists decides nothing. It runs in
processes of its own, so that an outer filter which kills or hangs a caller ends the probe and not the run.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys
import time
from errno import ECONNREFUSED, ENETUNREACH, errorcode
from struct import Struct

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.channel import Channel, Receiver, send
from flowproof.run.kernel import Kernel
from flowproof.run.launch import error_text, install_code
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["STEPS", "Capability", "first_failure", "self_test"]

_SECONDS = 5.0
_INSTRUCTION = Struct("=HBBI")
_NOTIFICATION = Struct("=QIIiIQ6Q")  # struct seccomp_notif with its struct seccomp_data
_RESPONSE = Struct("=QqiI")
_REFUSED = ("127.0.0.1", 9)
_ALLOWED = ("127.0.0.1", 10)

STEPS: tuple[tuple[str, Code, str], ...] = (
    ("platform", Code.PLATFORM, "Linux on x86_64 or aarch64"),
    ("seccomp.sizes", Code.NOTIFICATION_SIZES, "the kernel's structures are the known ones"),
    ("process.subreaper", Code.SELF_TEST, "orphans fall to the supervisor"),
    ("seccomp.install", Code.FILTER_INSTALL, "a filter with a listener, waits killable"),
    ("process.dumpable", Code.SELF_TEST, "the supervisor shuts its memory"),
    ("process.children", Code.CHILD_PROCESS, "/proc tells children and threads"),
    ("pidfd.open", Code.CHILD_DESCRIPTOR, "a handle of the child"),
    ("pidfd.listener", Code.CHILD_DESCRIPTOR, "the listener is fetched without a trapped call"),
    ("seccomp.receive", Code.LISTENER_RECEIVE, "a trapped call arrives"),
    ("process.memory", Code.CHILD_MEMORY, "its address is read"),
    ("pidfd.descriptor", Code.CHILD_DESCRIPTOR, "its socket is fetched"),
    ("seccomp.valid", Code.LISTENER_RECEIVE, "the caller is still there"),
    ("seccomp.refuse", Code.LISTENER_SEND, "the call is refused and the program sees it"),
    ("seccomp.perform", Code.PERFORM, "a call is performed for the program"),
    ("descriptors.close", Code.SELF_TEST, "inherited descriptors are shut"),
)
"""Each step: its id, the code of its failure, and what it shows."""

_CODE = {step: code for step, code, _ in STEPS}


class Capability(Value):
    """One step of the self-test: *code* is None where it is *ok*; *detail* says what was seen."""

    id: str
    ok: bool
    code: Code | None
    detail: str


class _StepError(Exception):
    """A step failed: its code where it is not the step's own, and what was seen."""

    def __init__(self, detail: str, code: Code | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code


def first_failure(capabilities: tuple[Capability, ...]) -> Capability | None:
    """Return the step that decides that nothing can be enforced here, or None."""
    return next((found for found in capabilities if not found.ok), None)


def self_test(kernel: Kernel | None = None, seconds: float = _SECONDS) -> tuple[Capability, ...]:
    """Return what this host can do, step by step; after a failing step, the rest was not reached."""
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in n.SYSCALLS:
        return _rows([], f"this is {platform.system() or sys.platform} on {machine}", None)
    found: list[tuple[str, str]] = [("platform", f"Linux {platform.release()} on {machine}")]
    failure: tuple[str, Code | None] | None
    try:
        failure = _probe(kernel or Kernel(), seconds, found)
    except OSError as error:  # no process or pipe to be had
        failure = (error_text(error), Code.SELF_TEST)
    if failure is None:
        return _rows(found, None, None)
    return _rows(found, *failure)


def _rows(
    found: list[tuple[str, str]], failure: str | None, code: Code | None
) -> tuple[Capability, ...]:
    passed = dict(found)
    rows = []
    for step, own, shows in STEPS:
        if step in passed:
            rows.append(Capability(step, True, None, passed[step] or shows))
        elif failure is not None:
            rows.append(Capability(step, False, code or own, failure))
            failure, code = None, None
        else:
            rows.append(Capability(step, False, Code.SELF_TEST, "not reached"))
    return tuple(rows)


def _probe(
    kernel: Kernel, seconds: float, found: list[tuple[str, str]]
) -> tuple[str, Code | None] | None:
    """Run the probe; add each step that passed to *found*, return what failed and its code."""
    results = Channel()
    pid = os.fork()
    if pid == 0:
        _run_supervisor(kernel, results, seconds)
    reports = results.reader()
    # The probe gives up by itself first, and then says at which step.
    deadline = time.monotonic() + seconds + 1.0
    failure: tuple[str, Code | None] | None = ("the probe said nothing", None)
    ended = False
    while (report := reports.receive(deadline)) is not None:
        what, text, code = report
        if what == "end":
            failure, ended = None, True
        elif what == "failed":
            failure, ended = (str(text), Code(code) if code else None), True
        else:
            found.append((str(what), str(text)))
    reports.close()
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if not ended:
        return _how_it_died(status), None
    return failure


def _how_it_died(status: int) -> str:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGKILL:
        return "the step did not end in time"
    if number:
        return f"the probe was ended by {signal.Signals(number).name} in this step"
    return "the probe ended in this step"


def _run_supervisor(kernel: Kernel, results: Channel, seconds: float) -> NoReturn:
    """Play the supervisor: go through the steps, report each. Never returns."""
    out = results.writer()
    try:
        failed = _Probe(kernel, out, time.monotonic() + seconds).run()
        if failed is None:
            send(out, "end", "", None)
        else:
            send(out, "failed", failed.detail, failed.code.value if failed.code else None)
    finally:
        os._exit(0)


class _Probe:
    """The supervisor's half of the self-test."""

    def __init__(self, kernel: Kernel, out: int, deadline: float) -> None:
        self._kernel = kernel
        self._out = out
        self._deadline = deadline
        self._child = 0

    def run(self) -> _StepError | None:
        """Go through the steps; return the failure that ended them."""
        try:
            self._steps()
        except _StepError as error:
            return error
        except OSError as error:
            return _StepError(error_text(error))
        except Exception as error:  # noqa: BLE001  a bug here must read as a failed step
            return _StepError(f"bug in the self-test: {error!r}", Code.SELF_TEST)
        finally:
            if self._child:
                os.kill(self._child, signal.SIGKILL)
        return None

    def _passed(self, step: str, detail: str = "") -> None:
        send(self._out, step, detail, None)

    def _steps(self) -> None:
        kernel = self._kernel
        sizes = kernel.notification_sizes()
        if sizes != n.NOTIF_SIZES:
            raise _StepError(f"sizes {sizes}, not {n.NOTIF_SIZES}")
        self._passed("seccomp.sizes")
        kernel.set_subreaper()
        self._passed("process.subreaper")
        number, answers = self._start_child()
        self._passed("seccomp.install")
        kernel.set_dumpable(False)
        self._passed("process.dumpable")
        if self._child not in kernel.children(os.getpid()):
            raise _StepError("the child is not among the children")
        kernel.status(self._child)
        kernel.executable(self._child)
        self._passed("process.children")
        pidfd = kernel.pidfd_open(self._child)
        self._passed("pidfd.open")
        listener = kernel.pidfd_getfd(pidfd, number)
        self._passed("pidfd.listener")
        os.write(self._go, b"g")
        notification = self._receive(listener)
        self._passed("seccomp.receive")
        self._read_address(notification, _REFUSED)
        self._passed("process.memory")
        socket_ = kernel.pidfd_getfd(pidfd, notification[6] & 0xFFFFFFFF)
        self._passed("pidfd.descriptor")
        self._valid(listener, notification)
        self._passed("seccomp.valid")
        self._answer(listener, notification, -ECONNREFUSED)
        self._expect(answers, ("refused", ECONNREFUSED))
        self._passed("seccomp.refuse")
        self._perform(listener, socket_)
        self._expect(answers, ("performed", 0))
        self._passed("seccomp.perform")
        self._expect(answers, ("closed", 0), Code.SELF_TEST)
        self._passed("descriptors.close")

    def _start_child(self) -> tuple[int, Receiver]:
        answers, go = Channel(), Channel()
        self._child = os.fork()
        if self._child == 0:
            _run_child(self._kernel, answers, go)
        self._go = go.writer()
        receiver = answers.reader()
        answer = receiver.receive(self._deadline)
        if answer is None:
            raise _StepError(self._silence())
        if answer[0] != "listener":
            _what, text, code = answer
            raise _StepError(str(text), Code(code))
        number = answer[1]
        assert isinstance(number, int)
        return number, receiver

    def _silence(self) -> str:
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if pid == 0:
            return "the child did not answer in time"
        self._child = 0
        return _how_it_died(status).replace("the probe", "the child")

    def _receive(self, listener: int) -> tuple[int, ...]:
        left = max(int((self._deadline - time.monotonic()) * 1000), 1)
        if not self._kernel.poll(listener, left):
            raise _StepError("no call arrived in time")
        buffer = bytearray(_NOTIFICATION.size)
        self._kernel.receive(listener, buffer)
        found = _NOTIFICATION.unpack(buffer)
        if found[1] != self._child:
            raise _StepError("the call is another process's", Code.SELF_TEST)
        return found

    def _read_address(self, notification: tuple[int, ...], expected: tuple[str, int]) -> None:
        read = self._kernel.read_memory(self._child, notification[7], notification[8])
        raw = Struct("=H").pack(n.AF_INET) + expected[1].to_bytes(2, "big")
        raw += socket.inet_aton(expected[0])
        if read[:8] != raw:
            raise _StepError("the memory of the child does not hold its address")

    def _valid(self, listener: int, notification: tuple[int, ...]) -> None:
        self._kernel.id_valid(listener, bytearray(notification[0].to_bytes(8, sys.byteorder)))

    def _answer(self, listener: int, notification: tuple[int, ...], error: int) -> None:
        response = bytearray(_RESPONSE.pack(notification[0], 0, error, 0))
        self._kernel.send(listener, response)

    def _perform(self, listener: int, socket_: int) -> None:
        """Perform the child's second connect on the duplicate of its socket."""
        notification = self._receive(listener)
        self._read_address(notification, _ALLOWED)
        raw = self._kernel.read_memory(self._child, notification[7], notification[8])
        try:
            self._kernel.connect(socket_, raw)
        except OSError as error:
            if error.errno != ENETUNREACH:
                raise
            way = "connect: ENETUNREACH: loopback is down; bring it up: `ip link set lo up`"
            raise _StepError(way) from error
        self._answer(listener, notification, 0)

    def _expect(self, answers: Receiver, wanted: tuple[str, int], code: Code | None = None) -> None:
        answer = answers.receive(self._deadline)
        if answer is None:
            raise _StepError(self._silence(), code)
        if answer != wanted:
            found = errorcode.get(answer[1], str(answer[1])) if isinstance(answer[1], int) else ""
            raise _StepError(f"the child saw {answer[0]} {found}".strip(), code or Code.SELF_TEST)


def _program() -> bytes:
    """Return a filter that traps connect(2) and nothing else."""
    machine = platform.machine()
    ret_allow = (n.BPF_RET_K, 0, 0, n.SECCOMP_RET_ALLOW)
    instructions = (
        (n.BPF_LD_W_ABS, 0, 0, 4),  # seccomp_data.arch
        (n.BPF_JMP_JEQ_K, 0, 3, n.AUDIT_ARCH[machine]),
        (n.BPF_LD_W_ABS, 0, 0, 0),  # seccomp_data.nr
        (n.BPF_JMP_JEQ_K, 0, 1, n.SYSCALLS[machine]["connect"]),
        (n.BPF_RET_K, 0, 0, n.SECCOMP_RET_USER_NOTIF),
        ret_allow,
    )
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in instructions)


def _run_child(kernel: Kernel, answers: Channel, go: Channel) -> NoReturn:
    """Play the command: install the filter, try a call that is refused and one that is not."""
    out = answers.writer()
    wait = go.reader()
    try:
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            kernel.set_no_new_privs()
            listener = kernel.install_filter(_program())
        except OSError as error:
            send(out, "failed", error_text(error), install_code(error).value)
            os._exit(0)
        send(out, "listener", listener)
        os.read(wait.file, 1)
        os.close(listener)
        send(out, "refused", probe.connect_ex(_REFUSED))
        send(out, "performed", probe.connect_ex(_ALLOWED))
        try:
            kernel.close_range(probe.fileno(), probe.fileno())
            os.fstat(probe.fileno())
        except OSError as error:
            closed = error.errno == 9  # EBADF: it was open before
            send(out, "closed", 0 if closed else error.errno)
        else:
            send(out, "closed", -1)
    finally:
        os._exit(0)
