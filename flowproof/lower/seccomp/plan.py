"""What a program has to trap, and which rules ask for it: only what some rule needs to see."""

from __future__ import annotations

from flowproof.ir.model import OPERATIONS
from flowproof.lower.files import observed
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.ir.model import Policy, Rule

__all__ = ["Plan", "plan"]


class Plan(Value):
    """The rules (by index) that ask for each part of a program; no rule: the part is left out.

    *connect*: connect, sendto with an address, sendmsg and sendmmsg are decided, and options that
    route by source fail in the kernel. *listen*: listen is.
    *families*: socket and socketpair pass an allow-list; what does not pass is refused, or goes on where
    it is only counted (*refuses*). *foreign*: another ABI gets a fixed reply.
    *io_uring*: its calls fail in the kernel. *files*: file operation → the rules that need to see it; only
    what is observed, nothing is refused.
    """

    connect: tuple[int, ...]
    listen: tuple[int, ...]
    families: tuple[int, ...]
    foreign: tuple[int, ...]
    io_uring: tuple[int, ...]
    refuses: bool
    files: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def traps(self) -> bool:
        """Whether anything is trapped at all."""
        return bool(self.lanes)

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes that a run engages."""
        connect = ("connect",) if self.connect or self.listen else ()
        return (*connect, "files") if self.files else connect


def plan(policy: Policy) -> Plan:
    """Return what the program of *policy* has to do.

    An implied rule of foreign calls or of io_uring is there where a lane is trapped, and is reason enough.
    """

    def where(wanted: Callable[[Rule], bool]) -> tuple[int, ...]:
        return tuple(at for at, rule in enumerate(policy.rules) if wanted(rule))

    def stands_for(meaning: str) -> Callable[[Rule], bool]:
        return lambda rule: (
            rule.meaning == meaning
            or (
                rule.meaning is None
                and rule.action == "connect"
                and rule.verb != "allow"
                and (rule.refuses or meaning != "io-uring")  # nobody counts io_uring
                and (rule.targets.bare_anything or rule.targets.bare_otherwise)
            )
        )

    connect = where(lambda rule: rule.action == "connect" and rule.meaning is None)
    refusing = where(
        lambda rule: rule.action == "connect" and rule.meaning is None and rule.refuses
    )
    listen = where(lambda rule: rule.action == "listen" and rule.meaning is None)
    if policy.connect_denies:  # off loopback a listen is refused as soon as a connect rule denies
        implied = where(lambda rule: rule.meaning == "listen")
        listen = tuple(sorted({*listen, *implied})) or refusing
    seen = where(observed)
    files = tuple(
        (operation, rules)
        for operation in OPERATIONS
        if (rules := tuple(at for at in seen if operation in policy.rules[at].operations))
    )
    trapped = tuple(sorted({*connect, *listen, *(rule for _, held in files for rule in held)}))
    return Plan(
        connect=connect,
        listen=listen,
        # a rule that only counts or observes sees them too: what is not trapped cannot be counted
        families=where(stands_for("families")) or (refusing if policy.connect_denies else ()),
        foreign=where(stands_for("foreign-abi")) or trapped,
        io_uring=where(stands_for("io-uring")) or trapped,
        refuses=policy.connect_denies,
        files=files,
    )
