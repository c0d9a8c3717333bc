"""The thread whose call is being judged: its memory, its descriptors, and who it is."""

from __future__ import annotations

import os
from errno import EBADF, EFAULT, EINTR, EIO, EMFILE, ENOENT, ENOTSOCK, EPERM, ESRCH, errorcode

from flowproof.record.codes import Code
from flowproof.run.numbers import ERESTARTSYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.run.calls.target import Target
    from flowproof.run.decide import Decisions
    from flowproof.run.journal import Journal
    from flowproof.run.kernel import Kernel
    from flowproof.run.tree import Tree

__all__ = [
    "PROGRAM_AGE",
    "AnswerError",
    "Caller",
    "FaultError",
    "Known",
    "Operation",
    "StaleError",
    "Work",
]

_PIDFDS = 128
"""Most pidfds that a reader keeps; a run with more threads than that opens them anew."""
_FEWEST = 8
"""What a reader keeps at least, however many others there are."""
_PROGRAMS = 1024
PROGRAM_AGE = 1.0
"""Seconds for which a program's name is believed: exec changes it, and no notification says so."""


class StaleError(Exception):
    """The caller is gone: there is nobody to answer, and nothing to record."""


class AnswerError(Exception):
    """The call has no effect, bare as here: the program gets this errno and nothing is recorded."""

    def __init__(self, errno: int) -> None:
        super().__init__(errno)
        self.errno = errno


class FaultError(Exception):
    """The mechanism could not tell or do: recorded as a fault, and the program gets *errno*."""

    def __init__(self, code: Code, detail: str, errno: int = EPERM) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.errno = errno


class Operation:
    """A call being performed, as the watchdog sees it.

    *withdrawn* is set by the watchdog when the call must end: ``signal`` (the program has a handler to
    run), ``restart`` (the same, and the kernel will restart or interrupt it rightly) or ``dead``.
    """

    __slots__ = ("call", "id", "looked", "started", "thread", "tid", "withdrawn")

    def __init__(self) -> None:
        self.id = 0
        self.tid = 0
        self.call = ""
        self.thread = 0
        self.started = 0.0
        self.looked = 0.0
        self.withdrawn: str | None = None

    def interrupted(self, kernel: Kernel, duplicate: int) -> int:
        """Return the negative errno of a withdrawn call: one that restarts where the kernel is sure to.

        ERESTARTSYS becomes EINTR or a restart when the kernel delivers the signal. Without one pending it
        would reach the program as errno 512; and with a send timeout the kernel itself says EINTR.
        """
        if self.withdrawn == "restart" and not kernel.send_timeout(duplicate):
            return -ERESTARTSYS
        return -EINTR


class Work:
    """The rest of a call that may sleep: *perform* gives its result, *descriptors* are closed after."""

    __slots__ = ("cost", "descriptors", "perform")

    def __init__(
        self, perform: Callable[[Operation], int], descriptors: tuple[int, ...], cost: int = 0
    ) -> None:
        self.perform = perform
        self.descriptors = descriptors
        self.cost = cost


class Known:
    """What readers have found out and share: judged addresses, and who a call site belongs to."""

    __slots__ = ("programs", "targets")

    def __init__(self) -> None:
        self.targets: dict[tuple[bytes, int], Target] = {}
        self.programs: dict[tuple[int, int], tuple[float, tuple[int, str]]] = {}


class Caller:
    """One reader's view of the calling thread, told by *tid*, *pointer* and *notification*.

    *crowded*: so many calls sleep that the reader no longer risks to. *keeps*: the most pidfds that it
    keeps, and keeps while it sleeps. *privileged*: the supervisor is root,
    so that whom it acts for makes a difference.
    """

    def __init__(
        self,
        kernel: Kernel,
        listener: int,
        decisions: Decisions,
        journal: Journal,
        tree: Tree,
        known: Known | None = None,
    ) -> None:
        known = known or Known()
        self.kernel = kernel
        self.listener = listener
        self.decisions = decisions
        self.journal = journal
        self.tree = tree
        self.operation = Operation()
        self.targets = known.targets
        self.privileged = os.geteuid() == 0
        self.tid = 0
        self.pointer = 0
        self.crowded = False
        self.keeps = _PIDFDS
        self.notification = bytearray(80)
        self.reach = kernel.reach()
        self.pidfds: dict[int, int] = {}
        self.programs = known.programs

    def share(self, readers: int) -> None:
        """Keep fewer pidfds where *readers* others keep some: one that sleeps holds on to its own."""
        self.keeps = max(_PIDFDS // (1 + readers), _FEWEST)

    def close(self) -> None:
        """Close what the reader kept open."""
        for pidfd in self.pidfds.values():
            self.kernel.close(pidfd)
        self.pidfds.clear()

    # --- is it still there ---

    def check(self) -> None:
        """Raise `StaleError` if the caller is gone: what was read may be another's then."""
        try:
            self.kernel.id_valid(self.listener, self.notification)
        except OSError as error:
            if error.errno == ENOENT:
                raise StaleError from error
            raise FaultError(Code.LISTENER_VALID, _detail("ID_VALID", error)) from error

    def fault(self, code: Code, step: str, error: OSError, errno: int = EPERM) -> FaultError:
        """Return the fault that a failed step is, once it is known that the caller is still there."""
        self.check()
        return FaultError(code, _detail(step, error), errno)

    def note_fault(self, fault: FaultError, call: str) -> None:
        """Record a fault that does not end the call."""
        self.journal.fault(self.who()[0], fault.code, call, fault.detail)

    # --- memory ---

    def read(self, address: int, length: int) -> bytes:
        """Return exactly *length* bytes of what decides the call; unreadable is a fault, EFAULT bare."""
        try:
            data = self.kernel.read_memory(self.tid, address, length)
        except OSError as error:
            answer = EFAULT if error.errno in (EFAULT, EIO) else EPERM
            raise self.fault(Code.CHILD_MEMORY, "process_vm_readv", error, answer) from error
        if len(data) != length:
            self.check()
            detail = f"process_vm_readv: {len(data)} of {length} bytes are mapped"
            raise FaultError(Code.CHILD_MEMORY, detail, EFAULT)
        return data

    def payload(self, vectors: list[tuple[int, int]]) -> bytes:
        """Return the bytes of a message; where they are unmapped the program gets EFAULT, as bare."""
        vectors = [vector for vector in vectors if vector[1]]
        if not vectors:
            return b""
        try:
            data = self.kernel.gather_memory(self.tid, vectors)
        except OSError as error:
            if error.errno in (EFAULT, EIO):
                raise AnswerError(EFAULT) from error
            raise self.fault(Code.CHILD_MEMORY, "process_vm_readv", error) from error
        if len(data) != sum(length for _address, length in vectors):
            raise AnswerError(EFAULT)
        return data

    # --- descriptors ---

    def fetch(self, descriptor: int) -> int:
        """Return a duplicate of the caller's descriptor; the caller was alive after it was taken."""
        number = descriptor & 0xFFFFFFFF
        if number > 0x7FFFFFFF:
            raise AnswerError(EBADF)
        pidfd = self.pidfds.get(self.tid)
        try:
            duplicate = self.kernel.pidfd_getfd(pidfd or self._open_pidfd(), number)
        except OSError as error:
            if error.errno == EBADF:
                raise AnswerError(EBADF) from error
            if error.errno == ESRCH and pidfd:  # the thread that had this number is gone
                self.kernel.close(self.pidfds.pop(self.tid))
                return self.fetch(descriptor)
            if error.errno == EMFILE and len(self.pidfds) > 1:  # kept ones are for speed alone
                self.close()
                return self.fetch(descriptor)
            raise self.fault(Code.CHILD_DESCRIPTOR, "pidfd_getfd", error) from error
        try:
            self.kernel.id_valid(self.listener, self.notification)
        except OSError:
            self.kernel.close(duplicate)
            self.check()
            raise StaleError from None  # valid again: it cannot be
        return duplicate

    def _open_pidfd(self) -> int:
        if len(self.pidfds) >= self.keeps:
            self.close()
        try:
            pidfd = self.kernel.pidfd_open(self.tid)
        except OSError as error:
            if error.errno == EMFILE and self.pidfds:
                self.close()
                return self._open_pidfd()
            raise self.fault(Code.CHILD_HANDLE, "pidfd_open", error) from error
        self.pidfds[self.tid] = pidfd
        return pidfd

    def option(self, duplicate: int, option: int) -> int:
        """Return a SOL_SOCKET option of the fetched socket."""
        try:
            return self.kernel.getsockopt(duplicate, 1, option)
        except OSError as error:
            if error.errno == ENOTSOCK:
                raise AnswerError(ENOTSOCK) from error
            raise FaultError(Code.PERFORM, _detail("getsockopt", error)) from error

    # --- who it is ---

    def who(self) -> tuple[int, str]:
        """Return the caller's process and program. Told anew for each call site, and after a second."""
        key = (self.tid, self.pointer)
        known = self.programs.get(key)
        now = self.operation.started
        if known is not None and now - known[0] < PROGRAM_AGE:
            return known[1]
        try:
            process = self.kernel.status(self.tid).tgid
        except (OSError, ValueError, KeyError):
            process = self.tid
        try:
            program = self.kernel.executable(self.tid)
        except (
            OSError
        ):  # unreadable for a program that is not dumpable; the event stands without it
            program = "?"
        if len(self.programs) >= _PROGRAMS:
            self.programs.clear()
        found = (process, os.fsencode(program).decode("utf-8", "backslashreplace"))
        self.programs[key] = (now, found)
        return found


def _detail(step: str, error: OSError) -> str:
    """Return the short text of a fault: the step and the name of its errno."""
    return f"{step}: {errorcode.get(error.errno or 0, error.errno)}"
