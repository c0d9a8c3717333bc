"""What a policy requires of a Linux program, system call by system call, from policy and target alone.

The numbers are this module's own, from the headers of Linux 6.1 (asm/unistd_64.h, asm-generic/unistd.h,
linux/audit.h, linux/seccomp.h): a wrong constant in the compiler is not repeated here.
"""

from __future__ import annotations

from flowproof.values import Value
from flowproof.verify.file_calls import FLAGS, OPENING, needed
from flowproof.verify.symbolic import FULL, JEQ, JGE, JSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.ir.model import Policy
    from flowproof.verify.symbolic import Test, Tests, Words

__all__ = ["ALLOWED", "ARCH", "NUMBERS", "REFUSED", "Requirement", "argument", "required"]

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "socket": 41,
        "connect": 42,
        "sendto": 44,
        "sendmsg": 46,
        "listen": 50,
        "socketpair": 53,
        "setsockopt": 54,
        "sendmmsg": 307,
    },
    "aarch64": {
        "socket": 198,
        "socketpair": 199,
        "listen": 201,
        "connect": 203,
        "sendto": 206,
        "setsockopt": 208,
        "sendmsg": 211,
        "sendmmsg": 269,
    },
}
IO_URING = {425: "io_uring_setup", 426: "io_uring_enter", 427: "io_uring_register"}
_X32 = 0x40000000
_DECIDED = ("connect", "sendto", "sendmsg", "sendmmsg")

# setsockopt(level, option): IP_OPTIONS, IPV6_2292PKTOPTIONS, IPV6_FLOWLABEL_MGR, IPV6_RTHDR; a route in every
# packet (docs/decisions/0004)
ROUTING: dict[tuple[int, int], str] = {
    (0, 4): "IP_OPTIONS",
    (41, 6): "IPV6_2292PKTOPTIONS",
    (41, 32): "IPV6_FLOWLABEL_MGR",
    (41, 57): "IPV6_RTHDR",
}
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_TRANSPORT = {1: 6, 2: 17}  # SOCK_STREAM: TCP, SOCK_DGRAM: UDP

ALLOWED = ("allow",)
REFUSED = ("errno", "EPERM")
_FAMILIES = ("socket", "socketpair")
_NR, _ARCH = 0, 4


class Requirement(Value):
    """What is required of the program of *arch*: *connect* calls decided, and options that route by source
    refused; *listen* decided; other *families* seen, and refused where something *refuses*, else counted;
    calls that may amount to one of the file *operations* seen.
    """

    arch: str
    connect: bool
    listen: bool
    families: bool
    refuses: bool
    operations: frozenset[str] = frozenset()

    @property
    def traps(self) -> bool:
        """Whether anything is to be trapped at all."""
        return self.connect or self.listen or bool(self.operations)

    def decided(self) -> dict[int, str]:
        """Return the numbers whose calls the supervisor decides, by name."""
        numbers = NUMBERS[self.arch]
        names = (*(_DECIDED if self.connect else ()), *(("listen",) if self.listen else ()))
        return {
            **{numbers[name]: name for name in names},
            **needed(self.arch, self.operations),
        }

    def fixed(self) -> dict[int | None, tuple[str, str, str | None]]:
        """Return (event, special entry, errno) of what a fixed reply answers, by number; number None:
        foreign ABI; errno None: the call goes on.
        """
        held: dict[int | None, tuple[str, str, str | None]] = {}
        if self.traps:
            held[None] = ("foreign-abi", "foreign-abi", "EPERM")
        if self.families:
            errno = "EPERM" if self.refuses else None
            held.update({NUMBERS[self.arch][name]: (name, "families", errno) for name in _FAMILIES})
        return held

    def refused(self) -> dict[int, str]:
        """Return the numbers that the kernel refuses by itself, by name."""
        return dict(IO_URING) if self.traps else {}

    def options(self) -> dict[tuple[int, int, int], str]:
        """Return the names of (number, level, option) that the kernel refuses by itself."""
        number = NUMBERS[self.arch]["setsockopt"]
        return {(number, *pair): name for pair, name in ROUTING.items()} if self.connect else {}

    def foreign(self, arch: int, number: int) -> bool:
        """Tell whether a call is of another ABI: by its architecture, or an x86_64 number with the x32
        bit or above it (-1 too).
        """
        return arch != ARCH[self.arch] or (self.arch == "x86_64" and number >= _X32)

    def of(self, word: Words) -> tuple[str, ...]:
        """Return the class of the call whose words *word* has by offset in struct seccomp_data:
        allow; errno and its name; fixed and its event; decided and the call.
        """
        if not self.traps:
            return ALLOWED
        if word[_ARCH] != ARCH[self.arch] or self.foreign(word[_ARCH], word[_NR]):
            return ("fixed", "foreign-abi")
        number = word[_NR]
        if number in IO_URING:
            return REFUSED
        name = _NAMES[self.arch].get(number)
        if name in _DECIDED and self.connect:
            if name == "sendto" and word[argument(4)] == 0 == word[argument(4, high=True)]:
                return ALLOWED  # send() on a connected socket: no address to decide
            return ("decided", name)
        if name == "listen" and self.listen:
            return ("decided", name)
        if name in _FAMILIES and self.families:
            return ALLOWED if _passes(word) else ("fixed", name)
        if name == "setsockopt" and self.connect:
            pair = (word[argument(1)], word[argument(2)])
            return REFUSED if pair in ROUTING else ALLOWED
        return self._file_call(word) if self.operations else ALLOWED

    def _file_call(self, word: Words) -> tuple[str, ...]:
        """Return the class of a call that is about no socket: an opening one by its flags."""
        name = needed(self.arch, self.operations).get(word[_NR])
        if name is None:
            return ALLOWED
        if name in FLAGS and not word[argument(FLAGS[name])] & self._opening:
            return ALLOWED
        return ("decided", name)

    @property
    def _opening(self) -> int:
        """The flags of which one makes an open one of the operations."""
        flags = 0
        for operation in self.operations & OPENING.keys():
            flags |= OPENING[operation]
        return flags

    def tests(self) -> Tests:
        """Return the comparisons that `of` makes with each word."""
        numbers = {*NUMBERS[self.arch].values(), *IO_URING, *self.decided()}
        tests: dict[int, set[Test]] = {
            _ARCH: {(FULL, JEQ, ARCH[self.arch])},
            _NR: {(FULL, JEQ, number) for number in numbers} | {(FULL, JGE, _X32)},
            argument(0): {(FULL, JEQ, value) for value in (_UNIX, _INET, _INET6, _NETLINK)},
            argument(1): {(FULL, JEQ, level) for level, _ in ROUTING}
            | {(0xF, JEQ, kind) for kind in _TRANSPORT},
            argument(2): {(FULL, JEQ, value) for value in (0, *_TRANSPORT.values())}
            | {(FULL, JEQ, option) for _, option in ROUTING},
            argument(4): {(FULL, JEQ, 0)},
            argument(4, high=True): {(FULL, JEQ, 0)},
        }
        if self._opening:
            for index in FLAGS.values():
                tests[argument(index)].add((FULL, JSET, self._opening))
        return tests


_NAMES = {arch: {number: name for name, number in held.items()} for arch, held in NUMBERS.items()}


def argument(index: int, *, high: bool = False) -> int:
    """Return the offset of a word of an argument; both targets are little-endian."""
    return 16 + 8 * index + (4 if high else 0)


def _passes(word: Words) -> bool:
    """Tell whether a socket is one that the policy judges by address, by int arguments (low words)."""
    family = word[argument(0)]
    if family == _UNIX:
        return True
    if family == _NETLINK:
        return word[argument(2)] == 0  # NETLINK_ROUTE
    if family not in (_INET, _INET6):
        return False
    transport = _TRANSPORT.get(word[argument(1)] & 0xF)
    return transport is not None and word[argument(2)] in (0, transport)


def required(policy: Policy, arch: str) -> Requirement:
    """Return what *policy* requires of the program of *arch* (x86_64, aarch64).

    Connects are decided where a `connect` rule is written, listens where a `listen` rule is or a `connect`
    rule denies (off loopback a listen is refused then). Other socket families are refused there, and counted
    where a rule that is no `allow` is about anything. File operations are seen where a rule observes or
    expects none of them; what refuses them is carried by no program.
    """
    connect = any(rule.action == "connect" and rule.meaning is None for rule in policy.rules)
    denies = any(
        rule.action == "connect" and rule.meaning is None and rule.verb in ("deny", "never")
        for rule in policy.rules
    )
    listen = any(rule.action == "listen" and rule.meaning is None for rule in policy.rules)
    bare = any(
        rule.targets.bare_anything or rule.targets.bare_otherwise
        for rule in policy.rules
        if rule.action == "connect" and rule.meaning is None and rule.verb != "allow"
    )
    operations = {
        operation
        for rule in policy.rules
        if rule.verb in ("observe", "expect no")
        for operation in rule.operations
    }
    return Requirement(
        arch, connect, listen or denies, denies or bare, denies, frozenset(operations)
    )
