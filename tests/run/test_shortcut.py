"""The short way through connect and the general one: whatever comes, both end alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from errno import (
    EACCES,
    EALREADY,
    EBADF,
    ECONNREFUSED,
    EFAULT,
    EINPROGRESS,
    EINTR,
    EIO,
    EISCONN,
    EMFILE,
    ENOENT,
    ENOTSOCK,
    EPERM,
    ESRCH,
)
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper import (
    ADDRESSES,
    DECISIONS,
    LENGTHS,
    SECRET,
    SOCKETS,
    STREAM,
    TCP4,
    TCP6,
    UDP4,
    UDP6,
    Bench,
    v4,
    v6,
)
from supervision import bound, tables

from flowproof.run import journal
from flowproof.run.caller import AnswerError, FaultError, StaleError, Work
from flowproof.run.calls import shortcut as module
from flowproof.run.calls.shortcut import shortcut
from flowproof.run.decide import Decisions

STEPS = {
    "read_memory": (EFAULT, EIO, EPERM, ESRCH),
    "pidfd_getfd": (EBADF, ESRCH, EMFILE, EPERM),
    "id_valid": (ENOENT, EPERM),
    "getsockopt": (ENOTSOCK, EPERM),
}
ANSWERS = (
    (), (EINPROGRESS,), (ECONNREFUSED,), (EISCONN,), (EINTR,), (EINTR, EISCONN), (EINTR, EALREADY), (EINTR, EINTR, EACCES),
)  # fmt: skip
MORE = (*ADDRESSES, v4("127.0.0.1", 0), v4("127.0.0.3", 9), v6("::ffff:127.0.0.2"))
WITHDRAWALS = ("signal", "restart", "dead")
ODD_DESCRIPTORS = (*SOCKETS, 5, 1 << 31, 0xFFFFFFFF_FFFFFFFF, (1 << 32) + TCP4)
OPEN = bound(tables(refusing=False)).decisions
THREAD, SITE = 7, 0x401000


class ShortBench(Bench):
    """A caller on paper whose connects take the short way."""

    def __init__(
        self, decisions: Decisions = DECISIONS, clock: Callable[[float], int] = lambda _at: 5
    ) -> None:
        super().__init__(decisions, clock)
        self.short = shortcut(self.caller)

    def handle(self, name: str, arguments: tuple[int, ...]) -> int | Work:
        assert name == "connect"
        return self.short((4711, THREAD, 0, 42, 0, SITE, *arguments))


class Cell(NamedTuple):
    """One call, and what the world does to it.

    *warm*: the thread is known, and so are the addresses. *later*: its program was looked up long ago, and
    is another by now. *canary*: the process that is it.
    """

    descriptor: int
    raw: bytes
    length: int
    mapped: int
    fault: tuple[str, int] | None = None
    answers: tuple[int, ...] = ()
    withdrawn: str | None = None
    crowded: bool = False
    sleeps: bool = True
    later: bool = False
    canary: int | None = None
    warm: bool = True


def tried(bench: Bench, descriptor: int, pointer: int, length: int) -> tuple[object, ...]:
    """Make a connect; its result, or how it failed."""
    register = length & 0xFFFFFFFF_FFFFFFFF
    try:
        result = bench.handle("connect", (descriptor, pointer, register, 0, 0, 0))
        if isinstance(result, Work):
            work = result
            result = work.perform(bench.caller.operation)
            for own in work.descriptors:
                bench.kernel.close(own)
            return ("later", result)
    except AnswerError as error:
        return ("answer", error.errno)
    except FaultError as error:
        return ("fault", error.code, error.errno, error.detail)
    except StaleError:
        return ("stale",)
    return ("result", result)


def outcome(bench: Bench, cell: Cell) -> tuple[object, ...]:
    """What a call comes to: its result, what was done to the kernel, what was recorded, what is open."""
    kernel, caller = bench.kernel, bench.caller
    caller.tid, caller.pointer, caller.operation.started = THREAD, SITE, 1.0
    if cell.warm:
        for raw in (cell.raw, *MORE[:3]):
            tried(bench, cell.descriptor & 0xFF, kernel.map(raw), len(raw))
    caller.journal.take()
    kernel.done.clear()
    kernel.faults.update([cell.fault] if cell.fault else [])
    kernel.answers[:], kernel.sleeps = cell.answers, cell.sleeps
    caller.crowded, caller.operation.withdrawn = cell.crowded, cell.withdrawn
    caller.journal.canary_pid = cell.canary
    caller.operation.started = 9.0 if cell.later else 1.5
    kernel.program = "/bin/other"
    full = (cell.raw + bytes(200))[: cell.mapped]
    found = tried(bench, cell.descriptor, kernel.map(full) if full else SECRET, cell.length)
    return found, kernel.done, caller.journal.take(), sorted(kernel.open), kernel.answers


def mostly(usual: Any, *rare: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401  whatever the field holds
    """The usual value, as a rule: a cell in which all is odd shows nothing."""
    return st.integers(0, 3).flatmap(lambda n: st.just(usual) if n else st.sampled_from(rare))


FAULTS = [(step, errno) for step, errnos in STEPS.items() for errno in errnos]
cells = st.builds(
    Cell,
    descriptor=st.sampled_from([TCP4, TCP6, UDP4]) | st.sampled_from(ODD_DESCRIPTORS),
    raw=st.sampled_from(MORE) | st.sampled_from(MORE) | st.binary(min_size=2, max_size=130),
    length=st.sampled_from([16, 28]) | st.sampled_from([*LENGTHS, (1 << 32) + 16]),
    mapped=mostly(200, 0, 7, 16, 28),
    fault=mostly(None, *FAULTS),
    answers=mostly((), *ANSWERS),
    withdrawn=mostly(None, "signal", "restart", "dead"),
    crowded=mostly(False, True),
    sleeps=st.booleans(),
    later=mostly(False, True),
    canary=mostly(None, 7, 8),
    warm=mostly(True, False),
)


@settings(max_examples=300, deadline=None)
@given(cell=cells, refusing=st.booleans())
def test_both_ways_end_alike(cell: Cell, refusing: bool) -> None:
    decisions = DECISIONS if refusing else OPEN
    short, general = (kind(decisions, lambda at: int(at * 10)) for kind in (ShortBench, Bench))
    assert outcome(short, cell) == outcome(general, cell)


EVERY = [
    *[Cell(TCP4, v4("10.0.0.9"), 16, 200, sleeps=sleeps) for sleeps in (True, False)],
    *[Cell(kind, v4("127.0.0.1"), 16, 200, crowded=True) for kind in (TCP4, UDP4)],
    *[Cell(TCP4, v4("127.0.0.1"), 16, 200, canary=pid) for pid in (7, 8)],
    *[Cell(TCP4, v4("127.0.0.1"), 16, 200, fault=fault) for fault in FAULTS],
    *[Cell(UDP6, v6("::1"), 28, 200, answers=answers) for answers in ANSWERS],
    *[Cell(TCP4, v4("0.0.0.0"), 16, 200, answers=(EINTR,), withdrawn=w) for w in WITHDRAWALS],
    Cell(TCP4, v4("127.0.0.1"), 16, 200, later=True),
    Cell(TCP4, v4("127.0.0.1"), 16, 200, warm=False),
]


@pytest.mark.parametrize("cell", EVERY, ids=str)
@pytest.mark.parametrize("decisions", [DECISIONS, OPEN], ids=["refusing", "open"])
def test_both_ways_end_alike_where_one_thing_is_unusual(cell: Cell, decisions: Decisions) -> None:
    short, general = (kind(decisions, lambda at: int(at * 10)) for kind in (ShortBench, Bench))
    assert outcome(short, cell) == outcome(general, cell)


def test_both_ways_end_alike_in_every_cell_of_family_length_and_readability() -> None:
    for descriptor, raw, length, mapped in itertools.product(
        (TCP4, UDP6, STREAM), MORE, (0, 1, 15, 16, 24, 28, 128, 129), (0, 7, 28, 200)
    ):
        cell = Cell(descriptor, raw, length, mapped, warm=False)
        general, short = Bench(), ShortBench()
        for bench in (general, short):  # once to be known, once more to be compared
            outcome(bench, Cell(descriptor, raw, length, 200, warm=False))
        assert outcome(short, cell) == outcome(general, cell)


@pytest.mark.parametrize(
    ("descriptor", "raw", "result"),
    [
        (TCP4, v4("127.0.0.1"), 0),
        (UDP4, v4("127.0.0.3"), 0),
        (TCP6, v6("::1"), 0),
        (TCP6, v6("::ffff:127.0.0.1"), 0),
        (TCP6, v6("::ffff:127.0.0.2"), -ECONNREFUSED),
        (UDP4, v4("10.0.0.9"), -ECONNREFUSED),
    ],
)
def test_a_call_like_one_before_takes_the_short_way(
    descriptor: int, raw: bytes, result: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ShortBench()
    outcome(bench, Cell(descriptor, raw, len(raw), len(raw)))

    def general(*_arguments: object) -> int:
        raise AssertionError("left to the general way")

    monkeypatch.setattr(module, "handle", general)
    monkeypatch.setattr(module, "proceed", general)
    assert tried(bench, descriptor, bench.kernel.map(raw), len(raw)) == ("result", result)


def test_a_second_copy_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShortBench()
    good, bad = v4("127.0.0.1"), v4("10.0.0.9")
    outcome(bench, Cell(TCP4, good, 16, 16))
    copies = iter([good])  # one more would be a StopIteration

    monkeypatch.setattr(bench.kernel, "read_memory", lambda *_arguments: next(copies))
    bench.kernel.done.clear()
    assert tried(bench, TCP4, bench.kernel.map(bad), 16) == ("result", 0)
    assert bench.kernel.done == [("connect", TCP4, good)]


def test_more_events_than_wait_are_lost_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = v4("127.0.0.1")
    found = []
    for bench in (Bench(), ShortBench()):
        outcome(bench, Cell(TCP4, raw, 16, 16))
        monkeypatch.setattr(module, "WAITING", 2)
        monkeypatch.setattr(journal, "WAITING", 2)
        for _ in range(5):
            tried(bench, TCP4, bench.kernel.map(raw), 16)
        found.append([event[0] for event in bench.journal.take()])
        monkeypatch.undo()
    assert found == [["attempt", "attempt", "fault"]] * 2
