"""A process of the same user outside of what is contained: what a command must not reach."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from errno import EACCES, ENOSYS, EPERM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    from flowproof.run.kernel import Kernel

__all__ = ["Outsider"]


class Outsider:
    """A process of the same user outside of what is contained: what the child must not reach.

    Without a *kernel* it is none.
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        self.pid = 0
        if kernel is None:
            return
        self._secret = ctypes.create_string_buffer(b"outside")
        self._file, self._end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._wait(kernel)
        os.close(self._file)

    def _wait(self, kernel: Kernel) -> NoReturn:
        """Be as open as a process of the user is, until the probe ends."""
        try:
            os.close(self._end)
            with suppress(OSError):  # the step `process.dumpable` says so
                kernel.set_dumpable(True)
            os.read(self._file, 1)
        finally:
            os._exit(0)

    def reached(self, kernel: Kernel) -> tuple[str, str]:
        """Return what the calling process can do to this one, and which processes it can signal."""
        address = ctypes.addressof(self._secret)
        done = (
            ("ptrace", lambda: kernel.trace(self.pid)),
            ("process_vm_readv", lambda: kernel.read_memory(self.pid, address, 1)),
            ("pidfd_getfd", lambda: kernel.pidfd_getfd(kernel.pidfd_open(self.pid), self._file)),
        )
        signals = (
            ("kill of another process", lambda: kernel.kill(self.pid, 0)),
            ("kill of its supervisor", lambda: kernel.kill(os.getppid(), 0)),
        )
        return _what_works(done), _what_works(signals)


def _what_works(attempts: Iterable[tuple[str, Callable[[], object]]]) -> str:
    """Return which attempts were not refused: one that fails otherwise is not known to be refused."""
    found = []
    for name, attempt in attempts:
        try:
            attempt()
        except OSError as error:
            if error.errno in (EPERM, EACCES, ENOSYS):
                continue
        found.append(name)
    return ", ".join(found)
