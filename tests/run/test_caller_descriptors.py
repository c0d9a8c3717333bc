"""The pidfds that a reader keeps: for speed alone, so that they are never why a call cannot be judged."""

from __future__ import annotations

from errno import EMFILE

import pytest
from supervision import bound, tables

from flowproof.record.codes import Code
from flowproof.run.caller import _FEWEST, _PIDFDS, Caller, FaultError
from flowproof.run.journal import Journal
from flowproof.run.kernel import Kernel
from flowproof.run.tree import Tree


class Numbers(Kernel):
    """A kernel that gives out *most* descriptor numbers and then EMFILE, as a process's limit does."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.open: set[int] = set()
        self.peak = 0

    def _give(self) -> int:
        if len(self.open) >= self.most:
            raise OSError(EMFILE, "no number is left")
        number = min(set(range(100, 101 + self.most)) - self.open)
        self.open.add(number)
        self.peak = max(self.peak, len(self.open))
        return number

    def pidfd_open(self, tid: int) -> int:
        return self._give()

    def pidfd_getfd(self, pidfd: int, number: int) -> int:
        assert pidfd in self.open
        return self._give()

    def id_valid(self, listener: int, notification: bytearray) -> None:
        return

    def close(self, descriptor: int) -> None:
        self.open.remove(descriptor)


def reader(kernel: Kernel) -> Caller:
    return Caller(kernel, 3, bound(tables()).decisions, Journal(lambda _now: 0), Tree(kernel, 1))


def fetch_of(caller: Caller, threads: range) -> None:
    for tid in threads:
        caller.tid = tid
        caller.kernel.close(caller.fetch(5))


def test_reader_keeps_so_many_and_fewer_beside_others() -> None:
    for readers, most in ((0, _PIDFDS), (3, _PIDFDS // 4), (500, _FEWEST)):
        kernel = Numbers(1000)
        caller = reader(kernel)
        caller.share(readers)
        fetch_of(caller, range(1, 500))
        assert kernel.peak == most + 1  # and the duplicate
        caller.close()
        assert kernel.open == set()


@pytest.mark.parametrize("most", [2, 3, 20])
def test_kept_pidfds_make_room_where_numbers_run_out(most: int) -> None:
    kernel = Numbers(most)
    caller = reader(kernel)
    fetch_of(caller, range(1, 200))
    caller.close()
    assert kernel.open == set()


@pytest.mark.parametrize(("most", "code"), [(0, Code.CHILD_HANDLE), (1, Code.CHILD_DESCRIPTOR)])
def test_no_number_at_all_is_a_fault(most: int, code: Code) -> None:
    caller = reader(Numbers(most))
    with pytest.raises(FaultError) as found:
        fetch_of(caller, range(1, 2))
    assert found.value.code is code
    assert "EMFILE" in found.value.detail
