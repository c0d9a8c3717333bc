"""``struct sock_filter``: the instructions that the backend uses, and their eight bytes."""

from __future__ import annotations

from struct import Struct

from flowproof.lower.seccomp.numbers import (
    BPF_ABS,
    BPF_ALU,
    BPF_AND,
    BPF_JA,
    BPF_JEQ,
    BPF_JGE,
    BPF_JMP,
    BPF_JSET,
    BPF_K,
    BPF_LD,
    BPF_RET,
    BPF_W,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.artifact.model import Instruction

__all__ = ["AND", "JA", "JEQ", "JGE", "JSET", "LOAD", "MNEMONICS", "RETURN", "decode", "encode"]

LOAD = BPF_LD | BPF_W | BPF_ABS
AND = BPF_ALU | BPF_AND | BPF_K
JA = BPF_JMP | BPF_JA
JEQ = BPF_JMP | BPF_JEQ | BPF_K
JGE = BPF_JMP | BPF_JGE | BPF_K
JSET = BPF_JMP | BPF_JSET | BPF_K
RETURN = BPF_RET | BPF_K

MNEMONICS: dict[int, str] = {
    LOAD: "ld",
    AND: "and",
    JA: "ja",
    JEQ: "jeq",
    JGE: "jge",
    JSET: "jset",
    RETURN: "ret",
}
"""The codes that this backend emits, and how the kernel's documentation spells them."""

# linux/filter.h: __u16 code, __u8 jt, __u8 jf, __u32 k. Both targets are little-endian.
_SOCK_FILTER = Struct("<HBBI")


def encode(instructions: Iterable[Instruction]) -> bytes:
    """Return the instructions as an array of ``struct sock_filter``, 8 bytes each."""
    return b"".join(_SOCK_FILTER.pack(step.code, step.jt, step.jf, step.k) for step in instructions)


def decode(data: bytes) -> tuple[tuple[int, int, int, int], ...]:
    """Return (code, jt, jf, k) of each ``struct sock_filter`` in *data*.

    Raises `ValueError` where *data* is not a whole number of them.
    """
    if len(data) % _SOCK_FILTER.size:
        raise ValueError(f"{len(data)} bytes are not a whole number of instructions")
    return tuple(_SOCK_FILTER.iter_unpack(data))
