"""What a host may lack while its runs are judged all the same: tried for real, by `flowproof doctor`.

No verdict rests on these alone. Where a run meets the lack of one, that is a fault of that run.
"""

from __future__ import annotations

import ctypes
import os
import threading

from flowproof.run.launch import error_text
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from flowproof.run.kernel import Kernel

    Attempt = Callable[[Kernel], bool | None]

__all__ = ["Extra", "extras"]

_OUTER = "allow {} in the outer filter"


class Extra(Value):
    """One of them: *detail* says what was seen, *cost* what its lack costs, *help* how to get it."""

    id: str
    ok: bool
    detail: str
    cost: str
    help: str


def extras(kernel: Kernel) -> tuple[Extra, ...]:
    """Try each on this host, which is Linux."""
    return tuple(_tried(kernel, *row) for row in _EXTRAS)


def _tried(
    kernel: Kernel, identity: str, shows: str, cost: str, way: str, attempt: Attempt
) -> Extra:
    try:
        there = attempt(kernel) is not False
        detail = shows if there else "this kernel has none"
    except OSError as error:
        there, detail = False, error_text(error)
    return Extra(identity, there, detail, cost, way)


def _write(kernel: Kernel) -> None:
    buffer = ctypes.create_string_buffer(1)
    kernel.write_memory(os.getpid(), ctypes.addressof(buffer), b"x")


def _interrupt(kernel: Kernel) -> None:
    kernel.tgkill(os.getpid(), threading.get_native_id(), 0)


def _raise_limit(kernel: Kernel) -> None:
    with _Trial(kernel.raise_descriptor_limit) as child:
        child.check()


def _trace_shut(kernel: Kernel) -> None:
    """Read the memory of a child that shut it."""
    secret = ctypes.create_string_buffer(b"shut")
    with _Trial(lambda: kernel.set_dumpable(False)) as child:
        child.check()
        kernel.read_memory(child.pid, ctypes.addressof(secret), 4)


def _children(_kernel: Kernel) -> bool:
    return os.path.exists("/proc/thread-self/children")


class _Trial:
    """A child that does *work*, tells how that ended, and waits for its parent to be done with it."""

    def __init__(self, work: Callable[[], object]) -> None:
        answer, tell = os.pipe()
        wait, hold = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(hold)
            code = 0
            try:
                work()
            except OSError as error:
                code = error.errno or 255
            finally:
                os.write(tell, bytes([min(code, 255)]))
                os.read(wait, 1)
                os._exit(0)
        os.close(tell)
        os.close(wait)
        self._answer, self._hold = answer, hold

    def check(self) -> None:
        """Wait until *work* is done; raise the `OSError` that it ended with."""
        code = os.read(self._answer, 1)[0]
        if code:
            raise OSError(code, os.strerror(code))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._answer)
        os.close(self._hold)
        os.waitpid(self.pid, 0)


_EXTRAS: tuple[tuple[str, str, str, str, Attempt], ...] = (
    (
        "process.shut-memory",
        "programs that shut their memory are looked into",
        "a call of a program that shut its memory (PR_SET_DUMPABLE=0, an unreadable binary) is a fault",
        "run flowproof with CAP_SYS_PTRACE; without it, keep such programs out of the run",
        _trace_shut,
    ),
    (
        "process.write",
        "a result is written into the calling process",
        "a sendmmsg is a fault, CHILD_RESULT",
        _OUTER.format("process_vm_writev"),
        _write,
    ),
    (
        "thread.interrupt",
        "a call that sleeps is ended by a signal for its program",
        "a signal for a program whose call sleeps is a fault, INTERRUPTION",
        _OUTER.format("tgkill"),
        _interrupt,
    ),
    (
        "pidfd.thread",
        "a thread has a handle of its own",
        "a call of a thread with descriptors of its own is a fault, CHILD_HANDLE",
        "use Linux 6.9 or newer",
        lambda kernel: kernel.thread_handles(),
    ),
    (
        "unix.sockets",
        "the unix sockets of the network namespace are listed",
        "a call to a unix socket that the run itself bound is a fault, SOCKET_LIST",
        "use a kernel with CONFIG_UNIX_DIAG (`modprobe unix_diag`), and allow netlink sockets",
        lambda kernel: kernel.unix_sockets() is not None,
    ),
    (
        "process.child-list",
        "the kernel lists the children of a process",
        "the processes of a run are found by looking at all of /proc, which is slow",
        "use a kernel with CONFIG_PROC_CHILDREN",
        _children,
    ),
    (
        "descriptors.limit",
        "the supervisor may open as many files as its hard limit says",
        "fewer calls may sleep at once before one more is a fault",
        _OUTER.format("prlimit64"),
        _raise_limit,
    ),
)
"""Each: its id, what it shows, what its lack costs, how to get it, and the attempt."""
