"""The processes of a run, found through their parents and ended without control groups.

The process that looks is a subreaper: whoever loses its parent becomes its child, so that whatever the
command started, and whatever that started, is below it until it is dead and reaped.
"""

from __future__ import annotations

import os
import signal
import time
from errno import ENOENT, ESRCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.kernel import Kernel

__all__ = ["Descendants"]

_PAUSE = 0.001
_UNKNOWN = "?"


class Descendants:
    """All processes below the calling one, but for *spare* (children that are not the run's)."""

    def __init__(self, kernel: Kernel, spare: frozenset[int] = frozenset()) -> None:
        self._kernel = kernel
        self._spare = spare
        self._own = os.getpid()
        self.statuses: dict[int, int] = {}
        """Wait statuses of the children that were reaped."""

    def reap(self) -> None:
        """Reap what has ended."""
        for pid in self._children(self._own):
            if pid in self._spare:
                continue
            try:
                found, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # reaped by somebody else in this process
                continue
            if found:
                self.statuses[pid] = status

    def descendants(self) -> tuple[int, ...]:
        """Return the ids of all processes of the tree, parents first, zombies included."""
        found: dict[int, None] = {}
        waiting = [pid for pid in self._children(self._own) if pid not in self._spare]
        while waiting:
            pid = waiting.pop(0)
            if pid not in found:
                found[pid] = None
                waiting += self._children(pid)
        return tuple(found)

    def alive(self) -> tuple[tuple[int, str], ...]:
        """Return (process id, program) of what is still running."""
        self.reap()
        found = []
        for pid in self.descendants():
            try:
                found.append((pid, self._kernel.executable(pid)))
            except OSError as error:
                if error.errno not in (ENOENT, ESRCH):  # those two: a zombie, or gone
                    found.append((pid, _UNKNOWN))
        return tuple(found)

    def wait(self, seconds: float) -> bool:
        """Return whether everything ended by itself within *seconds*."""
        end = time.monotonic() + seconds
        while True:
            self.reap()
            if not self.descendants():
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE)

    def end(self, seconds: float) -> bool:
        """Kill and reap in rounds until nothing is left; return False if something is after *seconds*."""
        end = time.monotonic() + seconds
        while True:
            self.reap()
            pids = self.descendants()
            if not pids:
                return True
            if time.monotonic() >= end:
                return False
            for pid in pids:
                self._kill(pid)
            time.sleep(_PAUSE)

    def _kill(self, pid: int) -> None:
        try:
            self._kernel.kill(pid, signal.SIGKILL)
        except OSError:  # gone; or not ours to kill, and then `end` says that something is left
            return

    def _children(self, pid: int) -> tuple[int, ...]:
        try:
            return self._kernel.children(pid)
        except (FileNotFoundError, ProcessLookupError):
            return ()
