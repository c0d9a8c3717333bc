"""The interpreter: what a program answers, what is refused as a program, and the kernel's word on both."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from struct import pack

import pytest

from flowproof.verify import bpf
from flowproof.verify.bpf import InvalidProgramError
from flowproof.verify.paths import paths

RET = (0x06, 0, 0, 0x7FFF0000)
LD = (0x20, 0, 0, 0)

ANSWERS = {
    "a number": ([LD, (0x16, 0, 0, 0)], 7),
    "add": ([LD, (0x04, 0, 0, 0xFFFFFFFF), (0x16, 0, 0, 0)], 6),
    "subtract below zero": ([LD, (0x14, 0, 0, 8), (0x16, 0, 0, 0)], 0xFFFFFFFF),
    "multiply": ([LD, (0x24, 0, 0, 0x40000001), (0x16, 0, 0, 0)], 0xC0000007),
    "divide": ([LD, (0x34, 0, 0, 2), (0x16, 0, 0, 0)], 3),
    "or": ([LD, (0x44, 0, 0, 8), (0x16, 0, 0, 0)], 15),
    "and": ([LD, (0x54, 0, 0, 6), (0x16, 0, 0, 0)], 6),
    "shift left": ([LD, (0x64, 0, 0, 31), (0x16, 0, 0, 0)], 0x80000000),
    "shift right": ([LD, (0x74, 0, 0, 1), (0x16, 0, 0, 0)], 3),
    "exclusive or": ([LD, (0xA4, 0, 0, 5), (0x16, 0, 0, 0)], 2),
    "negate": ([LD, (0x84, 0, 0, 0), (0x16, 0, 0, 0)], 0xFFFFFFF9),
    "the length": ([(0x80, 0, 0, 0), (0x16, 0, 0, 0)], 64),
    "the length by index": ([(0x81, 0, 0, 0), (0x87, 0, 0, 0), (0x16, 0, 0, 0)], 64),
    "an immediate": ([(0x00, 0, 0, 9), (0x16, 0, 0, 0)], 9),
    "by index": ([LD, (0x01, 0, 0, 3), (0x0C, 0, 0, 0), (0x16, 0, 0, 0)], 10),
    "division by an index of 0": ([LD, (0x01, 0, 0, 0), (0x3C, 0, 0, 0), RET], 0),
    "to the index and back": (
        [LD, (0x07, 0, 0, 0), (0x00, 0, 0, 1), (0x87, 0, 0, 0), (0x16, 0, 0, 0)],
        7,
    ),
    "scratch": ([LD, (0x02, 0, 0, 3), (0x00, 0, 0, 1), (0x60, 0, 0, 3), (0x16, 0, 0, 0)], 7),
    "scratch by index": (
        [(0x01, 0, 0, 5), (0x03, 0, 0, 3), (0x61, 0, 0, 3), (0x87, 0, 0, 0), (0x16, 0, 0, 0)],
        5,
    ),
    "equal": ([LD, (0x15, 0, 1, 7), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], 1),
    "not equal": ([LD, (0x15, 0, 1, 8), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], 2),
    "greater": ([LD, (0x25, 0, 1, 7), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], 2),
    "greater or equal": ([LD, (0x35, 0, 1, 7), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], 1),
    "a bit": ([LD, (0x45, 0, 1, 8), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], 2),
    "greater by index": (
        [LD, (0x01, 0, 0, 3), (0x2D, 0, 1, 0), (0x06, 0, 0, 1), (0x06, 0, 0, 2)],
        1,
    ),
    "over": ([(0x05, 0, 0, 1), (0x06, 0, 0, 1), (0x06, 0, 0, 2)], 2),
}

INVALID = {
    "nothing": [],
    "no return": [LD],
    "too long": [LD] * 4096 + [RET],
    "modulo": [LD, (0x94, 0, 0, 2), RET],
    "a load of a half word": [(0x28, 0, 0, 0), RET],
    "a load of a byte": [(0x30, 0, 0, 0), RET],
    "an indirect load": [(0x40, 0, 0, 0), RET],
    "a load past the data": [(0x20, 0, 0, 64), RET],
    "a load that is not aligned": [(0x20, 0, 0, 2), RET],
    "an ancillary load": [(0x20, 0, 0, 0xFFFFF000), RET],
    "a division by 0": [LD, (0x34, 0, 0, 0), RET],
    "a shift by 32": [LD, (0x64, 0, 0, 32), RET],
    "a jump past the end": [(0x05, 0, 0, 1), RET],
    "a branch past the end": [LD, (0x15, 1, 0, 0), RET],
    "a branch past the end the other way": [LD, (0x15, 0, 1, 0), RET],
    "scratch out of range": [LD, (0x02, 0, 0, 16), RET],
    "scratch that was not stored": [(0x60, 0, 0, 0), RET],
    "scratch that one way has not stored": [
        LD,
        (0x15, 0, 1, 0),
        (0x02, 0, 0, 1),
        (0x60, 0, 0, 1),
        RET,
    ],
    "a return of the index": [LD, (0x0E, 0, 0, 0)],
    "nonsense": [(0xFFFF, 0, 0, 0), RET],
}


@pytest.mark.parametrize(("program", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_programs_answer_as_classic_bpf_does(program: list[bpf.Code], answer: int) -> None:
    bpf.check(program)
    assert bpf.run(program, bpf.data(7, 0)).action == answer


@pytest.mark.parametrize("program", INVALID.values(), ids=INVALID)
def test_what_the_kernel_would_not_take_is_refused(program: list[bpf.Code]) -> None:
    with pytest.raises(InvalidProgramError):
        bpf.check(program)


def test_cost_and_argument_reads_are_told() -> None:
    program = [LD, (0x15, 0, 1, 1), (0x20, 0, 0, 16), RET]
    assert bpf.run(program, bpf.data(0, 0)) == bpf.Outcome(0x7FFF0000, 3, False)
    assert bpf.run(program, bpf.data(1, 0)) == bpf.Outcome(0x7FFF0000, 4, True)


def test_data_is_laid_out_as_the_header_says() -> None:
    raw = bpf.data(0xFFFFFFFF, 0xC000003E, (1, 2, 3, 4, 5, (6 << 32) + 7), pointer=9)
    assert raw == pack("<iIQ6Q", -1, 0xC000003E, 9, 1, 2, 3, 4, 5, (6 << 32) + 7)
    assert bpf.run([(0x20, 0, 0, 16 + 8 * 5 + 4), (0x16, 0, 0, 0)], raw).action == 6


def test_bytes_that_are_no_program_are_refused() -> None:
    with pytest.raises(InvalidProgramError):
        bpf.decode(b"\0" * 9)


def test_every_way_is_listed_with_what_it_took() -> None:
    program = [
        LD,
        (0x35, 0, 2, 10),
        (0x15, 1, 0, 12),
        (0x06, 0, 0, 1),
        (0x06, 0, 0, 2),
    ]
    found = {(path.action, path.executed, path.word(0)) for path in paths(program)}
    assert found == {
        (1, 4, ((10, 11), (13, 0xFFFFFFFF))),
        (2, 4, ((12, 12),)),
        (2, 3, ((0, 9),)),
    }


def test_ways_that_no_number_takes_are_left_out() -> None:
    program = [LD, (0x15, 0, 2, 1), (0x15, 0, 1, 2), (0x06, 0, 0, 1), (0x06, 0, 0, 2)]
    actions = [path.action for path in paths(program)]
    assert actions.count(1) == 0


def test_a_program_that_cannot_be_followed_is_an_error_and_no_silence() -> None:
    with pytest.raises(InvalidProgramError):
        list(paths([LD, (0x45, 0, 0, 1), RET]))


# --- the kernel's word


class _Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _installs(program: list[bpf.Code]) -> bool:
    """Tell whether the kernel takes *program*; the child that it was given to is gone then."""
    told = mmap.mmap(-1, 1)
    libc = ctypes.CDLL(None, use_errno=True)
    raw = b"".join(pack("<HBBI", *step) for step in program)
    held = ctypes.create_string_buffer(raw, max(len(raw), 1))
    program_ = _Program(len(program) & 0xFFFF, ctypes.addressof(held))
    reference = ctypes.byref(program_)
    child = os.fork()
    if child == 0:
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        answer = libc.prctl(22, 2, reference)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        told[0] = 1 if answer == 0 else 2 if ctypes.get_errno() == 22 else 3
        os._exit(0)
    os.waitpid(child, 0)
    assert told[0] in (1, 2), "prctl answered neither 0 nor EINVAL"
    return told[0] == 1


@pytest.mark.enforce
@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
@pytest.mark.parametrize("program", [p for p, _ in ANSWERS.values()], ids=ANSWERS)
def test_the_kernel_takes_what_is_taken_here(program: list[bpf.Code]) -> None:
    assert _installs(program)


@pytest.mark.enforce
@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
@pytest.mark.parametrize("program", INVALID.values(), ids=INVALID)
def test_the_kernel_refuses_what_is_refused_here(program: list[bpf.Code]) -> None:
    assert not _installs(program)
