"""Classic BPF as seccomp runs it: what the kernel accepts as a program, and what a program answers.

Written from the kernel's own checks (``seccomp_check_filter`` in kernel/seccomp.c, ``bpf_check_classic`` in
net/core/filter.c) with numbers of its own: a wrong constant in the compiler is not repeated here.
"""

from __future__ import annotations

from struct import Struct, unpack_from

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Code = tuple[int, int, int, int]  # code, jt, jf, k

__all__ = ["DATA_SIZE", "InvalidProgramError", "Outcome", "check", "data", "decode", "run"]

DATA_SIZE = 64
"""Bytes of ``struct seccomp_data``."""

ARGUMENTS = 16
"""Where its arguments begin: a load from here on reads one."""

_MOST = 4096
_WORDS = 16  # of scratch memory
_MASK = 0xFFFFFFFF
_FILTER = Struct("<HBBI")
_DATA = Struct("<iIQ6Q")

LD_ABS, LD_LEN, LD_IMM, LD_MEM = 0x20, 0x80, 0x00, 0x60
LDX_LEN, LDX_IMM, LDX_MEM = 0x81, 0x01, 0x61
ST, STX = 0x02, 0x03
RET_K, RET_A = 0x06, 0x16
TAX, TXA, NEG, JA = 0x07, 0x87, 0x84, 0x05
ARITHMETIC: dict[int, Callable[[int, int], int]] = {
    0x04: lambda a, b: a + b,
    0x14: lambda a, b: a - b,
    0x24: lambda a, b: a * b,
    0x34: lambda a, b: a // b,
    0x44: lambda a, b: a | b,
    0x54: lambda a, b: a & b,
    0x64: lambda a, b: a << (b & 31),
    0x74: lambda a, b: a >> (b & 31),
    0xA4: lambda a, b: a ^ b,
}
_TESTS: dict[int, Callable[[int, int], bool]] = {
    0x15: lambda a, b: a == b,
    0x25: lambda a, b: a > b,
    0x35: lambda a, b: a >= b,
    0x45: lambda a, b: bool(a & b),
}
_X = 0x08  # BPF_X: the operand is the index register
DIVIDE, _LEFT, _RIGHT = 0x34, 0x64, 0x74
_KNOWN = {
    *(LD_ABS, LD_LEN, LD_IMM, LD_MEM, LDX_LEN, LDX_IMM, LDX_MEM, ST, STX, RET_K, RET_A),
    *(TAX, TXA, NEG, JA),
    *ARITHMETIC,
    *(code | _X for code in ARITHMETIC),
    *_TESTS,
    *(code | _X for code in _TESTS),
}


class InvalidProgramError(ValueError):
    """A program that the kernel would not take; it would answer EINVAL."""


class Outcome(Value):
    """What a program answered: the return value, how many instructions ran, and whether one of them
    loaded a word of an argument.
    """

    action: int
    executed: int
    argument_read: bool


def decode(program: bytes) -> tuple[Code, ...]:
    """Return the instructions of an array of ``struct sock_filter``."""
    if len(program) % _FILTER.size:
        raise InvalidProgramError(f"{len(program)} bytes are no whole number of instructions")
    return tuple(_FILTER.iter_unpack(program))


def data(number: int, arch: int, arguments: Sequence[int] = (), pointer: int = 0) -> bytes:
    """Return the bytes of a ``struct seccomp_data``; what is left out is 0."""
    signed = number - (1 << 32) if number >= 1 << 31 else number
    filled = (*arguments, *(0,) * (6 - len(arguments)))
    return _DATA.pack(signed, arch, pointer, *filled)


def check(program: Sequence[Code]) -> None:
    """Raise `InvalidProgramError` where the kernel would refuse to install *program*."""
    if not 1 <= len(program) <= _MOST:
        raise InvalidProgramError(f"{len(program)} instructions, and 1 to {_MOST} are taken")
    for at, (code, jt, jf, k) in enumerate(program):
        left = len(program) - at - 1
        if code not in _KNOWN:
            raise InvalidProgramError(f"{at}: {code:#x} is no instruction of a seccomp filter")
        if not (0 <= k <= _MASK and 0 <= jt <= 0xFF and 0 <= jf <= 0xFF):
            raise InvalidProgramError(f"{at}: a field is out of range")
        if code == LD_ABS and (k >= DATA_SIZE or k % 4):
            raise InvalidProgramError(f"{at}: a load at {k} of {DATA_SIZE} bytes")
        if code == DIVIDE and k == 0:
            raise InvalidProgramError(f"{at}: a division by 0")
        if code in (_LEFT, _RIGHT) and k >= 32:
            raise InvalidProgramError(f"{at}: a shift by {k}")
        if code in (LD_MEM, LDX_MEM, ST, STX) and k >= _WORDS:
            raise InvalidProgramError(f"{at}: scratch word {k} of {_WORDS}")
        if code == JA and k >= left:
            raise InvalidProgramError(f"{at}: a jump past the end")
        if code & ~_X in _TESTS and max(jt, jf) >= left:
            raise InvalidProgramError(f"{at}: a branch past the end")
    if program[-1][0] not in (RET_K, RET_A):
        raise InvalidProgramError("the last instruction does not return")
    _check_scratch(program)


def _check_scratch(program: Sequence[Code]) -> None:
    """Refuse a load of a scratch word that some way to it has not stored (check_load_and_stores)."""
    masks = [0xFFFF] * len(program)
    valid = 0
    for at, (code, jt, jf, k) in enumerate(program):
        valid &= masks[at]
        if code in (ST, STX):
            valid |= 1 << k
        elif code in (LD_MEM, LDX_MEM) and not valid & (1 << k):
            raise InvalidProgramError(f"{at}: scratch word {k} is loaded and was not stored")
        elif code == JA:
            masks[at + 1 + k] &= valid
            valid = 0xFFFF
        elif code & ~_X in _TESTS:
            masks[at + 1 + jt] &= valid
            masks[at + 1 + jf] &= valid
            valid = 0xFFFF


def run(program: Sequence[Code], seccomp_data: bytes) -> Outcome:
    """Return what *program*, which `check` took, answers to the 64 bytes of *seccomp_data*."""
    if len(seccomp_data) != DATA_SIZE:
        raise ValueError(f"struct seccomp_data has {DATA_SIZE} bytes")
    a = x = at = executed = 0
    scratch = [0] * _WORDS
    argument_read = False
    while True:
        code, jt, jf, k = program[at]
        at += 1
        executed += 1
        operand = x if code & _X else k
        if code == LD_ABS:
            (a,) = unpack_from("<I", seccomp_data, k)
            argument_read = argument_read or k >= ARGUMENTS
        elif code & ~_X in _TESTS:
            at += jt if _TESTS[code & ~_X](a, operand) else jf
        elif code == RET_K:
            return Outcome(k, executed, argument_read)
        elif code == RET_A:
            return Outcome(a, executed, argument_read)
        elif code & ~_X in ARITHMETIC:
            if code & ~_X == DIVIDE and operand == 0:
                return Outcome(0, executed, argument_read)  # by the index register: returns 0
            a = ARITHMETIC[code & ~_X](a, operand) & _MASK
        else:
            match code:
                case 0x05:  # JA
                    at += k
                case 0x84:  # NEG
                    a = -a & _MASK
                case 0x07:  # TAX
                    x = a
                case 0x87:  # TXA
                    a = x
                case 0x00:  # LD_IMM
                    a = k
                case 0x01:  # LDX_IMM
                    x = k
                case 0x80:  # LD_LEN
                    a = DATA_SIZE
                case 0x81:  # LDX_LEN
                    x = DATA_SIZE
                case 0x60:  # LD_MEM
                    a = scratch[k]
                case 0x61:  # LDX_MEM
                    x = scratch[k]
                case 0x02:  # ST
                    scratch[k] = a
                case 0x03:  # STX
                    scratch[k] = x
                case _:
                    raise InvalidProgramError(f"{code:#x} is no instruction of a seccomp filter")
