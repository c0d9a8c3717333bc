"""Artifacts made by hand, for tests of the runner: no compiler stage is asked.

In all of them 127.0.0.9 stands for the address that is refused, other loopback is let through, and what is
not loopback is refused by the catch-all, so that no test can reach beyond this machine.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import traceback
from collections.abc import Callable
from typing import Any

from flowproof.artifact.model import (
    Artifact,
    Entry,
    Fidelity,
    FixedReply,
    Instruction,
    Origin,
    Plane,
    PortTable,
    Program,
    Rule,
    Symbol,
    Tables,
    TrappedCall,
)
from flowproof.run import numbers as n
from flowproof.run.command import Command
from flowproof.run.kernel import Kernel

DENIED = "127.0.0.9"
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
SHA = "sha256:" + "0" * 64
_NUMBERS = {
    "x86_64": {
        "connect": 42,
        "sendto": 44,
        "sendmsg": 46,
        "sendmmsg": 307,
        "listen": 50,
        "socket": 41,
    },
    "aarch64": {
        "connect": 203,
        "sendto": 206,
        "sendmsg": 211,
        "sendmmsg": 269,
        "listen": 201,
        "socket": 198,
    },
}
_CLAIMS = {
    "allow": "none",
    "observe": "report",
    "expect no": "behaviour",
    "deny": "containment",
    "never": "containment+behaviour",
}
CALLS = ("connect", "sendto", "sendmsg", "sendmmsg", "listen")


def rule(
    identity: str, verb: str, sentence: str, kind: str = "authored", action: str = "connect"
) -> Rule:
    return Rule(
        identity, verb, _CLAIMS[verb], action, kind, sentence, None, Origin("a.flow.yaml", 3, 5)
    )


def program(calls: tuple[str, ...] = CALLS) -> Program:
    """A filter that traps *calls* (a sendto without an address is let through) and nothing else."""
    arch = platform.machine()
    numbers = _NUMBERS[arch]
    steps: list[tuple[int, int, int, int]] = [
        (n.BPF_LD_W_ABS, 0, 0, 4),
        (n.BPF_JMP_JEQ_K, 1, 0, n.AUDIT_ARCH[arch]),
        (n.BPF_RET_K, 0, 0, n.SECCOMP_RET_USER_NOTIF),
        (n.BPF_LD_W_ABS, 0, 0, 0),
    ]
    for call in calls:
        if call != "sendto":
            steps += [
                (n.BPF_JMP_JEQ_K, 0, 1, numbers[call]),
                (n.BPF_RET_K, 0, 0, n.SECCOMP_RET_USER_NOTIF),
            ]
    if "sendto" in calls:
        steps += [
            (n.BPF_JMP_JEQ_K, 0, 5, numbers["sendto"]),
            (n.BPF_LD_W_ABS, 0, 0, 48),  # args[4], low word
            (n.BPF_JMP_JEQ_K, 0, 2, 0),
            (n.BPF_LD_W_ABS, 0, 0, 52),
            (n.BPF_JMP_JEQ_K, 1, 0, 0),
            (n.BPF_RET_K, 0, 0, n.SECCOMP_RET_USER_NOTIF),
        ]
    steps.append((n.BPF_RET_K, 0, 0, n.SECCOMP_RET_ALLOW))
    trapped = tuple(TrappedCall(numbers[call], call) for call in calls)
    fixed = (FixedReply("foreign-abi", None, "EPERM", "foreign-abi"),)
    return Program(arch, tuple(Instruction(*step) for step in steps), trapped, fixed, ())


def artifact(
    *rules: Rule,
    denied: Entry,
    rest: Entry,
    loopback: Entry | None = None,
    calls: tuple[str, ...] = CALLS,
    symbols: tuple[Symbol, ...] = (),
    fidelity: tuple[Fidelity, ...] | None = None,
) -> Artifact:
    """An artifact whose cells are *denied* at 127.0.0.9, *loopback* elsewhere there, *rest* beyond."""
    assert list(rules) == sorted(rules, key=lambda one: one.id)
    address = int.from_bytes(bytes(map(int, DENIED.split("."))), "big")
    line4 = Plane((0, 127 << 24, address, address + 1, 128 << 24), (2, 1, 0, 1, 2))
    line6 = Plane((0, 1, 2), (2, 1, 2))
    single = Plane((0,), (2,))
    planes = {
        "tcp4": line4,
        "tcp6": line6,
        "udp4": line4,
        "udp6": line6,
        "listen4": line4,
        "listen6": line6,
        "listen-any4": single,
        "listen-any6": single,
    }
    tables = Tables(
        entries=(denied, loopback or Entry(), rest),
        ports=(PortTable((0,), (0,)), PortTable((0,), (1,)), PortTable((0,), (2,))),
        planes=planes,
        special=dict.fromkeys(("families", "foreign-abi", "unreadable", "unix", "unnamed"), 2),
        unix=(),
    )
    if fidelity is None:
        fidelity = tuple(
            Fidelity(
                one.id,
                "exact" if one.verb in ("deny", "never") else None,
                "exact" if one.verb in ("never", "expect no") else None,
                None,
            )
            for one in rules
        )
    return Artifact(
        target=f"linux-{platform.machine()}",
        control="c",
        title="A control",
        rules=rules,
        lanes=("connect",) if calls else (),
        fidelity=fidelity,
        tables=tables,
        symbols=symbols,
        program=program(calls),
        filters=None,
        hosts={},
        verification="none",
        digests={"ir": SHA, "grammar": SHA, "file:a.flow.yaml": SHA},
        tool="flowproof 0",
    )


def never() -> Artifact:
    """``never connect to anything else``, which 127.0.0.9 belongs to here."""
    entry = Entry(otherwise=(0,), watch_otherwise=(0,))
    return artifact(
        rule("c.never", "never", "never connect to anything else"), denied=entry, rest=entry
    )


def deny() -> Artifact:
    """``deny connect to anything else``, which 127.0.0.9 belongs to here."""
    entry = Entry(otherwise=(0,))
    return artifact(
        rule("c.deny", "deny", "deny connect to anything else"), denied=entry, rest=entry
    )


def expect_no() -> Artifact:
    """``expect no connect to 127.0.0.9``: nothing is refused."""
    one = rule("c.expect", "expect no", "expect no connect to 127.0.0.9")
    return artifact(one, denied=Entry(watch=(0,)), rest=Entry())


def observe() -> Artifact:
    """``observe connect to 127.0.0.9``: nothing is refused, and nothing can be judged."""
    one = rule("c.observe", "observe", "observe connect to 127.0.0.9")
    return artifact(one, denied=Entry(watch=(0,)), rest=Entry())


def command(*argv: str, cwd: str = "/", **changes: object) -> Command:
    options: dict[str, Any] = {
        "env": {},
        "timeout": 20.0,
        "expect_exit": 0,
        "prompt": None,
        "name": "agent",
        **changes,
    }
    return Command(argv=argv, cwd=cwd, **options)


def python(code: str, **changes: Any) -> Command:  # noqa: ANN401  any field of a command
    return command(PYTHON, "-c", code, **changes)


class FaultyKernel(Kernel):
    """A kernel that refuses the named calls; *after* lets that many through first."""

    def __init__(self, faults: dict[str, int], after: int = 0) -> None:
        super().__init__()
        self._left = dict.fromkeys(faults, after)
        for name, errno in faults.items():
            setattr(self, name, self._refusing(name, errno, getattr(self, name)))

    def _refusing(self, name: str, errno: int, call: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(*arguments: object, **options: object) -> object:
            if self._left[name] > 0:
                self._left[name] -= 1
                return call(*arguments, **options)
            raise OSError(errno, f"{name}: {os.strerror(errno)}")

        return refuse


def as_user(uid: int, work: Callable[[], object]) -> Any:  # noqa: ANN401  what JSON holds
    """Return what *work* returns (as JSON) in a child that is user *uid* without any capability."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                Kernel().set_dumpable(True)  # as it is after an exec
            os.write(write, json.dumps(work()).encode())
        except BaseException:  # noqa: BLE001  told, and read as no answer
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return json.loads(answer)
