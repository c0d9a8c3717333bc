"""The proof of a compile: what it says, what it refuses, and what libseccomp and minijail got wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest
from authored import policy
from comparison import random_policy

from flowproof.artifact import codec
from flowproof.canonical import canonical
from flowproof.lower.backend import TARGETS, compile_policy
from flowproof.verify import bpf
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.programs import compare_program
from flowproof.verify.prove import verify
from flowproof.verify.require import ARCH, NUMBERS, required
from flowproof.verify.symbolic import FULL, JEQ, JGE, cells

ALLOW, NOTIFY, EPERM = 0x7FFF0000, 0x7FC00000, 0x00050001
POLICY = policy(
    {
        "api": "allow connect tcp to 10.0.0.0/24:443",
        "no-db": "never connect to 10.0.0.9",
        "rest": "deny connect to anything else",
    }
)


def _json(target: str = "linux-x86_64") -> dict[str, Any]:
    return codec.to_json(compile_policy(POLICY, target))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_compiled_is_proved(target: str) -> None:
    proof = verify(POLICY, codec.dumps(compile_policy(POLICY, target)))
    assert isinstance(proof, Proof), str(proof)
    assert str(proof).startswith("verified (")
    assert proof.cells > 10
    assert (proof.ways > 100) is (target != "windows")


@pytest.mark.timeout(120)
def test_random_policies_are_proved_on_two_platforms() -> None:
    for seed in range(200):
        meant = random_policy(random.Random(seed))
        for target in ("linux-aarch64", "windows"):
            found = verify(meant, codec.dumps(compile_policy(meant, target)))
            assert isinstance(found, Proof), f"seed {seed}, {target}:\n{found}"


def test_a_counterexample_names_event_rule_place_and_cell() -> None:
    artifact = _json()
    never = [rule["id"] for rule in artifact["rules"]].index("no-db")
    for entry in artifact["tables"]["entries"]:
        if entry.get("refuse") == [never]:
            del entry["refuse"]
    found = verify(POLICY, canonical(artifact))
    assert isinstance(found, Counterexample)
    assert found.event == "connect tcp 10.0.0.9:0"
    assert found.policy == "refused by no-db, counted by no-db"
    assert found.artifact.startswith("refused by rest")
    assert (found.rule, found.place) == ("no-db", "p.policy.yaml:4:11")
    assert "plane tcp4 at 10.0.0.9 port 0" in str(found)


def test_a_counterexample_of_the_program_names_the_instruction() -> None:
    artifact = _json()
    steps = artifact["program"]["instructions"]
    at = next(i for i, step in enumerate(steps) if step["k"] == EPERM)
    steps[at]["k"] = ALLOW
    found = verify(POLICY, canonical(artifact))
    assert isinstance(found, Counterexample)
    assert (found.artifact, found.policy) == ("allow", "errno EPERM")
    assert found.part.startswith(f"instruction {at:04}")


def test_tables_of_another_policy_are_no_proof() -> None:
    other = policy(
        {"api": "allow connect tcp to 10.0.0.0/24:443", "rest": "deny connect to anything else"}
    )
    assert isinstance(verify(other, canonical(_json())), Counterexample)


def test_a_rule_that_says_something_else_is_a_difference() -> None:
    artifact = _json()
    artifact["rules"][0]["reason"] = "because"
    assert isinstance(verify(POLICY, canonical(artifact)), Counterexample)


def test_a_listen_that_is_excepted_everywhere_is_let_be_on_windows() -> None:
    meant = policy(  # a random policy was the first to show that no port was taken for every port
        {
            "c": "deny connect to anything:443",
            "l": "deny listen on anything else, 10.0.0.9:80 except anything",
        }
    )
    found = verify(meant, codec.dumps(compile_policy(meant, "windows")))
    assert isinstance(found, Proof), str(found)


# --- the cells of a word


@pytest.mark.parametrize(
    "tests",
    [
        {(FULL, JEQ, 5), (FULL, JGE, 0x40000000)},
        {(FULL, JEQ, FULL), (FULL, JEQ, 0)},
        {(0xF, JEQ, 1), (0xF, JEQ, 2), (FULL, JEQ, 41)},
        {(0x80000001, JEQ, 1), (FULL, JGE, 0x80000000)},
        {(FULL, 0x45, 6), (FULL, 0x25, 9)},
    ],
)
def test_no_combination_of_answers_is_left_out(tests: set[tuple[int, int, int]]) -> None:
    def answers(value: int) -> tuple[bool, ...]:
        ways = {0x15: int.__eq__, 0x25: int.__gt__, 0x35: int.__ge__, 0x45: int.__and__}
        return tuple(bool(ways[code](value & mask, k)) for mask, code, k in sorted(tests))

    found = {answers(value) for value in cells(tests)}
    rng = random.Random(1)
    edges = [k + near for _, _, k in tests for near in (-1, 0, 1)]
    tried = [
        value & FULL for value in (*edges, *range(64), *(rng.getrandbits(32) for _ in range(999)))
    ]
    assert {answers(value) for value in tried} <= found


# --- what other compilers got wrong (libseccomp 2.5.4, minijail)


def _answer(number: str, *arguments: int, arch: str = "x86_64") -> int:
    program = _json(f"linux-{arch}")["program"]
    code = [(s["code"], s["jt"], s["jf"], s["k"]) for s in program["instructions"]]
    assert compare_program(program, required(POLICY, arch))[1] is None
    return bpf.run(code, bpf.data(NUMBERS[arch][number], ARCH[arch], arguments)).action


@pytest.mark.parametrize("arch", ARCH)
def test_l1_high_bits_of_an_int_argument_let_nothing_through(arch: str) -> None:
    for high in (0, 1 << 32, 1 << 63, 0xFFFFFFFF << 32):
        assert _answer("socket", high | 17, 3, 0, arch=arch) == NOTIFY
        assert _answer("socket", high | 2, high | 1, high, arch=arch) == ALLOW
        assert _answer("setsockopt", 3, high | 41, high | 57, arch=arch) == EPERM


def test_l2_a_narrower_rule_of_one_call_is_not_lost() -> None:
    assert _answer("socket", 17, 3, 0) == NOTIFY
    assert _answer("socket", 2, 1, 0) == ALLOW
    meant = policy(
        {
            "all": "observe connect to anything",
            "narrow": "deny connect to 10.0.0.1:443",
            "wide": "allow connect to 10.0.0.0/8",
        }
    )
    found = verify(meant, codec.dumps(compile_policy(meant, "linux-x86_64")))
    assert isinstance(found, Proof)


def test_l3_several_comparisons_with_both_words_of_an_argument_are_right() -> None:
    for address in (1, 1 << 31, 0xFFFFFFFF, 1 << 32, 0xFFFFFFFF << 32, (1 << 64) - 1):
        assert _answer("sendto", 3, 0, 0, 0, address) == NOTIFY
    assert _answer("sendto", 3, 0, 0, 0, 0) == ALLOW


@pytest.mark.timeout(30)
def test_l4_overlapping_ranges_end() -> None:
    meant = policy(
        {
            "a": "deny connect to 0.0.0.0/1:1-21474",
            "b": "deny connect to 0.0.0.0/0:17-30000",
            "c": "deny connect to 64.0.0.0/2:1-17, [::/1]:17",
            "d": "allow connect to 96.0.0.0/3:1-40000",
        }
    )
    for target in TARGETS:
        assert isinstance(verify(meant, codec.dumps(compile_policy(meant, target))), Proof)


def test_m1_a_deny_before_an_allow_of_everything_is_not_dropped() -> None:
    meant = policy({"a": "deny connect to 10.0.0.1", "b": "allow connect to anything"})
    artifact = codec.to_json(compile_policy(meant, "linux-x86_64"))
    assert isinstance(verify(meant, canonical(artifact)), Proof)
    outcomes = [entry.get("refuse") for entry in artifact["tables"]["entries"]]
    assert [0] in outcomes
    assert _answer("socket", 17, 3, 0) == NOTIFY
