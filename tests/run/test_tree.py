"""Which process of a run holds a socket: remembered, within bounds, by several readers at once."""

from __future__ import annotations

from flowproof.run import tree
from flowproof.run.kernel import Kernel
from flowproof.run.tree import Tree


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
