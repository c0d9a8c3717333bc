"""Every way through a program, with what each says of the words that it looked at.

Classic BPF has no loops, so the ways are finitely many, and a claim about all of them is a claim about all
inputs: no sample, no fuzzing. A word under different masks is taken for independent words, so that a way
listed here may be one that no input takes; none that an input takes is left out.
"""

from __future__ import annotations

from flowproof.values import Value
from flowproof.verify import bpf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flowproof.verify.bpf import Code

    Word = tuple[int, int]  # offset in struct seccomp_data, mask
    Intervals = tuple[tuple[int, int], ...]

__all__ = ["Path", "paths"]

_FULL = 0xFFFFFFFF
_AND = 0x54
_JEQ, _JGT, _JGE = 0x15, 0x25, 0x35


class Path(Value):
    """One way through a program. *words* holds what (offset, mask) may be on it, as intervals."""

    action: int
    executed: int
    words: Mapping[Word, Intervals]

    @property
    def argument_read(self) -> bool:
        """Whether a word of an argument was compared."""
        return any(offset >= bpf.ARGUMENTS for offset, _ in self.words)

    def word(self, offset: int) -> Intervals:
        """Return what the word at *offset* may be on this way."""
        return self.words.get((offset, _FULL), ((0, _FULL),))


def paths(program: Sequence[Code]) -> Iterator[Path]:
    """Yield every way through *program*. Raises `InvalidProgramError` for a program that the kernel would
    not take, or with instructions that this reading does not follow.
    """
    bpf.check(program)
    waiting: list[tuple[int, int, Word | None, dict[Word, Intervals]]] = [(0, 0, None, {})]
    while waiting:
        at, executed, word, words = waiting.pop()
        code, jt, jf, k = program[at]
        executed += 1
        if code == bpf.RET_K:
            yield Path(k, executed, words)
        elif code == bpf.LD_ABS:
            loaded = (k, _FULL)
            waiting.append((at + 1, executed, loaded, {loaded: ((0, _FULL),), **words}))
        elif code == bpf.JA:
            waiting.append((at + 1 + k, executed, word, words))
        elif code == _AND and word is not None:
            masked = (word[0], word[1] & k)
            waiting.append((at + 1, executed, masked, {masked: ((0, masked[1]),), **words}))
        elif code in (_JEQ, _JGT, _JGE) and word is not None:
            held, left = _split(words[word], code, k)
            for intervals, skip in ((held, jt), (left, jf)):
                if intervals:
                    waiting.append((at + 1 + skip, executed, word, {**words, word: intervals}))
        else:
            raise bpf.InvalidProgramError(f"{at}: {code:#x} is not followed here")


def _split(intervals: Intervals, code: int, k: int) -> tuple[Intervals, Intervals]:
    """Return the part of *intervals* for which the comparison with *k* holds, and the rest."""
    low, high = {_JEQ: (k, k), _JGT: (k + 1, _FULL), _JGE: (k, _FULL)}[code]
    held = tuple(
        (max(first, low), min(last, high))
        for first, last in intervals
        if first <= high and last >= low and low <= high
    )
    left = tuple(
        part
        for first, last in intervals
        for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
        if part[0] <= part[1]
    )
    return held, left
