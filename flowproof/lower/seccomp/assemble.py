"""Labelled steps → instructions: jumps are labels until here, and none of them ever wraps."""

from __future__ import annotations

from flowproof.artifact.model import Instruction
from flowproof.lower.seccomp.bpf import JA, JEQ, JGE, JSET
from flowproof.lower.seccomp.numbers import BPF_MAXINSNS
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Causes = tuple[str, ...]
    Merge = Callable[[Causes, Causes], Causes]

__all__ = ["Leaf", "ProgramTooLongError", "Step", "assemble", "tree"]

_FARTHEST = 255  # jt and jf are bytes: the number of instructions to skip
_REACH = _FARTHEST - 2  # a branch keeps two slots for its own trampolines


class ProgramTooLongError(ValueError):
    """More than BPF_MAXINSNS (4096) instructions: the kernel takes no such program."""


class Step(Value):
    """An instruction to be. *then* and *otherwise* are labels of later steps, or None for the next one.

    *label* names the step for the jumps in front of it, *causes* the parts of the program that it is for.
    """

    code: int
    k: int
    words: str
    causes: Causes = ()
    then: str | None = None
    otherwise: str | None = None
    label: str | None = None


class Leaf(Value):
    """A run of system call numbers from *first* up to the next leaf's, and the label they lead to."""

    first: int
    label: str
    causes: Causes = ()


def tree(leaves: Sequence[Leaf], words: Callable[[int], str], merge: Merge) -> Iterator[Step]:
    """Yield a balanced tree of comparisons that leads each number to its leaf's label.

    *leaves* begin at 0, ascend, and neighbours differ; there are at least two. *words* tells a reader
    what a number is, and *merge* joins the causes of the two sides of a comparison.
    """
    if len(leaves) < 2:
        raise ValueError("a tree parts at least two runs of numbers")
    yield from _branch(leaves, None, words, merge)


def _branch(
    leaves: Sequence[Leaf], label: str | None, words: Callable[[int], str], merge: Merge
) -> Iterator[Step]:
    middle = len(leaves) // 2
    left, right = leaves[:middle], leaves[middle:]
    pivot = right[0].first
    upper = right[0].label if len(right) == 1 else f"from {pivot:#x}"
    yield Step(
        JGE,
        pivot,
        f"number >= {words(pivot)}",
        _merged(leaves, merge),
        then=upper,
        otherwise=left[0].label if len(left) == 1 else None,
        label=label,
    )
    if len(left) > 1:
        yield from _branch(left, None, words, merge)
    if len(right) > 1:
        yield from _branch(right, upper, words, merge)


def _merged(leaves: Sequence[Leaf], merge: Merge) -> Causes:
    causes: Causes = ()
    for leaf in leaves:
        causes = merge(causes, leaf.causes)
    return causes


def assemble(steps: Iterable[Step]) -> tuple[Instruction, ...]:
    """Return the instructions of *steps*, every label resolved.

    A branch that would skip more than 255 instructions goes to a trampoline behind it: an unconditional
    jump, which has 32 bits. Raises `ProgramTooLongError`; a label that is missing, doubled or not ahead
    is a bug and a `ValueError`.
    """
    listed = _within_reach(list(steps))
    if len(listed) > BPF_MAXINSNS:
        raise ProgramTooLongError(
            f"{len(listed)} instructions, and the kernel takes {BPF_MAXINSNS}"
        )
    places = _places(listed)
    return tuple(_resolved(step, at, places) for at, step in enumerate(listed))


def _places(steps: Sequence[Step]) -> dict[str, int]:
    places: dict[str, int] = {}
    for at, step in enumerate(steps):
        if step.label is not None:
            if step.label in places:
                raise ValueError(f"label `{step.label}` stands twice")
            places[step.label] = at
    return places


def _skip(label: str | None, at: int, places: dict[str, int]) -> int:
    if label is None:
        return 0
    if label not in places:
        raise ValueError(f"no label `{label}`")
    if places[label] <= at:
        raise ValueError(f"label `{label}` is not ahead: a program has no loops")
    return places[label] - at - 1


def _within_reach(steps: list[Step]) -> list[Step]:
    """Return *steps* with trampolines, inserted from the last branch back: what lies behind an insertion
    keeps its distances, and only branches in front of it grow, which are looked at afterwards.
    """
    labels = {step.label for step in steps if step.label is not None}
    for at in range(len(steps) - 1, -1, -1):
        if steps[at].code not in (JEQ, JGE, JSET) or not _far(steps, at, labels):
            continue
        for side in ("then", "otherwise"):
            target = getattr(steps[at], side)
            if target is not None and _skip(target, at, _places(steps)) > _REACH:
                _trampoline(steps, at, side)
    return steps


def _far(steps: list[Step], at: int, labels: set[str]) -> bool:
    """Tell whether a label of the branch is out of reach."""
    step = steps[at]
    wanted = {
        label for label in (step.then, step.otherwise) if label is not None and label in labels
    }
    for ahead in steps[at + 1 : at + _REACH + 2]:
        wanted.discard(ahead.label or "")
        if not wanted:
            return False
    return bool(wanted)


def _trampoline(steps: list[Step], at: int, side: str) -> None:
    """Put an unconditional jump right behind the branch and send *side* there. What fell through now
    jumps over it.
    """
    step = steps[at]
    target = getattr(step, side)
    name = f"{side} of {len(steps)} at {at}"
    other = "otherwise" if side == "then" else "then"
    if getattr(step, other) is None:
        following = steps[at + 1]
        if following.label is None:
            following = replace(following, label=f"behind {name}")
            steps[at + 1] = following
        step = replace(step, **{other: following.label})
    steps[at] = replace(step, **{side: name})
    jump = Step(JA, 0, f"trampoline to `{target}`", step.causes, then=target, label=name)
    steps.insert(at + 1, jump)


def _resolved(step: Step, at: int, places: dict[str, int]) -> Instruction:
    if step.code == JA:
        return Instruction(JA, 0, 0, _skip(step.then, at, places), step.words, step.causes)
    then, otherwise = _skip(step.then, at, places), _skip(step.otherwise, at, places)
    if max(then, otherwise) > _FARTHEST:
        raise ValueError(f"a branch over {max(then, otherwise)} instructions was left")
    return Instruction(step.code, then, otherwise, step.k, step.words, step.causes)
