"""Both halves of the self-test: a supervisor that goes through the steps, and a child that is contained."""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys
import time
from contextlib import suppress
from errno import ECONNREFUSED, ENETUNREACH, EPERM, errorcode
from struct import Struct

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.channel import Channel, Receiver, send
from flowproof.run.launch import NotStartedError, confine, error_text, install_code
from flowproof.run.outsider import Outsider
from flowproof.run.steps import CODE_OF_STEP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from flowproof.run.kernel import Kernel

__all__ = ["Probe", "StepError", "how_it_died"]

_INSTRUCTION = Struct("=HBBI")
_NOTIFICATION = Struct("=QIIiIQ6Q")  # struct seccomp_notif with its struct seccomp_data
_RESPONSE = Struct("=QqiI")
_TICK = 50  # milliseconds
_REFUSED = ("127.0.0.1", 9)
_ALLOWED = ("127.0.0.1", 10)


class StepError(Exception):
    """A step failed: its code where it is not the step's own, and what was seen."""

    def __init__(self, detail: str, code: Code | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code


class Probe:
    """The supervisor's half of the self-test."""

    def __init__(self, kernel: Kernel, out: int, deadline: float) -> None:
        self._kernel = kernel
        self._out = out
        self._deadline = deadline
        self._child = 0
        self._outsider = Outsider()

    def run(self) -> StepError | None:
        """Go through the steps; return the failure that ended them."""
        try:
            self._steps()
        except StepError as error:
            return error
        except OSError as error:
            return StepError(error_text(error) + self._scope(error))
        except Exception as error:  # noqa: BLE001  a bug here must read as a failed step
            return StepError(f"bug in the self-test: {error!r}", Code.SELF_TEST)
        finally:
            for pid in (self._child, self._outsider.pid):
                if pid:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
        return None

    def _scope(self, error: OSError) -> str:
        """Return what Yama has to do with a refusal: from scope 2 on it wants CAP_SYS_PTRACE."""
        scope = self._kernel.ptrace_scope()
        return f" (Yama's ptrace_scope is {scope})" if error.errno == EPERM and scope > 1 else ""

    def _passed(self, step: str, detail: str = "") -> None:
        send(self._out, step, detail, None)

    def _judge(self, step: str, reached: object) -> None:
        """Report a step that only lowers the tier: *reached* names what the child could do."""
        if reached:
            send(self._out, step, f"the command could use {reached}", CODE_OF_STEP[step].value)
        else:
            self._passed(step)

    def _steps(self) -> None:
        kernel = self._kernel
        sizes = kernel.notification_sizes()
        if sizes != n.NOTIF_SIZES:
            raise StepError(f"sizes {sizes}, not {n.NOTIF_SIZES}")
        self._passed("seccomp.sizes")
        kernel.set_subreaper()
        self._passed("process.subreaper")
        self._outsider = Outsider(kernel)
        number, answers = self._start_child()
        self._passed("seccomp.install")
        kernel.set_dumpable(False)
        self._passed("process.dumpable")
        if self._child not in kernel.children(os.getpid()):
            raise StepError("the child is not among the children")
        kernel.status(self._child)
        kernel.executable(self._child)
        self._passed("process.children")
        pidfd = kernel.pidfd_open(self._child)
        self._passed("pidfd.open")
        listener = kernel.pidfd_getfd(pidfd, number)
        self._passed("pidfd.listener")
        os.write(self._go, b"g")
        notification = self._receive(listener, answers)
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
        self._perform(listener, socket_, answers)
        self._expect(answers, ("performed", 0))
        self._passed("seccomp.perform")
        self._expect(answers, ("closed", 0), Code.DESCRIPTORS)
        self._passed("descriptors.close")
        self._reach(answers)
        self._end_child()
        self._passed("process.end")

    def _reach(self, answers: Receiver) -> None:
        answer = answers.receive(self._deadline)
        if answer is None or answer[0] != "reached":
            raise StepError(self._silence(), Code.SELF_TEST)
        for step, reached in zip(("reach.processes", "reach.signals"), answer[1:], strict=True):
            self._judge(step, reached)

    def _end_child(self) -> None:
        self._kernel.kill(self._child, signal.SIGKILL)
        status = os.waitpid(self._child, 0)[1]
        self._child = 0
        if not os.WIFSIGNALED(status):
            raise StepError("the child was not ended")

    def _start_child(self) -> tuple[int, Receiver]:
        answers, go = Channel(), Channel()
        self._child = os.fork()
        if self._child == 0:
            _run_child(self._kernel, answers, go, self._outsider)
        self._go = go.writer()
        receiver = answers.reader()
        while (answer := receiver.receive(self._deadline)) and answer[0] == "step":
            self._passed(str(answer[1]), str(answer[2]))
        if answer is None:
            raise StepError(self._silence())
        if answer[0] != "listener":
            _what, text, code = answer
            raise StepError(str(text), Code(code))
        number = answer[1]
        assert isinstance(number, int)
        return number, receiver

    def _silence(self) -> str:
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if pid == 0:
            return "the child did not answer in time"
        self._child = 0
        return how_it_died(status).replace("the probe", "the child")

    def _receive(self, listener: int, answers: Receiver) -> tuple[int, ...]:
        while not self._kernel.poll(listener, _TICK):
            if answers.wait(0):
                # The child went on: an errno of an outer filter comes before our notification.
                answer = answers.receive(self._deadline) or ("nothing", 0)
                name = errorcode.get(int(str(answer[1])), "no errno")
                raise StepError(f"connect: {name} before the supervisor saw it", Code.PERFORM)
            if time.monotonic() > self._deadline:
                raise StepError("no call arrived in time")
        buffer = bytearray(_NOTIFICATION.size)
        self._kernel.receive(listener, buffer)
        found = _NOTIFICATION.unpack(buffer)
        if found[1] != self._child:
            raise StepError("the call is another process's", Code.SELF_TEST)
        return found

    def _read_address(self, notification: tuple[int, ...], expected: tuple[str, int]) -> None:
        read = self._kernel.read_memory(self._child, notification[7], notification[8])
        raw = Struct("=H").pack(n.AF_INET) + expected[1].to_bytes(2, "big")
        raw += socket.inet_aton(expected[0])
        if read[:8] != raw:
            raise StepError("the memory of the child does not hold its address")

    def _valid(self, listener: int, notification: tuple[int, ...]) -> None:
        self._kernel.id_valid(listener, bytearray(notification[0].to_bytes(8, sys.byteorder)))

    def _answer(self, listener: int, notification: tuple[int, ...], error: int) -> None:
        response = bytearray(_RESPONSE.pack(notification[0], 0, error, 0))
        self._kernel.send(listener, response)

    def _perform(self, listener: int, socket_: int, answers: Receiver) -> None:
        """Perform the child's second connect on the duplicate of its socket."""
        notification = self._receive(listener, answers)
        self._read_address(notification, _ALLOWED)
        raw = self._kernel.read_memory(self._child, notification[7], notification[8])
        try:
            self._kernel.connect(socket_, raw)
        except OSError as error:
            if error.errno != ENETUNREACH:
                raise
            way = "connect: ENETUNREACH: loopback is down; bring it up: `ip link set lo up`"
            raise StepError(way) from error
        self._answer(listener, notification, 0)

    def _expect(self, answers: Receiver, wanted: tuple[str, int], code: Code | None = None) -> None:
        answer = answers.receive(self._deadline)
        if answer is None:
            raise StepError(self._silence(), code)
        if answer != wanted:
            found = errorcode.get(answer[1], str(answer[1])) if isinstance(answer[1], int) else ""
            raise StepError(f"the child saw {answer[0]} {found}".strip(), code or Code.SELF_TEST)


def how_it_died(status: int) -> str:
    """Return what a wait status says of a probe that gave no answer."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGKILL:
        return "the step did not end in time"
    if number:
        return f"the probe was ended by {signal.Signals(number).name} in this step"
    return "the probe ended in this step"


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


def _run_child(kernel: Kernel, answers: Channel, go: Channel, outsider: Outsider) -> NoReturn:
    """Play the command: install the filter, try a call that is refused and one that is not, and to reach
    processes outside.
    """
    out = answers.writer()
    wait = go.reader()
    try:
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            for step, detail in confine(kernel):
                send(out, "step", step, detail)
            listener = kernel.install_filter(_program())
        except NotStartedError as error:
            send(out, "failed", error.detail, error.code.value)
            os._exit(0)
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
        send(out, "reached", *outsider.reached(kernel))
        os.read(wait.file, 1)  # until it is ended
    finally:
        os._exit(0)
