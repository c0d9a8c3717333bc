"""A plan → the program: prologue, a tree over system call numbers, the two checks that read arguments."""

from __future__ import annotations

from flowproof.artifact.files import OPERATIONS
from flowproof.artifact.model import FixedReply, Program, RefusedCall, RefusedOption, TrappedCall
from flowproof.lower.seccomp.assemble import Leaf, Step, assemble, tree
from flowproof.lower.seccomp.bpf import AND, JEQ, LOAD, RETURN
from flowproof.lower.seccomp.file_calls import file_leaves, file_steps, file_traps
from flowproof.lower.seccomp.numbers import (
    __X32_SYSCALL_BIT,
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    AUDIT_ARCH_AARCH64,
    AUDIT_ARCH_X86_64,
    EPERM,
    IP_OPTIONS,
    IPPROTO_IP,
    IPPROTO_IPV6,
    IPPROTO_TCP,
    IPPROTO_UDP,
    IPV6_2292PKTOPTIONS,
    IPV6_FLOWLABEL_MGR,
    IPV6_RTHDR,
    NETLINK_ROUTE,
    SECCOMP_DATA_ARCH,
    SECCOMP_DATA_ARGS,
    SECCOMP_DATA_NR,
    SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO,
    SECCOMP_RET_USER_NOTIF,
    SOCK_DGRAM,
    SOCK_STREAM,
    SYSCALLS,
)
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.lower.seccomp.plan import Plan

__all__ = ["ARCHITECTURES", "program"]

ARCHITECTURES: dict[str, int] = {"x86_64": AUDIT_ARCH_X86_64, "aarch64": AUDIT_ARCH_AARCH64}
"""Architecture → its value in ``seccomp_data.arch``."""

_X32 = __X32_SYSCALL_BIT
_SOCK_TYPE_MASK = 0xF  # linux/net.h: the type without SOCK_CLOEXEC and SOCK_NONBLOCK
_IO_URING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
_DECIDED = ("connect", "sendto", "sendmsg", "sendmmsg")

_ROUTING = (
    (IPPROTO_IP, IP_OPTIONS, "IP_OPTIONS"),
    (IPPROTO_IPV6, IPV6_2292PKTOPTIONS, "IPV6_2292PKTOPTIONS"),
    (IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, "IPV6_FLOWLABEL_MGR"),
    (IPPROTO_IPV6, IPV6_RTHDR, "IPV6_RTHDR"),
)
"""Options that put a route into every packet of a socket (ip(7), RFC 2292, RFC 3542; the options of a flow
label may hold one): the first hop is another address than the one that was judged, and a send on a
connected socket is never seen."""

_ALLOW = "allow"
_DECIDE = "decide"
_FOREIGN = "foreign"
_FAMILY = "family"
_EPERM = "eperm"
_SENDTO = "sendto"
_SOCKET = "socket"
_OPTION = "option"
_ROUTE = "route"

# Parts of the program, as `Program.causes` names them; what routes by source is a part of connect, and each
# file operation is a part of its own.
_CONNECT = ("connect",)
_LISTEN = ("listen",)
_FAMILIES = ("families",)
_FOREIGN_ABI = ("foreign-abi",)
_IO_URING_CALLS = ("io-uring",)
_ORDER = (*_CONNECT, *_LISTEN, *_FAMILIES, *_FOREIGN_ABI, *_IO_URING_CALLS, *OPERATIONS)


def program(plan: Plan, arch: str) -> Program:
    """Return the program of *plan* for *arch* (a key of `ARCHITECTURES`)."""
    if not plan.traps:
        only = Step(RETURN, SECCOMP_RET_ALLOW, "allow: no rule needs to see a system call")
        return Program(arch, assemble([only]), (), (), ())
    numbers = SYSCALLS[arch]
    files = file_traps(plan, arch)
    leaves = _leaves(plan, arch, files)
    name_of = {number: name for name, number in numbers.items()}
    steps = [
        *_prologue(plan, arch),
        *tree(leaves, lambda number: _words(number, name_of), _union),
        *(_sendto() if plan.connect else ()),
        *(_socket() if plan.families else ()),
        *(_option() if plan.connect else ()),
        *file_steps(plan, files),
        *_returns(plan),
    ]
    trapped = [(numbers[call], call) for call in _DECIDED if plan.connect]
    trapped += [(numbers["listen"], "listen")] if plan.listen else []
    trapped += [(numbers[call], call) for call in files]
    fixed = [FixedReply("foreign-abi", None, "EPERM", "foreign-abi")]
    if plan.families:
        fixed += [
            FixedReply(call, numbers[call], "EPERM" if plan.refuses else None, "families")
            for call in ("socket", "socketpair")
        ]
    return Program(
        arch,
        assemble(steps),
        tuple(TrappedCall(number, call) for number, call in sorted(trapped)),
        tuple(fixed),
        tuple(RefusedCall(numbers[call], call, "EPERM") for call in _IO_URING),
        tuple(
            RefusedOption(numbers["setsockopt"], level, option, name, "EPERM")
            for level, option, name in _ROUTING
            if plan.connect
        ),
        causes=_causes(plan),
    )


def _causes(plan: Plan) -> dict[str, tuple[int, ...]]:
    held = (plan.connect, plan.listen, plan.families, plan.foreign, plan.io_uring)
    parts = zip(_ORDER, held, strict=False)
    return {**{name: rules for name, rules in parts if rules}, **dict(plan.files)}


def _words(number: int, name_of: dict[int, str]) -> str:
    if number == _X32:
        return f"{number:#x} (the x32 bit)"
    if number in name_of:
        return f"{number} ({name_of[number]})"
    # A run's first number may be one past the last call of a run, which older headers do not name.
    return str(number)


def _leaves(plan: Plan, arch: str, files: Mapping[str, tuple[str, ...]]) -> list[Leaf]:
    """Return the runs of numbers with one destiny each, in order, from 0 on."""
    numbers = SYSCALLS[arch]
    special: dict[int, tuple[str, tuple[str, ...]]] = {}
    if plan.connect:
        for call in _DECIDED:
            label = _SENDTO if call == "sendto" else _DECIDE
            special[numbers[call]] = (label, _CONNECT)
    if plan.listen:
        special[numbers["listen"]] = (_DECIDE, _LISTEN)
    if plan.families:
        special[numbers["socket"]] = special[numbers["socketpair"]] = (_SOCKET, _FAMILIES)
    if plan.connect:  # what is counted is not on the wire either
        special[numbers["setsockopt"]] = (_OPTION, _CONNECT)
    for call, where in file_leaves(files).items():
        special[numbers[call]] = where
    for call in _IO_URING:
        special[numbers[call]] = (_EPERM, _IO_URING_CALLS)
    # x86_64 numbers with the x32 bit are calls of another ABI under the same arch value; every number
    # above, -1 too, goes the same way. Numbers 512 to 547 stopped being x32's in Linux 5.4, and the
    # runner needs 5.19.
    ends = {_X32: (_FOREIGN, _FOREIGN_ABI)} if arch == "x86_64" else {}
    found: list[Leaf] = []
    for first in sorted({0, *special, *(number + 1 for number in special), *ends}):
        label, causes = special.get(first) or ends.get(first) or (_ALLOW, ())
        if found and found[-1].label == label:  # one run, whoever asks for a part of it
            found[-1] = replace(found[-1], causes=_union(found[-1].causes, causes))
        else:
            found.append(Leaf(first, label, causes))
    return found


def _union(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in _ORDER if name in left or name in right)


def _decided(plan: Plan) -> tuple[str, ...]:
    files = (operation for operation, _ in plan.files)
    return (*(_CONNECT if plan.connect else ()), *(_LISTEN if plan.listen else ()), *files)


def _prologue(plan: Plan, arch: str) -> Iterator[Step]:
    yield Step(LOAD, SECCOMP_DATA_ARCH, "the call's architecture", _FOREIGN_ABI)
    yield Step(JEQ, ARCHITECTURES[arch], f"is it {arch}?", _FOREIGN_ABI, otherwise=_FOREIGN)
    yield Step(LOAD, SECCOMP_DATA_NR, "the system call's number", _decided(plan))


def _argument(index: int, high: bool = False) -> int:
    """Return the offset of a word of an argument (little-endian: the low word comes first)."""
    return SECCOMP_DATA_ARGS + 8 * index + (4 if high else 0)


def _sendto() -> Iterator[Step]:
    """A NULL address is what send() on a connected socket is: nothing to decide. A pointer has 64 bits."""
    yield Step(LOAD, _argument(4), "sendto: dest_addr, low word", _CONNECT, label=_SENDTO)
    yield Step(JEQ, 0, "all zero?", _CONNECT, otherwise=_DECIDE)
    yield Step(LOAD, _argument(4, high=True), "sendto: dest_addr, high word", _CONNECT)
    yield Step(JEQ, 0, "all zero: no address?", _CONNECT, then=_ALLOW, otherwise=_DECIDE)


def _socket() -> Iterator[Step]:
    """The allow-list over int arguments: the kernel reads the low word of each, and so does the filter."""

    def load(argument: int, words: str, label: str | None = None) -> Step:
        return Step(LOAD, _argument(argument), words, _FAMILIES, label=label)

    def equal(value: int, words: str, then: str, otherwise: str | None = None) -> Step:
        return Step(JEQ, value, words, _FAMILIES, then=then, otherwise=otherwise)

    yield load(0, "socket: family", _SOCKET)
    yield equal(AF_INET, "AF_INET?", "internet")
    yield equal(AF_INET6, "AF_INET6?", "internet")
    yield equal(AF_UNIX, "AF_UNIX?", _ALLOW)
    yield equal(AF_NETLINK, "AF_NETLINK?", "netlink", _FAMILY)
    yield load(1, "socket: type", "internet")
    yield Step(AND, _SOCK_TYPE_MASK, "without its flags", _FAMILIES)
    yield equal(SOCK_STREAM, "SOCK_STREAM?", "stream")
    yield equal(SOCK_DGRAM, "SOCK_DGRAM?", "datagram", _FAMILY)
    yield load(2, "socket: protocol of a stream", "stream")
    yield equal(0, "the type's own?", _ALLOW)
    yield equal(IPPROTO_TCP, "TCP?", _ALLOW, _FAMILY)
    yield load(2, "socket: protocol of a datagram socket", "datagram")
    yield equal(0, "the type's own?", _ALLOW)
    yield equal(IPPROTO_UDP, "UDP?", _ALLOW, _FAMILY)
    yield load(2, "socket: netlink protocol", "netlink")
    yield equal(NETLINK_ROUTE, "NETLINK_ROUTE?", _ALLOW, _FAMILY)


def _option() -> Iterator[Step]:
    """Refuse what routes by source; level and option are int arguments, so the low words count."""
    yield Step(LOAD, _argument(1), "setsockopt: level", _CONNECT, label=_OPTION)
    yield Step(JEQ, IPPROTO_IP, "IPPROTO_IP?", _CONNECT, then="ip")
    yield Step(JEQ, IPPROTO_IPV6, "IPPROTO_IPV6?", _CONNECT, otherwise=_ALLOW)
    for level, label in ((IPPROTO_IPV6, None), (IPPROTO_IP, "ip")):
        options = [(option, name) for of, option, name in _ROUTING if of == level]
        yield Step(LOAD, _argument(2), "setsockopt: option", _CONNECT, label=label)
        for option, name in options:
            last = (option, name) == options[-1]
            yield Step(
                JEQ, option, f"{name}?", _CONNECT, then=_ROUTE, otherwise=_ALLOW if last else None
            )


def _returns(plan: Plan) -> Iterator[Step]:
    yield Step(RETURN, SECCOMP_RET_ALLOW, "allow", label=_ALLOW)
    yield Step(
        RETURN, SECCOMP_RET_USER_NOTIF, "the supervisor decides", _decided(plan), label=_DECIDE
    )
    if plan.families:
        yield Step(
            RETURN,
            SECCOMP_RET_USER_NOTIF,
            f"{'fixed reply EPERM' if plan.refuses else 'goes on'}, recorded: socket family",
            _FAMILIES,
            label=_FAMILY,
        )
    yield Step(
        RETURN,
        SECCOMP_RET_USER_NOTIF,
        "fixed reply EPERM, recorded: foreign ABI",
        _FOREIGN_ABI,
        label=_FOREIGN,
    )
    yield Step(
        RETURN,
        SECCOMP_RET_ERRNO | EPERM,
        "EPERM by the kernel: io_uring",
        _IO_URING_CALLS,
        label=_EPERM,
    )
    if plan.connect:
        yield Step(
            RETURN,
            SECCOMP_RET_ERRNO | EPERM,
            "EPERM by the kernel: source routing",
            _CONNECT,
            label=_ROUTE,
        )
