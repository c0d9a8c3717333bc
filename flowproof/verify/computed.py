"""Whether what a program computes is of few values: then running it on each of them is a proof.

A comparison of a value that was computed (added, shifted, kept in scratch memory) tells words apart in ways
that the split at constants does not show. Where all that it was computed from is the number of the system
call, and the number is one of the few small ones that are each tried, nothing is left to chance.
"""

from __future__ import annotations

from flowproof.verify import bpf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flowproof.verify.bpf import Code

__all__ = ["compares_unknown"]

_X = 0x08
_JUMP = 5
_AND = 0x54
_NOTHING: frozenset[int] = frozenset()


def compares_unknown(program: Sequence[Code], words: Mapping[int, int], small: int) -> bool:
    """Tell whether the way of *words* meets a value computed from anything but a number below *small*."""
    known = words.get(0, small) < small
    a = x = at = 0
    from_a = from_x = _NOTHING  # the words that a computed value comes from; a word as it is: none
    whole_a: int | None = None  # the word that `a` is, a mask of it included
    whole_x: int | None = None
    scratch: dict[int, tuple[int, frozenset[int]]] = {}

    def unknown(*sources: frozenset[int]) -> bool:
        met = frozenset().union(*sources)
        return bool(met) and not (known and met == {0})

    while True:
        code, jt, jf, k = program[at]
        at += 1
        own_x = from_x if whole_x is None else frozenset({whole_x})
        own_a = from_a if whole_a is None else frozenset({whole_a})
        if code == bpf.RET_K:
            return False
        if code == bpf.RET_A:
            return unknown(own_a)
        if code == bpf.JA:
            at += k
        elif code & 7 == _JUMP:
            if jt != jf and unknown(from_a, own_x if code & _X else _NOTHING):
                return True
            operand = x if code & _X else k
            held = {0x15: a == operand, 0x25: a > operand, 0x35: a >= operand}
            at += jt if held.get(code & ~_X, bool(a & operand)) else jf
        elif code == bpf.LD_ABS:
            a, from_a, whole_a = words[k], _NOTHING, k
        elif code in (bpf.LD_IMM, bpf.LD_LEN):
            a, from_a, whole_a = k if code == bpf.LD_IMM else bpf.DATA_SIZE, _NOTHING, None
        elif code in (bpf.LDX_IMM, bpf.LDX_LEN):
            x, from_x, whole_x = k if code == bpf.LDX_IMM else bpf.DATA_SIZE, _NOTHING, None
        elif code == bpf.TAX:
            x, from_x, whole_x = a, from_a, whole_a
        elif code == bpf.TXA:
            a, from_a, whole_a = x, from_x, whole_x
        elif code in (bpf.ST, bpf.STX):
            scratch[k] = (a, own_a) if code == bpf.ST else (x, own_x)
        elif code == bpf.LD_MEM:
            (a, from_a), whole_a = scratch[k], None
        elif code == bpf.LDX_MEM:
            (x, from_x), whole_x = scratch[k], None
        elif code == _AND and whole_a is not None:
            a &= k
        else:
            operand = x if code & _X else k
            if code & ~_X == bpf.DIVIDE and not operand:
                return unknown(own_x)  # the kernel returns 0
            a = -a if code == bpf.NEG else bpf.ARITHMETIC[code & ~_X](a, operand)
            a, whole_a = a & 0xFFFFFFFF, None
            from_a = own_a | own_x if code & _X else own_a
