"""The program at the level of its control flow: every way through it, not samples."""

from __future__ import annotations

from itertools import pairwise

import pytest
from authored import policy

from flowproof.artifact.model import Program
from flowproof.lower.backend import compile_policy
from flowproof.lower.seccomp import bpf as encoding
from flowproof.lower.seccomp.numbers import (
    AUDIT_ARCH_AARCH64,
    AUDIT_ARCH_ARM,
    AUDIT_ARCH_I386,
    AUDIT_ARCH_X86_64,
    SYSCALLS,
)
from flowproof.verify import bpf
from flowproof.verify.paths import Path, paths

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
EPERM = 0x00050001
ARCH = {"x86_64": AUDIT_ARCH_X86_64, "aarch64": AUDIT_ARCH_AARCH64}
ARCHES = tuple(ARCH)
NUMBER_OFFSET, ARCH_OFFSET = 0, 4

CONTROLS: dict[str, dict[str, str]] = {
    "everything of the connect lane": {
        "api": "allow connect tcp to 10.0.0.0/24:443",
        "rest": "never connect to anything else",
        "srv": "allow listen on anything:8080",
    },
    "a deny by address": {"no-db": "deny connect to 10.0.0.9"},
    "an allow by name": {"api": "allow connect to api.example.com:443"},
    "observe only": {"look": "observe connect to anything"},
    "expect no": {"quiet": "expect no connect to anything else"},
    "listen only": {"no-srv": "deny listen"},
    "listen observed": {"look": "observe listen"},
}


def program(rules: dict[str, str], arch: str) -> Program:
    found = compile_policy(policy(rules), f"linux-{arch}").program
    assert found is not None
    return found


def ways(rules: dict[str, str], arch: str) -> list[Path]:
    return list(paths(encoding.decode(encoding.encode(program(rules, arch).instructions))))


each_control = pytest.mark.parametrize("rules", CONTROLS.values(), ids=CONTROLS)
each_arch = pytest.mark.parametrize("arch", ARCHES)


@each_control
@each_arch
def test_the_kernel_would_take_the_program(rules: dict[str, str], arch: str) -> None:
    bpf.check(encoding.decode(encoding.encode(program(rules, arch).instructions)))


@each_control
@each_arch
def test_no_way_with_a_foreign_arch_reaches_allow(rules: dict[str, str], arch: str) -> None:
    native = ARCH[arch]
    allowing = [way for way in ways(rules, arch) if way.action == ALLOW]
    assert allowing
    for way in allowing:
        assert way.word(ARCH_OFFSET) == ((native, native),)


@each_control
def test_no_way_with_an_x32_number_reaches_allow(rules: dict[str, str]) -> None:
    for way in ways(rules, "x86_64"):
        if way.action == ALLOW:
            assert max(last for _, last in way.word(NUMBER_OFFSET)) < 0x40000000


@each_control
@each_arch
def test_foreign_arch_is_answered_by_notification(rules: dict[str, str], arch: str) -> None:
    code = encoding.decode(encoding.encode(program(rules, arch).instructions))
    for foreign in (AUDIT_ARCH_I386, AUDIT_ARCH_ARM, *ARCH.values(), 0, 0xFFFFFFFF):
        if foreign == ARCH[arch]:
            continue
        for number in (0, 3, 42, 102, 203, 0xFFFFFFFF):
            answer = bpf.run(code, bpf.data(number, foreign))
            assert (answer.action, answer.argument_read) == (NOTIFY, False)


@each_control
def test_number_minus_one_does_not_slip_through_on_x86_64(rules: dict[str, str]) -> None:
    code = encoding.decode(encoding.encode(program(rules, "x86_64").instructions))
    for number in (0xFFFFFFFF, 0x40000000, 0x40000000 + 42, 0x80000000 + 42):
        assert bpf.run(code, bpf.data(number, ARCH["x86_64"])).action == NOTIFY


@each_control
@each_arch
def test_the_program_is_within_its_bounds(rules: dict[str, str], arch: str) -> None:
    found = ways(rules, arch)
    assert max(way.executed for way in found if not way.argument_read) <= 10
    assert max((way.executed for way in found if way.argument_read), default=0) <= 20
    assert len(program(rules, arch).instructions) <= 64


@each_control
@each_arch
def test_only_numbers_that_a_rule_needs_read_an_argument(rules: dict[str, str], arch: str) -> None:
    numbers = SYSCALLS[arch]
    held = program(rules, arch)
    needed = {reply.number for reply in held.fixed if reply.number is not None}
    needed |= {call.number for call in held.trapped if call.call == "sendto"}
    needed |= {option.number for option in held.options}
    reading: set[int] = set()
    for way in ways(rules, arch):
        if way.argument_read:
            for first, last in way.word(NUMBER_OFFSET):
                assert last - first < 2, "a way over many numbers reads an argument"
                reading.update(range(first, last + 1))
    assert reading == needed
    reads = ("sendto", "socket", "socketpair", "setsockopt")
    assert needed <= {numbers[call] for call in reads}


@each_arch
def test_options_that_choose_the_way_fail_and_their_neighbours_do_not(arch: str) -> None:
    held = program({"no-db": "deny connect to 10.0.0.9"}, arch)
    code = encoding.decode(encoding.encode(held.instructions))
    number = SYSCALLS[arch]["setsockopt"]
    routing = {(1, 25), (1, 62), (0, 4), (0, 50), *((41, o) for o in (6, 32, 50, 57, 76))}
    junk = 0xDEADBEEF << 32
    assert {(option.level, option.option) for option in held.options} == routing
    for level in (0, 1, 6, 17, 40, 41, 42):
        for option in (*range(80), 0xFFFFFFFF):
            arguments = (3, level | junk, option | junk, 0, 0, 0)
            answer = bpf.run(code, bpf.data(number, ARCH[arch], arguments))
            refused = (level, option) in routing
            assert (answer.action == 0x0005_0001) is refused, (level, option)
            assert refused or answer.action == 0x7FFF_0000


@each_arch
def test_options_are_looked_at_wherever_connections_are(arch: str) -> None:
    assert program({"look": "observe connect to anything"}, arch).options
    assert program(CONTROLS["listen only"], arch).options == ()


@each_control
@each_arch
def test_the_ways_cover_every_number_once(rules: dict[str, str], arch: str) -> None:
    native = ARCH[arch]
    spans = sorted(
        {
            span
            for way in ways(rules, arch)
            if way.word(ARCH_OFFSET) == ((native, native),)
            for span in way.word(NUMBER_OFFSET)
        }
    )
    assert spans[0][0] == 0
    assert spans[-1][1] == 0xFFFFFFFF
    assert all(left[1] + 1 == right[0] for left, right in pairwise(spans))


@each_arch
def test_a_control_that_needs_nothing_allows_everything_and_engages_no_lane(arch: str) -> None:
    artifact = compile_policy(policy({}), f"linux-{arch}")
    assert artifact.program is not None
    assert [(step.code, step.k) for step in artifact.program.instructions] == [(0x06, ALLOW)]
    assert artifact.lanes == ()
    assert artifact.program.fixed == artifact.program.trapped == artifact.program.refused == ()


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        (
            "everything of the connect lane",
            {"connect", "sendto", "sendmsg", "sendmmsg", "listen"},
        ),
        ("a deny by address", {"connect", "sendto", "sendmsg", "sendmmsg", "listen"}),
        ("observe only", {"connect", "sendto", "sendmsg", "sendmmsg"}),
        ("listen only", {"listen"}),
    ],
)
@each_arch
def test_only_what_a_rule_needs_is_trapped(name: str, calls: set[str], arch: str) -> None:
    held = program(CONTROLS[name], arch)
    assert {call.call for call in held.trapped} == calls
    assert all(call.number == SYSCALLS[arch][call.call] for call in held.trapped)


@each_arch
def test_families_are_refused_where_a_connect_rule_denies_and_seen_where_one_counts_them(
    arch: str,
) -> None:
    refused = {("foreign-abi", "EPERM"), ("socket", "EPERM"), ("socketpair", "EPERM")}
    seen = {("foreign-abi", "EPERM"), ("socket", None), ("socketpair", None)}

    def fixed(rules: dict[str, str]) -> set[tuple[str, str | None]]:
        return {(reply.event, reply.errno) for reply in program(rules, arch).fixed}

    assert fixed(CONTROLS["a deny by address"]) == refused
    assert fixed(CONTROLS["an allow by name"]) == refused
    assert fixed({"r": "expect no connect to anything"}) == seen
    assert fixed({"r": "observe connect to anything else"}) == seen
    assert fixed({"r": "expect no connect tcp to anything"}) == {("foreign-abi", "EPERM")}
    assert fixed({"r": "expect no connect to 10.0.0.9"}) == {("foreign-abi", "EPERM")}
    assert fixed(CONTROLS["listen only"]) == {("foreign-abi", "EPERM")}


@each_control
@each_arch
def test_io_uring_fails_in_the_kernel(rules: dict[str, str], arch: str) -> None:
    code = encoding.decode(encoding.encode(program(rules, arch).instructions))
    for call in ("io_uring_setup", "io_uring_enter", "io_uring_register"):
        assert bpf.run(code, bpf.data(SYSCALLS[arch][call], ARCH[arch])).action == EPERM


HIGH = 0xFFFFFFFF00000000
SOCKETS = [
    ((2, 1, 0), ALLOW),
    ((2, 2, 0), ALLOW),
    ((10, 1, 6), ALLOW),
    ((10, 2, 17), ALLOW),
    ((2, 1 | 0x80800, 0), ALLOW),  # SOCK_CLOEXEC | SOCK_NONBLOCK
    ((1, 5, 0), ALLOW),
    ((1, 2, 99), ALLOW),
    ((16, 3, 0), ALLOW),
    ((2 | HIGH, 1 | HIGH, 0 | HIGH), ALLOW),
    ((17, 3, 0), NOTIFY),  # AF_PACKET
    ((17 | 1 << 32, 3, 0), NOTIFY),
    ((2 | HIGH, 3 | HIGH, 1 | HIGH), NOTIFY),  # SOCK_RAW, ICMP
    ((2, 3, 0), NOTIFY),
    ((2, 10, 0), NOTIFY),  # SOCK_PACKET
    ((2, 2, 1), NOTIFY),  # a ping socket
    ((2, 1, 132), NOTIFY),  # SCTP
    ((2, 5, 132), NOTIFY),
    ((2, 1, 262), NOTIFY),  # MPTCP
    ((2, 1, 17), NOTIFY),
    ((2, 2, 6), NOTIFY),
    ((2, 2, 136), NOTIFY),  # UDP-Lite
    ((2, 6, 33), NOTIFY),  # DCCP
    ((16, 3, 9), NOTIFY),  # NETLINK_AUDIT
    ((40, 1, 0), NOTIFY),  # AF_VSOCK
    ((0, 1, 0), NOTIFY),
    ((44, 3, 0), NOTIFY),  # AF_XDP
]


@pytest.mark.parametrize(("arguments", "action"), SOCKETS)
@pytest.mark.parametrize("call", ["socket", "socketpair"])
@each_arch
def test_sockets_pass_an_allow_list_over_int_arguments(
    arguments: tuple[int, ...], action: int, call: str, arch: str
) -> None:
    code = encoding.decode(
        encoding.encode(program(CONTROLS["a deny by address"], arch).instructions)
    )
    assert bpf.run(code, bpf.data(SYSCALLS[arch][call], ARCH[arch], arguments)).action == action


@pytest.mark.parametrize(
    ("address", "action"), [(0, ALLOW), (1, NOTIFY), (1 << 32, NOTIFY), ((1 << 64) - 1, NOTIFY)]
)
@each_arch
def test_sendto_without_an_address_is_allowed_and_both_words_are_read(
    address: int, action: int, arch: str
) -> None:
    code = encoding.decode(encoding.encode(program(CONTROLS["observe only"], arch).instructions))
    number = SYSCALLS[arch]["sendto"]
    ones = (1 << 64) - 1
    answer = bpf.run(code, bpf.data(number, ARCH[arch], (ones, ones, ones, ones, address, ones)))
    assert answer.action == action


@each_arch
def test_instructions_name_the_rules_that_made_them(arch: str) -> None:
    control = policy({"no-db": "deny connect to 10.0.0.9", "srv": "observe listen"})
    ids = [rule.id for rule in control.rules]
    held = compile_policy(control, f"linux-{arch}").program
    assert held is not None
    for step in held.instructions:
        named = {ids[at] for cause in step.causes for at in held.causes[cause]}
        match step.words:
            case "allow":
                assert not named
            case "fixed reply EPERM, recorded: socket family":
                assert named == {"p.implied.families"}
            case "fixed reply EPERM, recorded: foreign ABI":
                assert named == {"p.implied.foreign-abi"}
            case "EPERM by the kernel: io_uring":
                assert named == {"p.implied.io-uring"}
            case "the supervisor decides":
                assert named == {"no-db", "srv", "p.implied.listen"}
            case _:
                assert named
