"""A program run over the whole input space: every way through it, with a value of every cell on that way.

Classic BPF has no loops, and a seccomp filter looks at words of 32 bits. What it can tell apart about a word
is what its comparisons tell apart, so each word is split at every constant that it may be compared with, and
for each mask that it may be compared under, by every value of the masked bits that a comparison tells apart.
All values of one cell take the same way; one of them, run for real, stands for all. Which constants and masks
meet which word follows from one pass over the instructions (`_met`). An operation that this does not follow
is told as such (`Unfollowed`), never guessed.
"""

from __future__ import annotations

from itertools import pairwise

from flowproof.values import Value
from flowproof.verify import bpf
from flowproof.verify.computed import compares_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flowproof.verify.bpf import Code

    Test = tuple[int, int, int]  # mask, code of the comparison, constant
    Tests = Mapping[int, set[Test]]
    Words = Mapping[int, int]
    Shape = tuple[str, int, int]  # word offset mask | constant value 0 | unknown 0 0

__all__ = ["FULL", "JEQ", "JGE", "JSET", "Answer", "Unfollowed", "answers", "cells"]

FULL = 0xFFFFFFFF
JEQ, JGT, JGE, JSET = 0x15, 0x25, 0x35, 0x45
_COMPARED: dict[int, Callable[[int, int], bool]] = {
    JEQ: lambda a, b: a == b,
    JGT: lambda a, b: a > b,
    JGE: lambda a, b: a >= b,
    JSET: lambda a, b: bool(a & b),
}
_AND = 0x54
_X = 0x08
_JUMP = 5
_BITS = 12  # of all masks of one word together: 4096 values at most
_SMALL = 512  # numbers of system calls
_UNKNOWN: Shape = ("unknown", 0, 0)


class Unfollowed(Exception):  # noqa: N818  not an error of the caller: what was not proved
    """An operation that the split of the input space does not follow; *at* is its instruction."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"instruction {at:04}: {what}")
        self.at = at


class Answer(Value):
    """What the program and the requirement say of one cell: *words* is a value of it (offset → word), *at*
    the instruction that returned.
    """

    words: Words
    action: int
    at: int
    wanted: object


class _Open(Exception):  # noqa: N818  a turn of the search, no error
    """A word was asked for that has no value yet."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class _Asked(dict[int, int]):
    """Words that have a value so far."""

    __slots__ = ()

    def __missing__(self, offset: int) -> int:
        raise _Open(offset)


def answers(
    program: Sequence[Code],
    wanted: Callable[[Words], object],
    tests: Tests,
) -> Iterator[Answer]:
    """Yield the answers of *program* over all inputs, each beside what *wanted* says of the same words.

    *wanted* is given the words by their offset in struct seccomp_data, and *tests* are
    the comparisons that it makes. Raises `InvalidProgramError` for a program that the kernel would not
    take, and `Unfollowed` at the end, where agreement is not proved.
    """
    bpf.check(program)
    met, unfollowed = _met(program)
    yield from _searched(program, wanted, tests, met, {})
    if unfollowed is None:
        return
    left = (
        False  # a proof all the same, where all that is computed comes from a number that is tried
    )
    for answer in _searched(program, wanted, tests, met, {0: range(_SMALL)}):
        yield answer
        left = left or compares_unknown(program, answer.words, _SMALL)
    if left:
        raise unfollowed


def _searched(
    program: Sequence[Code],
    wanted: Callable[[Words], object],
    tests: Tests,
    met: Tests,
    more: Mapping[int, Sequence[int]],
) -> Iterator[Answer]:
    """Yield the answers on a value of each cell, and on *more* values of some words."""
    split: dict[int, list[int]] = {}
    waiting = [_Asked()]
    while waiting:
        words = waiting.pop()
        try:
            # what is required first: it looks at less than the program does, so fewer ways are open
            asked = wanted(words)
            action, at = _run(program, words)
        except _Open as missing:
            offset = missing.offset
            if offset not in split:
                both = met.get(offset, set()) | tests.get(offset, set())
                split[offset] = [*cells(both), *more.get(offset, ())]
            for value in split[offset]:
                one = _Asked(words)
                one[offset] = value
                waiting.append(one)
            continue
        yield Answer(words, action, at, asked)


def _run(program: Sequence[Code], words: Words) -> tuple[int, int]:
    """Return the action and the place of the return, over words that are read as they are needed."""
    a = x = at = 0
    scratch: dict[int, int] = {}
    while True:
        code, jt, jf, k = program[at]
        at += 1
        if code == JGE:
            at += jt if a >= k else jf
        elif code == JEQ:
            at += jt if a == k else jf
        elif code == bpf.LD_ABS:
            a = words[k]
        elif code == bpf.RET_K:
            return k, at - 1
        elif code == bpf.RET_A:
            return a, at - 1
        elif code == bpf.JA:
            at += k
        elif code & 7 == _JUMP:
            at += jt if _COMPARED[code & ~_X](a, x if code & _X else k) else jf
        elif code == bpf.LD_MEM:
            a = scratch[k]
        elif code == bpf.LDX_MEM:
            x = scratch[k]
        elif code in (bpf.ST, bpf.STX):
            scratch[k] = a if code == bpf.ST else x
        elif code in _SIMPLE:
            a, x = _SIMPLE[code](a, x, k)
        elif code == bpf.DIVIDE | _X and x == 0:
            return 0, at - 1  # the kernel returns 0
        else:
            a = bpf.ARITHMETIC[code & ~_X](a, x if code & _X else k) & FULL


_SIMPLE: dict[int, Callable[[int, int, int], tuple[int, int]]] = {
    bpf.LD_IMM: lambda _a, x, k: (k, x),
    bpf.LD_LEN: lambda _a, x, _k: (bpf.DATA_SIZE, x),
    bpf.LDX_IMM: lambda a, _x, k: (a, k),
    bpf.LDX_LEN: lambda a, _x, _k: (a, bpf.DATA_SIZE),
    bpf.TAX: lambda a, _x, _k: (a, a),
    bpf.TXA: lambda _a, x, _k: (x, x),
    bpf.NEG: lambda a, x, _k: (-a & FULL, x),
}


# --- which comparison may meet which word


def _met(program: Sequence[Code]) -> tuple[dict[int, set[Test]], Unfollowed | None]:
    """Return the comparisons that each word may meet, and the first operation that is not followed."""
    shapes: list[set[tuple[Shape, Shape]]] = [set() for _ in program]
    shapes[0].add((("constant", 0, 0), ("constant", 0, 0)))
    met: dict[int, set[Test]] = {}
    lost: Unfollowed | None = None
    for at, (code, jt, jf, k) in enumerate(program):
        for a, x in shapes[at]:
            operand: Shape = x if code & _X else ("constant", k, 0)
            targets: tuple[int, ...] = (at + 1,)
            after = (a, x)
            if code == bpf.LD_ABS:
                after = (("word", k, FULL), x)
            elif code & 7 == _JUMP and code != bpf.JA:
                targets = (at + 1 + jt, at + 1 + jf)
                if jt != jf:
                    lost = lost or _compared(met, at, code & ~_X, a, operand)
            elif code == bpf.JA:
                targets = (at + 1 + k,)
            elif code == bpf.RET_K:
                continue
            elif code == bpf.RET_A:
                if a[0] != "constant":
                    lost = lost or Unfollowed(at, "a value is returned that is not in the program")
                continue
            else:
                after = _moved(code, k, a, x)
            for target in targets:
                shapes[target].add(after)
    return met, lost


def _compared(
    met: dict[int, set[Test]], at: int, code: int, a: Shape, operand: Shape
) -> Unfollowed | None:
    if a[0] == "constant" and operand[0] == "constant":
        return None
    if a[0] != "word" or operand[0] != "constant":
        return Unfollowed(at, "a value is compared that was computed")
    met.setdefault(a[1], set()).add((a[2], code, operand[1]))
    return None


def _moved(code: int, k: int, a: Shape, x: Shape) -> tuple[Shape, Shape]:
    """Return the shapes behind an operation that neither loads a word nor jumps nor returns."""
    if code == _AND and a[0] == "word":
        return ("word", a[1], a[2] & k), x
    if code == bpf.TAX:
        return a, a
    if code == bpf.TXA:
        return x, x
    if code in (bpf.ST, bpf.STX):
        return a, x
    if code in (bpf.LD_IMM, bpf.LD_LEN, bpf.LDX_IMM, bpf.LDX_LEN):
        value, other = _SIMPLE[code](a[1], x[1], k)
        if code & 7 == 0:
            return ("constant", value, 0), x
        return a, ("constant", other, 0)
    if code == bpf.LDX_MEM:
        return a, _UNKNOWN
    operand = x if code & _X else ("constant", k, 0)
    if (
        a[0] == operand[0] == "constant"
        and code & ~_X in bpf.ARITHMETIC
        and code & ~_X != bpf.DIVIDE
    ):
        return ("constant", bpf.ARITHMETIC[code & ~_X](a[1], operand[1]) & FULL, 0), x
    return _UNKNOWN, x


# --- the cells of one word


def cells(tests: set[Test]) -> list[int]:
    """Return a value of each cell that *tests* split the 32 bits of a word into, none left out."""
    bounds = {0}
    masked: list[Test] = []
    for mask, code, constant in tests:
        if code == JSET:
            masked.append((mask & constant, JEQ, 0))
        elif mask == FULL:
            bounds.update(_bounds(code, constant))
        else:
            masked.append((mask, code, constant))
    edges = [*sorted(bounds), FULL + 1]
    spans = [(low, high - 1) for low, high in pairwise(edges)]
    if not masked:
        return [low for low, _ in spans]
    mask = 0
    for own, _, _ in masked:
        mask |= own
    if mask.bit_count() > _BITS:
        raise Unfollowed(0, f"a mask of more than {_BITS} bits")
    found: list[int] = []
    for low, high in spans:
        kinds: set[tuple[bool, ...]] = set()
        for bits in _submasks(mask):
            kind = tuple(_COMPARED[code](bits & own, constant) for own, code, constant in masked)
            if kind not in kinds:
                value = _least(low, mask, bits)
                if value is not None and value <= high:
                    kinds.add(kind)
                    found.append(value)
    return found


def _bounds(code: int, constant: int) -> Iterator[int]:
    """Yield where a comparison of a whole word changes its answer."""
    if code in (JEQ, JGE):
        yield constant
    if code in (JEQ, JGT) and constant < FULL:
        yield constant + 1


def _submasks(mask: int) -> Iterator[int]:
    bits = 0
    while True:
        yield bits
        bits = (bits - mask) & mask
        if not bits:
            return


def _least(low: int, mask: int, bits: int) -> int | None:
    """Return the least word from *low* on whose bits under *mask* are *bits*."""
    if low & mask == bits:
        return low
    for at in range(32):  # keep what lies above bit `at`, and raise that bit
        bit = 1 << at
        if low & bit:
            continue
        above = FULL & ~((bit << 1) - 1)
        value = low & above | bit
        if value & mask & (above | bit) != bits & (above | bit):
            continue
        return value | bits & (bit - 1)
    return None
