"""The kernel's action cache as the artifact has it: no argument, no trap, nothing else is in it."""

from __future__ import annotations

import pytest
from authored import policy

from flowproof.artifact.model import Program
from flowproof.cli.proving import Proven, finished
from flowproof.lower.backend import compile_policy
from flowproof.verify import bpf
from flowproof.verify.cache import NUMBERS, cached
from flowproof.verify.require import ARCH
from flowproof.verify.require import NUMBERS as CALLS

POLICY = policy({"rest": "deny connect to anything else"})


def _program(arch: str) -> Program:
    done = finished(POLICY, compile_policy(POLICY, f"linux-{arch}"))
    assert isinstance(done, Proven)
    artifact = done.artifact
    assert artifact.program is not None
    return artifact.program


@pytest.mark.parametrize("arch", ARCH)
def test_what_no_rule_needs_is_answered_without_the_program(arch: str) -> None:
    program = _program(arch)
    held = {n for low, high in program.cached for n in range(low, high + 1)}
    assert set(range(NUMBERS)) - held == {*CALLS[arch].values(), 425, 426, 427}


@pytest.mark.parametrize("arch", ARCH)
def test_a_cached_number_is_allowed_whatever_its_arguments(arch: str) -> None:
    program = _program(arch)
    code = [(s.code, s.jt, s.jf, s.k) for s in program.instructions]
    for low, high in program.cached:
        for number in (low, high):
            for words in ((0,) * 6, ((1 << 64) - 1,) * 6):
                answer = bpf.run(code, bpf.data(number, ARCH[arch], words))
                assert (answer.action, answer.argument_read) == (0x7FFF0000, False)


def test_a_load_of_the_pointer_leaves_nothing_in_the_cache() -> None:
    assert cached([(bpf.LD_ABS, 0, 0, 8), (bpf.RET_K, 0, 0, 0x7FFF0000)], "x86_64") == ()
    assert cached([(bpf.RET_K, 0, 0, 0x7FFF0000)], "x86_64") == ((0, NUMBERS - 1),)
