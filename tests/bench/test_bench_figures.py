"""The arithmetic of the benches: ratios within a round, and the walk over a filter program."""

from __future__ import annotations

import struct

import pytest

from bench.flows import many_addresses, many_rules
from bench.program_size import ARCHES, walk
from bench.rounds import BARE, CONTROL, ROUNDS, Rounds, measure
from bench.table import Row, show

ALLOW, EPERM = 0x7FFF0000, 0x00050001


def program(*rows: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


def test_ratio_pairs_each_round_with_its_own_bare() -> None:
    rounds = Rounds({BARE: [1.0, 10.0, 2.0], CONTROL: [1.0, 11.0, 2.0], "x": [2.0, 20.0, 5.0]})
    assert rounds.ratio("x") == 2.0
    assert rounds.added("x") == 3.0
    assert rounds.control == 1.0


def test_noisy_control_says_neither_yes_nor_no() -> None:
    quiet = Rounds({BARE: [1.0] * 3, CONTROL: [1.04] * 3, "x": [1.0] * 3})
    noisy = Rounds({BARE: [1.0] * 3, CONTROL: [1.2] * 3, "x": [1.0] * 3})
    assert (quiet.judged(True), quiet.judged(False)) == (True, False)
    assert (noisy.judged(True), noisy.judged(False)) == (None, None)


def test_every_variant_is_measured_once_a_round_and_the_first_is_thrown_away() -> None:
    taken: list[str] = []

    def note(name: str) -> float:
        taken.append(name)
        return float(len(taken))

    found = measure(lambda: note("bare"), {"x": lambda: note("x")})
    assert [len(found.taken[name]) for name in (BARE, CONTROL, "x")] == [ROUNDS] * 3
    assert (taken.count("bare"), taken.count("x")) == (2 * (ROUNDS + 1), ROUNDS + 1)
    assert ROUNDS >= 9


def test_walk_decides_the_number_and_takes_both_ways_of_an_argument() -> None:
    rows = program(
        (0x20, 0, 0, 0),  # number
        (0x15, 0, 3, 42),  # 42: look at the argument
        (0x20, 0, 0, 16),
        (0x15, 0, 1, 7),
        (0x06, 0, 0, EPERM),
        (0x06, 0, 0, ALLOW),
    )
    arch = ARCHES["x86_64"]
    assert walk(rows, arch, 41).longest == {0: 3}
    assert walk(rows, arch, 42).longest == {1: 5}


def test_walk_counts_both_words_of_a_pointer_as_one_argument() -> None:
    rows = program(
        (0x20, 0, 0, 48), (0x15, 0, 2, 0), (0x20, 0, 0, 52), (0x15, 0, 0, 0), (0x06, 0, 0, ALLOW)
    )
    assert walk(rows, ARCHES["aarch64"], 206).longest == {1: 5}


def test_large_flows_have_as_many_distinct_addresses_as_they_say() -> None:
    control = many_addresses(10_000)["control"]
    assert isinstance(control, dict)
    sentence = control["rules"]["bench.many"]
    assert len(set(sentence.removeprefix("allow connect tcp to ").split(", "))) == 10_000
    rules = many_rules(100)["control"]
    assert isinstance(rules, dict)
    assert len(set(rules["rules"].values())) == 101


@pytest.mark.parametrize(("holds", "word"), [(True, "yes"), (False, "NO"), (None, "not told")])
def test_table_never_calls_an_unmeasured_row_held(holds: bool | None, word: str) -> None:
    assert show([Row("work", "bound", "figure", holds=holds)]).endswith(f"| {word} |")
