"""The processes of a run: everything below the supervisor, and the sockets that they hold."""

from __future__ import annotations

from errno import errorcode

from flowproof.record.codes import Code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.kernel import Kernel, UnixSocket

__all__ = ["Tree", "UnlistedSocketsError", "UnreadableProcessError"]


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

        Raises `UnreadableProcessError` where none is seen to and one cannot be looked into.
        """
        wanted = f"socket:[{inode}]"
        known = self._holders.get(inode)
        if known is not None:
            try:
                if self._kernel.descriptor(*known) == wanted:
                    return True
            except OSError:
                pass
            del self._holders[inode]
        hidden: int | None = None
        for pid in self.processes():
            try:
                descriptors = self._kernel.descriptors(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                hidden = pid
                continue
            for name, what in descriptors.items():
                if what == wanted:
                    self._holders[inode] = (pid, name)
                    return True
        if hidden is not None:
            raise UnreadableProcessError(f"/proc/{hidden}/fd: EACCES")
        return False

    def sockets(self) -> list[UnixSocket]:
        """Return the unix sockets of the network namespace; `UnlistedSocketsError` where none are told."""
        try:
            return self._kernel.unix_sockets()
        except OSError as error:
            name = errorcode.get(error.errno or 0, str(error.errno))
            raise UnlistedSocketsError(f"unix_diag: {name}") from error

    def holds_file(self, file: tuple[int, int]) -> bool:
        """Tell whether a process of the run holds the socket bound to a file (device, inode, 32 bits each).

        A socket stays bound to its file for life, so that a holder found once is only looked at again.
        """
        known = self._bound.get(file)
        if known is not None and known in self._holders and self.holds(known):
            return True
        for socket in self.sockets():
            if socket.file == file:
                self._bound[file] = socket.inode
                return self.holds(socket.inode)
        return False
