"""Labels → jumps: a far one gets a trampoline and never wraps."""

from __future__ import annotations

import random

import pytest

from flowproof.lower.seccomp.assemble import Leaf, ProgramTooLongError, Step, assemble, tree
from flowproof.lower.seccomp.bpf import JEQ, JGE, LOAD, RETURN, decode, encode
from flowproof.verify import bpf


def _union(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*left, *right}))


def _program(count: int, seed: int = 0, step: int = 3) -> tuple[list[Leaf], tuple[bpf.Code, ...]]:
    rng = random.Random(seed)
    firsts = [0, *sorted(rng.sample(range(1, count * step), count - 1))]
    leaves: list[Leaf] = []
    for at, first in enumerate(firsts):
        leaves.append(Leaf(first, f"leaf {at % 7}", (str(at % 9),)))
    steps = [Step(LOAD, 0, "number"), *tree(leaves, str, _union)]
    steps += [Step(RETURN, at, "leaf", label=f"leaf {at}") for at in range(7)]
    return leaves, decode(encode(assemble(steps)))


@pytest.mark.parametrize("count", [2, 3, 7, 17, 100, 255, 256, 257, 400, 600, 1000, 2000])
def test_a_tree_of_any_size_leads_every_number_to_its_leaf(count: int) -> None:
    leaves, program = _program(count)
    bpf.check(program)
    ends = [leaf.first - 1 for leaf in leaves[1:]] + [leaves[-1].first + 5]
    for leaf, end in zip(leaves, ends, strict=True):
        for number in {leaf.first, end}:
            assert bpf.run(program, bpf.data(number, 0)).action == int(leaf.label.split()[1])


def test_a_tree_is_balanced() -> None:
    leaves, program = _program(64)
    worst = max(bpf.run(program, bpf.data(leaf.first, 0)).executed for leaf in leaves)
    assert worst == 1 + 6 + 1


def test_far_branches_cost_a_trampoline_and_stay_right_both_ways() -> None:
    for distance in (250, 252, 253, 254, 255, 256, 257, 258, 300, 1000):
        far = [Step(RETURN, 99, "between") for _ in range(distance)]
        steps = [
            Step(LOAD, 0, "number"),
            Step(JEQ, 5, "five?", then="there", otherwise="elsewhere"),
            *far,
            Step(RETURN, 1, "there", label="there"),
            Step(RETURN, 2, "elsewhere", label="elsewhere"),
        ]
        program = decode(encode(assemble(steps)))
        bpf.check(program)
        assert bpf.run(program, bpf.data(5, 0)).action == 1
        assert bpf.run(program, bpf.data(6, 0)).action == 2


def test_what_fell_through_jumps_over_the_trampoline() -> None:
    steps = [
        Step(LOAD, 0, "number"),
        Step(JGE, 5, "five?", then="there"),
        Step(RETURN, 7, "fell through"),
        *(Step(RETURN, 99, "between") for _ in range(400)),
        Step(RETURN, 1, "there", label="there"),
    ]
    program = decode(encode(assemble(steps)))
    assert bpf.run(program, bpf.data(4, 0)).action == 7
    assert bpf.run(program, bpf.data(5, 0)).action == 1


def test_a_chain_of_far_branches_is_right() -> None:
    steps = [Step(LOAD, 0, "number")]
    steps += [Step(JEQ, at, "it?", then=f"at {at}") for at in range(700)]
    steps += [Step(RETURN, 9999, "none")]
    steps += [Step(RETURN, at, "it", label=f"at {at}") for at in range(700)]
    program = decode(encode(assemble(steps)))
    bpf.check(program)
    assert all(bpf.run(program, bpf.data(at, 0)).action == at for at in range(700))
    assert bpf.run(program, bpf.data(700, 0)).action == 9999


def test_more_than_4096_instructions_are_an_error() -> None:
    fits = [Step(RETURN, 0, "x") for _ in range(4096)]
    assert len(assemble(fits)) == 4096
    with pytest.raises(ProgramTooLongError):
        assemble([*fits, Step(RETURN, 0, "x")])
    with pytest.raises(ProgramTooLongError):
        _program(2200, step=4)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([Step(JEQ, 0, "x", then="nowhere"), Step(RETURN, 0, "x")], "no label"),
        (
            [Step(RETURN, 0, "x", label="a"), Step(RETURN, 0, "x", label="a")],
            "stands twice",
        ),
        (
            [
                Step(RETURN, 0, "x", label="a"),
                Step(JEQ, 0, "x", then="a"),
                Step(RETURN, 0, "x"),
            ],
            "not ahead",
        ),
    ],
)
def test_labels_that_lead_nowhere_are_bugs(steps: list[Step], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        assemble(steps)


def test_a_tree_of_one_leaf_is_a_bug() -> None:
    with pytest.raises(ValueError, match="at least two"):
        list(tree([Leaf(0, "a")], str, _union))


def test_comparisons_name_the_causes_of_both_sides() -> None:
    steps = list(
        tree([Leaf(0, "a", ("one",)), Leaf(9, "b", ("two",)), Leaf(10, "a", ())], str, _union)
    )
    assert steps[0].causes == ("one", "two")


def test_bytes_that_are_no_instructions_are_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        decode(b"\0" * 12)
