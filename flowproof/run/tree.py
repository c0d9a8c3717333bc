"""The processes of a run: everything below the supervisor, and the sockets that they hold."""

from __future__ import annotations

import time
from errno import errorcode

from flowproof.record.codes import Code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.kernel import Kernel, UnixSocket

__all__ = ["Tree", "UnlistedSocketsError", "UnreadableProcessError"]

_KNOWN = 1024
"""Sockets whose holders are remembered at most."""
_LOOKS = 3
_PAUSE = 0.001


class UnreadableProcessError(Exception):
    """A process of the run does not let its descriptors be listed, so that it may hold anything."""

    code = Code.CHILD_PROCESS


class UnlistedSocketsError(Exception):
    """The kernel does not tell which unix sockets there are, so that none is known to be the run's."""

    code = Code.SOCKET_LIST


class Tree:
    """The descendants of process *root*, read from /proc at each question."""

    def __init__(self, kernel: Kernel, root: int) -> None:
        self._kernel = kernel
        self._root = root
        self._holders: dict[int, tuple[int, str]] = {}
        self._bound: dict[tuple[int, int], int] = {}

    def processes(self) -> tuple[int, ...]:
        """Return the process ids of every descendant, zombies too."""
        found: list[int] = []
        waiting = [self._root]
        while waiting:
            try:
                children = self._kernel.children(waiting.pop())
            except (FileNotFoundError, ProcessLookupError):
                continue
            found += children
            waiting += children
        return tuple(found)

    def holds(self, inode: int) -> bool:
        """Tell whether a process of the run holds the socket with this inode.

        Raises `UnreadableProcessError` where none is seen to and one cannot be looked into. A process that
        is about to end cannot be for a moment, and while children end the list of them may miss one: what
        was not found is looked for again.
        """
        if self._still_holds(inode):
            return True
        hidden: int | None = None
        for look in range(_LOOKS):
            if look:
                time.sleep(_PAUSE)
            holder, hidden = self._look(f"socket:[{inode}]")
            if holder is not None:
                if len(self._holders) >= _KNOWN:  # sockets come and go, and nobody says so
                    self._holders.clear()
                    self._bound.clear()
                self._holders[inode] = holder
                return True
        if hidden is not None:
            raise UnreadableProcessError(f"/proc/{hidden}/fd: EACCES")
        return False

    def _still_holds(self, inode: int) -> bool:
        """Tell whether the holder that was found before holds it still."""
        known = self._holders.get(inode)
        if known is None:
            return False
        try:
            if self._kernel.descriptor(*known) == f"socket:[{inode}]":
                return True
        except OSError:
            pass
        self._holders.pop(inode, None)  # another reader may have found the same
        return False

    def _look(self, wanted: str) -> tuple[tuple[int, str] | None, int | None]:
        """Return who holds it (process, descriptor), and a process that cannot be looked into."""
        hidden: int | None = None
        for pid in self.processes():
            try:
                descriptors = self._kernel.descriptors(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                if not self._kernel.ended(pid):
                    hidden = pid
                continue
            for name, what in descriptors.items():
                if what == wanted:
                    return (pid, name), hidden
        return None, hidden

    def sockets(self) -> list[UnixSocket]:
        """Return the unix sockets of the network namespace; `UnlistedSocketsError` where none are told."""
        try:
            return self._kernel.unix_sockets()
        except OSError as error:
            name = errorcode.get(error.errno or 0, str(error.errno))
            raise UnlistedSocketsError(f"unix_diag: {name}") from error

    def holds_file(self, file: tuple[int, int]) -> bool:
        """Tell whether a process of the run holds the socket bound to a file (device, inode, 32 bits each).

        A socket stays bound to its file for life, so that a holder found once is only looked at again. A
        file's number may be another file's later.
        """
        known = self._bound.get(file)
        if known is not None and self._still_holds(known):
            return True
        for socket in self.sockets():
            if socket.file == file:
                self._bound[file] = socket.inode
                return self.holds(socket.inode)
        return False
