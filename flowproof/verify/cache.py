"""The kernel's action cache: the numbers that a filter allows without running at all.

When a filter is attached, Linux (5.11 and later, ``seccomp_is_const_allow`` in kernel/seccomp.c) runs it
once for each number of its own architecture, over instructions that look at nothing but number and
architecture: loads of those two, comparisons and AND with a constant, jumps, a constant return. Where that
ends in ALLOW, the number is answered from a bitmap from then on. A filter that is stacked on top clears
what it does not allow so itself. Newer kernels allow uprobe and uretprobe whatever a filter says; those are
not in it for that.
"""

from __future__ import annotations

from flowproof.verify import bpf
from flowproof.verify.require import ARCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowproof.verify.bpf import Code

__all__ = ["NUMBERS", "cached"]

NUMBERS = 512
"""Numbers that are asked about: more than any release has given out; the kernel's bitmap ends earlier."""

_NR, _ARCH = 0, 4
_ALLOW = 0x7FFF0000


def cached(program: Sequence[Code], arch: str) -> tuple[tuple[int, int], ...]:
    """Return the inclusive ranges of numbers below `NUMBERS` that *program* never runs for on *arch*."""
    found: list[tuple[int, int]] = []
    for number in range(NUMBERS):
        if not _constant(program, number, ARCH[arch]):
            continue
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def _constant(program: Sequence[Code], number: int, arch: int) -> bool:
    """Tell whether the kernel sees by number and architecture alone that the call is allowed."""
    a = at = 0
    while True:
        code, jt, jf, k = program[at]
        at += 1
        match code:
            case bpf.LD_ABS if k in (_NR, _ARCH):
                a = number if k == _NR else arch
            case 0x15:
                at += jt if a == k else jf
            case 0x25:
                at += jt if a > k else jf
            case 0x35:
                at += jt if a >= k else jf
            case 0x45:
                at += jt if a & k else jf
            case bpf.JA:
                at += k
            case 0x54:  # AND with a constant
                a &= k
            case bpf.RET_K:
                return k == _ALLOW
            case _:
                return False
