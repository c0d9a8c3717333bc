"""Which calls about files a program traps: those that some rule needs to see, an open only by its flags."""

from __future__ import annotations

import os

import pytest
from authored import policy

from flowproof.artifact.model import Program
from flowproof.lower.backend import compile_policy
from flowproof.lower.seccomp import bpf as encoding
from flowproof.lower.seccomp.numbers import SYSCALLS
from flowproof.verify import bpf
from flowproof.verify.paths import paths

ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
each_arch = pytest.mark.parametrize("arch", ARCH)

DELETING = {"unlink", "unlinkat", "rmdir"}
RENAMING = {"rename", "renameat", "renameat2"}
CUTTING = {"truncate", "ftruncate", "creat", "open", "openat", "openat2", "open_by_handle_at"}
MAKING = {"mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat"}
WANTED: dict[str, set[str]] = {
    "delete": DELETING | RENAMING,
    "rename": RENAMING,
    "truncate": CUTTING,
    "destroy": DELETING | RENAMING | CUTTING,
    "write": DELETING | RENAMING | CUTTING | MAKING,
}
CUTS, WRITES = os.O_TRUNC, (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, 3)


def program(arch: str, **rules: str) -> Program:
    found = compile_policy(policy(rules), f"linux-{arch}").program
    assert found is not None
    return found


def answer(held: Program, arch: str, number: int, *arguments: int) -> int:
    code = encoding.decode(encoding.encode(held.instructions))
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    return bpf.run(code, bpf.data(number, ARCH[arch], padded)).action


@each_arch
@pytest.mark.parametrize("operation", WANTED)
@pytest.mark.parametrize("verb", ["expect no", "observe"])
def test_only_calls_that_may_amount_to_the_operation_are_trapped(
    arch: str, operation: str, verb: str
) -> None:
    held = program(arch, r=f"{verb} {operation} under /srv")
    known = SYSCALLS[arch]
    wanted = {(known[call], call) for call in WANTED[operation] if call in known}
    assert {(call.number, call.call) for call in held.trapped} == wanted
    for call, number in known.items():
        if call.startswith("io_uring"):
            continue
        seen = answer(held, arch, number, 3, 0xFFFF, 0xFFFF) == NOTIFY
        assert seen is ((number, call) in wanted), call


@each_arch
@pytest.mark.parametrize("operation", ["truncate", "write"])
@pytest.mark.parametrize(("call", "place"), [("open", 1), ("openat", 2), ("open_by_handle_at", 2)])
def test_an_open_is_seen_by_its_flags_alone(
    arch: str, operation: str, call: str, place: int
) -> None:
    if call not in SYSCALLS[arch]:
        return
    held = program(arch, r=f"expect no {operation} under /srv")
    asking = {CUTS} if operation == "truncate" else set(WRITES)
    junk = 0xDEADBEEF << 32  # flags are an int: the kernel looks at the low word
    for flags in range(1 << 14):
        if flags.bit_count() > 2 and flags & 3 != 3:
            continue
        arguments = [5, 5, 5, 5]
        arguments[place] = flags | junk
        seen = answer(held, arch, SYSCALLS[arch][call], *arguments) == NOTIFY
        assert seen is any(flags & bit for bit in asking), oct(flags)


@each_arch
def test_rules_that_refuse_files_trap_nothing(arch: str) -> None:
    for sentence in ("deny delete under /srv", "never write anywhere", "allow write under /srv"):
        artifact = compile_policy(policy({"r": sentence}), f"linux-{arch}")
        assert artifact.program is not None
        assert (artifact.program.trapped, artifact.lanes, artifact.tables.files) == ((), (), ())


@each_arch
def test_without_a_rule_about_files_the_program_is_what_it_was(arch: str) -> None:
    rules = {"a": "deny connect to 10.0.0.9", "s": "observe listen"}
    plain = program(arch, **rules)
    assert not {call.call for call in plain.trapped} & set().union(*WANTED.values())
    refused = program(arch, **rules, f="deny delete under /srv")
    assert encoding.encode(refused.instructions) == encoding.encode(plain.instructions)


@each_arch
def test_lanes_are_those_that_are_looked_at(arch: str) -> None:
    def lanes(**rules: str) -> tuple[str, ...]:
        return compile_policy(policy(rules), f"linux-{arch}").lanes

    files, connect = "observe delete under /srv", "deny connect to 10.0.0.9"
    assert lanes(f=files) == ("files",)
    assert lanes(f=files, c=connect) == ("connect", "files")
    assert lanes(c=connect) == ("connect",)


@each_arch
def test_foreign_calls_and_io_uring_are_refused_where_files_are_seen(arch: str) -> None:
    held = program(arch, r="expect no delete under /srv")
    assert answer(held, arch, SYSCALLS[arch]["io_uring_setup"]) == 0x0005_0001
    code = encoding.decode(encoding.encode(held.instructions))
    foreign = bpf.run(code, bpf.data(10, 0x40000003))
    assert (foreign.action, foreign.argument_read) == (NOTIFY, False)
    if arch == "x86_64":
        assert answer(held, arch, 0x40000000 + 87) == NOTIFY
    assert [reply.event for reply in held.fixed] == ["foreign-abi"]


@each_arch
def test_the_longest_ways_stay_short(arch: str) -> None:
    """With every lane: the bounds of the connect lane and one comparison more."""
    held = program(
        arch,
        c="never connect to anything else",
        a="allow connect to 10.0.0.9",
        f="expect no write anywhere",
    )
    found = list(paths(encoding.decode(encoding.encode(_without_jset(held).instructions))))
    assert max(way.executed for way in found if not way.argument_read) <= 11
    assert max(way.executed for way in found if way.argument_read) <= 20
    assert len(held.instructions) <= 96


def _without_jset(held: Program) -> Program:
    """The same program with its tests of flags as comparisons, which `paths` follows."""
    from flowproof.values import replace  # noqa: PLC0415  for this alone

    steps = tuple(
        replace(step, code=encoding.JEQ) if step.code == encoding.JSET else step
        for step in held.instructions
    )
    return replace(held, instructions=steps)


@each_arch
def test_each_instruction_names_the_operation_that_it_is_for(arch: str) -> None:
    held = compile_policy(
        policy({"d": "expect no delete under /a", "t": "observe truncate under /b"}),
        f"linux-{arch}",
    )
    assert held.program is not None
    ids = [rule.id for rule in held.rules]
    asked = {name: [ids[rule] for rule in rules] for name, rules in held.program.causes.items()}
    assert (asked["delete"], asked["truncate"]) == (["d"], ["t"])
    jset = [step for step in held.program.instructions if step.code == encoding.JSET]
    assert jset
    assert all(step.causes == ("truncate",) for step in jset)
