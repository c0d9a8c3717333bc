"""The command's process, from fork to exec: filter on, listener handed over, canary tried.

Until the listener is held by the supervisor the child makes no call that a filter could trap: it writes
the listener's number to a pipe, and the supervisor fetches it (pidfd_getfd). Then the canary goes through
the filter, then the exec.
"""

from __future__ import annotations

import os
import signal
import time
from errno import EBUSY, EINVAL, errorcode

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.channel import Channel, Receiver, send
from flowproof.run.kernel import WaitKillableError
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping
    from typing import NoReturn

    from flowproof.run.canary import Canary
    from flowproof.run.command import Command
    from flowproof.run.file_canary import FileCanary
    from flowproof.run.kernel import Kernel

__all__ = [
    "Child",
    "NotStartedError",
    "Spawn",
    "confine",
    "error_text",
    "fork_command",
    "install_code",
]


class NotStartedError(Exception):
    """The command cannot be started: why, as a code and in words."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Spawn(Value):
    """What to start: the filter's bytes, the command with its whole environment, the calls to try first:
    one of *canaries*, and the one about a file.
    """

    program: bytes
    command: Command
    environment: Mapping[str, str]
    canaries: tuple[Canary, ...]
    file_canary: FileCanary | None
    stdout_to_stderr: bool
    seconds: float


class Child:
    """The supervisor's side of the start-up: one step each, each with the code of its failure."""

    def __init__(
        self, kernel: Kernel, pid: int, answers: Receiver, go: int, deadline: float
    ) -> None:
        self.pid = pid
        self._kernel = kernel
        self._answers = answers
        self._go = go
        self._deadline = deadline

    def fetch_listener(self) -> int:
        """Return the run's listener, fetched from the child."""
        number = self._expect("listener")[0]
        assert isinstance(number, int)
        code = Code.CHILD_HANDLE
        try:
            pidfd = self._kernel.pidfd_open(self.pid)
            code = Code.CHILD_DESCRIPTOR
            try:
                return self._kernel.pidfd_getfd(pidfd, number)
            finally:
                os.close(pidfd)
        except OSError as error:
            raise NotStartedError(code, error_text(error)) from error

    def try_canary(self) -> tuple[int, int]:
        """Let the child make the known call; return which of the planned ones, and its errno."""
        self._tell(b"c")
        which, errno = self._expect("canary")
        assert isinstance(which, int)
        assert isinstance(errno, int)
        return which, errno

    def try_file_canary(self) -> int:
        """Let the child make the known call about a file; return its errno."""
        self._tell(b"f")
        (errno,) = self._expect("file-canary")
        assert isinstance(errno, int)
        return errno

    def execute(self) -> None:
        """Let the child become the command; return once it has."""
        self._tell(b"x")
        answer = self._answers.receive(self._deadline)
        if answer is not None:
            raise self._failure(answer)
        if not self._answers.ended:
            raise NotStartedError(Code.HANDSHAKE, "the command was not executed in time")

    def close(self) -> None:
        """Let go of both pipes."""
        self._answers.close()
        os.close(self._go)

    def _tell(self, word: bytes) -> None:
        try:
            os.write(self._go, word)
        except BrokenPipeError:  # the child is gone: what it said last tells why
            return

    def _expect(self, what: str) -> tuple[object, ...]:
        answer = self._answers.receive(self._deadline)
        if answer is None:
            when = "ended" if self._answers.ended else "did not answer in time"
            raise NotStartedError(Code.HANDSHAKE, f"the process of the command {when} before exec")
        if answer[0] != what:
            raise self._failure(answer)
        return answer[1:]

    @staticmethod
    def _failure(answer: tuple[object, ...]) -> NotStartedError:
        _what, code, detail = answer
        return NotStartedError(Code(code), str(detail))


def fork_command(kernel: Kernel, spawn: Spawn, signals: tuple[int, ...] = ()) -> Child:
    """Fork the command's process. The calling process has one thread, and is still dumpable.

    *signals* are ignored by the calling process and not by the command: an exec would hand that on.
    """
    answers, go = Channel(), Channel()
    pid = os.fork()
    if pid == 0:
        _become(kernel, spawn, signals, answers.writer(), go.reader())
    return Child(kernel, pid, answers.reader(), go.writer(), time.monotonic() + spawn.seconds)


def error_text(error: OSError) -> str:
    """Return the call that failed, if the seam named it, and the errno's name."""
    name = errorcode.get(error.errno or 0, str(error.errno))
    call, colon, _rest = (error.strerror or "").partition(":")
    return f"{call}: {name}" if colon else name


def install_code(error: OSError) -> Code:
    """Return the code for a filter that could not be installed."""
    if isinstance(error, WaitKillableError):
        return Code.WAIT_KILLABLE
    return Code.LISTENER_BUSY if error.errno == EBUSY else Code.FILTER_INSTALL


def _become(
    kernel: Kernel, spawn: Spawn, signals: tuple[int, ...], answers: int, go: Receiver
) -> NoReturn:
    """Become the command; whatever fails is told over *answers*. Never returns."""
    try:
        _prepare(spawn)
        planned = _open_canary(spawn.canaries) if spawn.canaries else None
        try:
            for _step in confine(kernel):
                pass
            listener = kernel.install_filter(spawn.program)
        except OSError as error:
            raise NotStartedError(install_code(error), error_text(error)) from error
        send(answers, "listener", listener)
        word = os.read(go.file, 1)
        os.close(listener)  # the supervisor has its own; a second one would keep calls waiting
        if word == b"c" and planned is not None:
            which, probe = planned
            send(answers, "canary", which, spawn.canaries[which].attempt(probe))
            word = os.read(go.file, 1)
        if word == b"f" and spawn.file_canary is not None:
            send(answers, "file-canary", spawn.file_canary.attempt())
            word = os.read(go.file, 1)
        if word == b"x":
            try:
                kernel.close_range(3, flags=n.CLOSE_RANGE_CLOEXEC)
            except OSError as error:
                raise NotStartedError(Code.DESCRIPTORS, error_text(error)) from error
            for number in signals:
                signal.signal(number, signal.SIG_DFL)
            _execute(spawn)
    except NotStartedError as error:
        send(answers, "failed", error.code.value, error.detail)
    except OSError as error:
        send(answers, "failed", Code.NOT_STARTED.value, error_text(error))
    finally:
        os._exit(127)


def confine(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Keep this process off gaining privileges, and off the processes of its user outside: it could act
    through their sockets, and end its supervisor.

    Yields each step of the self-test that was taken, and what there is to say of it.
    """
    code = Code.NO_NEW_PRIVS
    try:
        kernel.set_no_new_privs()
        yield "process.no-new-privs", ""
        code = Code.DOMAIN
        if kernel.seclusion() == "Landlock":
            kernel.shut_in()
            yield "process.domain", f"the command is shut in by Landlock, ABI {kernel.landlock()}"
        else:
            yield "process.domain", "this kernel has no Landlock to shut the command in"
    except OSError as error:
        raise NotStartedError(code, error_text(error)) from error


def _prepare(spawn: Spawn) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, a command does not
        signal.signal(number, signal.SIG_DFL)
    if not os.isatty(0):
        # Away from a terminal a `kill 0` of the command must not reach flowproof. On one, the command
        # stays in the foreground group, where it may read and Ctrl-C reaches it as it would alone.
        os.setpgid(0, 0)
    try:
        os.chdir(spawn.command.cwd)
    except OSError as error:
        detail = f"the folder to start in (`cwd`) cannot be entered: {error_text(error)}"
        raise NotStartedError(Code.COMMAND_NOT_FOUND, detail) from error
    if spawn.stdout_to_stderr:
        os.dup2(2, 1)


def _open_canary(planned: tuple[Canary, ...]) -> tuple[int, socket.socket]:
    """Return the first planned call that this host has a socket for, and that socket."""
    problem = "no call is planned"
    for which, canary in enumerate(planned):
        try:
            return which, canary.open()
        except OSError as error:
            problem = error_text(error)
    raise NotStartedError(Code.CANARY, f"no known call could be tried: {problem}")


def _execute(spawn: Spawn) -> NoReturn:
    """Replace this process by the first program that can be executed, in execvp(3)'s order."""
    failure: OSError = FileNotFoundError(2, "")
    for path in spawn.command.programs(spawn.environment):
        try:
            os.execve(path, spawn.command.argv, dict(spawn.environment))  # noqa: S606  no shell
        except (FileNotFoundError, NotADirectoryError) as error:
            if not isinstance(failure, PermissionError):
                failure = error
        except OSError as error:
            failure = error
            if error.errno not in (13, EINVAL):  # EACCES: the search goes on
                break
    name = os.path.basename(spawn.command.argv[0])
    detail = f"`{name}` cannot be executed: {error_text(failure)}"
    raise NotStartedError(Code.COMMAND_NOT_FOUND, detail) from failure
