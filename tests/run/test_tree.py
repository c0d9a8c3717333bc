"""Which process of a run holds a socket: remembered, within bounds, by several readers at once."""

from __future__ import annotations

import os
import sys

import pytest

from flowproof.run import tree
from flowproof.run.kernel import Kernel, UnixSocket
from flowproof.run.tree import Tree, UnreadableProcessError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel seam is Linux's")


class OneProcess(Kernel):
    """A kernel in which process 7 is the run, and holds one socket at a time as its descriptor 5."""

    def __init__(self) -> None:
        super().__init__()
        self.socket = 0
        self.looks = 0

    def children(self, pid: int) -> tuple[int, ...]:
        return (7,) if pid == 1 else ()

    def descriptors(self, pid: int) -> dict[str, str]:
        assert pid == 7
        self.looks += 1
        return {"5": f"socket:[{self.socket}]"}

    def descriptor(self, pid: int, name: str) -> str:
        assert (pid, name) == (7, "5")
        return f"socket:[{self.socket}]"


def test_holder_is_looked_for_once_while_it_holds() -> None:
    kernel = OneProcess()
    held = Tree(kernel, 1)
    kernel.socket = 100
    assert held.holds(100)
    assert held.holds(100)
    assert kernel.looks == 1
    kernel.socket = 101
    assert not held.holds(100)


def test_what_is_remembered_stays_bounded_however_many_sockets_come_and_go() -> None:
    kernel = OneProcess()
    held = Tree(kernel, 1)
    for inode in range(1, 3 * tree._KNOWN):
        kernel.socket = inode
        assert held.holds(inode)
        assert len(held._holders) <= tree._KNOWN
    assert held.holds(kernel.socket)


def test_two_readers_that_forget_one_holder_are_no_fault() -> None:
    class Meanwhile(OneProcess):
        """While one reader looks at the descriptor, another has looked, and forgotten."""

        def descriptor(self, pid: int, name: str) -> str:
            held._holders.pop(100, None)
            return super().descriptor(pid, name)

    kernel = Meanwhile()
    held = Tree(kernel, 1)
    kernel.socket = 100
    assert held.holds(100)
    kernel.socket = 101
    assert not held.holds(100)


class Family(Kernel):
    """A kernel with processes 7 (which holds a socket) and 8 (which does not let itself be looked into).

    For the first *blind* looks process 7 is missed, as a list of children may while children end.
    """

    def __init__(self, *, blind: int = 0, ended: bool = False) -> None:
        super().__init__()
        self.blind, self.gone = blind, ended
        self.bound = 100

    def children(self, pid: int) -> tuple[int, ...]:
        if pid != 1:
            return ()
        self.blind -= 1
        return (8,) if self.blind >= 0 else (8, 7)

    def descriptors(self, pid: int) -> dict[str, str]:
        if pid == 8:
            raise PermissionError
        return {"5": f"socket:[{self.bound}]"}

    def descriptor(self, pid: int, name: str) -> str:
        return f"socket:[{self.bound}]"

    def ended(self, pid: int) -> bool:
        return self.gone

    def unix_sockets(self) -> list[UnixSocket]:
        return [UnixSocket(self.bound, 1, b"soak.sock", (1, 4))]


@pytest.mark.parametrize("blind", [0, 1, 2])
def test_holder_that_a_list_of_children_misses_is_looked_for_again(blind: int) -> None:
    assert Tree(Family(blind=blind), 1).holds(100)


def test_process_that_cannot_be_looked_into_leaves_it_open() -> None:
    with pytest.raises(UnreadableProcessError, match="/proc/8/fd"):
        Tree(Family(), 1).holds(4711)


def test_zombie_hides_nothing() -> None:
    assert not Tree(Family(ended=True), 1).holds(4711)


def test_file_that_another_socket_is_bound_to_now_is_no_stale_question() -> None:
    # process 8 would make a search for the old socket a fault, and so would it be for nothing
    kernel = Family()
    held = Tree(kernel, 1)
    assert held.holds_file((1, 4))
    kernel.bound = 200
    assert held.holds_file((1, 4))
    assert set(held._holders) == {200}


def test_a_zombie_has_ended_and_this_process_has_not() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    kernel = Kernel()
    assert kernel.ended(child)
    os.waitpid(child, 0)
    assert kernel.ended(child)
    assert not kernel.ended(os.getpid())
