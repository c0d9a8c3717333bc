"""What the tests of the runner's core share: hand-made artifacts, a hand-made filter, a contained child."""

from __future__ import annotations

import json
import os
import platform
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flowproof.addresses import parse_address
from flowproof.artifact.model import (
    PLANES,
    Artifact,
    Entry,
    FixedReply,
    Instruction,
    Plane,
    PortTable,
    Program,
    Rule,
    Symbol,
    Tables,
    TrappedCall,
    UnixRow,
)
from flowproof.record.wire import COUNTERS
from flowproof.run import numbers as n
from flowproof.run.bind import Bound, bind
from flowproof.run.kernel import Kernel
from flowproof.run.supervisor import Supervisor

ALLOW, DENY, NEVER, OBSERVE = 0, 1, 2, 3
RULES = (
    Rule("a.allow", "allow", "none", "connect", "authored", "allow connect to …", None, None),
    Rule("b.deny", "deny", "containment", "connect", "authored", "deny connect to …", None, None),
    Rule("c.never", "never", "containment+behaviour", "connect", "authored", "never …", None, None),
    Rule("d.observe", "observe", "report", "connect", "authored", "observe …", None, None),
)
EXEMPT = Entry(otherwise=())
ALLOWED = Entry(allow=(ALLOW,))
REFUSED = Entry(refuse=(NEVER,), watch=(NEVER,))
ELSE = Entry(otherwise=(NEVER,), watch_otherwise=(NEVER,))
ENTRIES = (EXEMPT, ALLOWED, REFUSED, ELSE)
LOOPBACK4 = 127 << 24


def value(text: str) -> int:
    parsed = parse_address(text)
    assert parsed is not None
    return parsed[1]


def plane(cells: Mapping[int, int]) -> Plane:
    """A plane by the addresses at which its intervals begin."""
    return Plane(tuple(sorted(cells)), tuple(cells[start] for start in sorted(cells)))


def tables(unix: tuple[UnixRow, ...] = (), *, refusing: bool = True) -> Tables:
    """Loopback is exempt but for 127.0.0.2 (refused) and 127.0.0.3 (allowed); all else is refused."""
    other = 3 if refusing else 0
    four = {0: other, LOOPBACK4: 0, value("127.0.0.2"): 2 if refusing else 0,
            value("127.0.0.3"): 1, value("127.0.0.4"): 0, value("128.0.0.0"): other}  # fmt: skip
    six = {0: other, 1: 0, 2: other}
    listens = {0: other, LOOPBACK4: 0, value("128.0.0.0"): other}
    planes = {
        "tcp4": plane(four),
        "udp4": plane(four),
        "tcp6": plane(six),
        "udp6": plane(six),
        "listen4": plane(listens),
        "listen6": plane(six),
        "listen-any4": plane({0: other}),
        "listen-any6": plane({0: other}),
    }
    assert set(planes) == set(PLANES)
    special = dict.fromkeys(("families", "foreign-abi", "unreadable", "unix"), other)
    ports = tuple(PortTable((0,), (entry,)) for entry in range(len(ENTRIES)))
    return Tables(ENTRIES, ports, planes, special, unix)


_NUMBERS = {
    "x86_64": {"connect": 42, "sendto": 44, "sendmsg": 46, "sendmmsg": 307, "listen": 50,
               "socket": 41, "socketpair": 53},
    "aarch64": {"connect": 203, "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "listen": 201,
                "socket": 198, "socketpair": 199},
}  # fmt: skip
CALLS = _NUMBERS.get(platform.machine(), _NUMBERS["x86_64"])
ARCH = platform.machine() if platform.machine() in _NUMBERS else "x86_64"


def program() -> Program:
    """Trap the five calls, sockets of family 17 and up, and every foreign ABI; let the rest be."""
    load, jeq, jge, ret = 0x20, 0x15, 0x35, 0x06
    trapped = ("connect", "sendmsg", "sendmmsg", "listen")
    lines: list[tuple[int, str | int, str | int, int]] = [
        (load, 0, 0, 4),
        (jeq, 0, "notify", n.AUDIT_ARCH[ARCH]),
        (load, 0, 0, 0),
        *([(jge, "notify", 0, n.X32_SYSCALL_BIT)] if ARCH == "x86_64" else []),
        *[(jeq, "notify", 0, CALLS[call]) for call in trapped],
        (jeq, "socket", 0, CALLS["socket"]),
        (jeq, 0, "allow", CALLS["sendto"]),
        (load, 0, 0, 48),
        (jeq, 0, "notify", 0),
        (load, 0, 0, 52),
        (jeq, "allow", "notify", 0),
        (load, 0, 0, 16),
        (jge, "notify", "allow", 17),
        (ret, 0, 0, n.SECCOMP_RET_ALLOW),
        (ret, 0, 0, n.SECCOMP_RET_USER_NOTIF),
    ]
    labels = {"allow": len(lines) - 2, "notify": len(lines) - 1, "socket": len(lines) - 4}

    def offset(at: int, to: str | int) -> int:
        return to if isinstance(to, int) else labels[to] - at - 1

    code = tuple(
        Instruction(op, offset(at, jt), offset(at, jf), k)
        for at, (op, jt, jf, k) in enumerate(lines)
    )
    calls = tuple(TrappedCall(CALLS[call], call) for call in (*trapped, "sendto"))
    fixed = (
        FixedReply("foreign-abi", None, "EPERM", "foreign-abi"),
        FixedReply("socket", CALLS["socket"], "EPERM", "families"),
        FixedReply("socketpair", CALLS["socketpair"], "EPERM", "families"),
    )
    return Program(ARCH, code, calls, fixed, ())


def artifact(
    made: Tables | None = None,
    symbols: tuple[Symbol, ...] = (),
    rules: tuple[Rule, ...] = RULES,
    hosts: Mapping[str, tuple[str, ...]] | None = None,
) -> Artifact:
    return Artifact(
        target=f"linux-{ARCH}",
        control="test",
        title=None,
        rules=rules,
        lanes=("connect",),
        fidelity=(),
        tables=made or tables(),
        symbols=symbols,
        program=program(),
        filters=None,
        hosts=hosts or {},
        verification="none",
        digests={},
        tool="test",
    )


def bound(made: Tables | None = None) -> Bound:
    found = bind(artifact(made), {}, cwd="/")
    assert isinstance(found, Bound)
    return found


class FaultyKernel(Kernel):
    """A kernel of which some calls fail: name → errno."""

    def __init__(self, faults: Mapping[str, int]) -> None:
        super().__init__()
        for name, errno in faults.items():
            assert hasattr(Kernel, name), name
            setattr(self, name, self._failing(name, errno))

    @staticmethod
    def _failing(name: str, errno: int) -> Callable[..., object]:
        def fail(*_arguments: object) -> object:
            raise OSError(errno, f"{name}: staged")

        return fail


class Run:
    """A child under the filter, and what its supervisor told."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.counters = bytearray(COUNTERS.size)
        self.pid = 0
        self.answer: object = None
        self.supervisor: Supervisor | None = None
        self._pipe = -1

    @property
    def attempts(self) -> list[tuple[object, ...]]:
        return [event for event in self.events if event[0] == "attempt"]

    @property
    def faults(self) -> list[tuple[object, ...]]:
        return [event for event in self.events if event[0] == "fault"]

    def wait(self) -> Any:  # noqa: ANN401  JSON
        """Return what the child's function returned."""
        data = b""
        while chunk := os.read(self._pipe, 65536):
            data += chunk
        os.waitpid(self.pid, 0)
        self.answer = json.loads(data) if data else None
        return self.answer

    def counts(self) -> tuple[int, int]:
        received, answered = COUNTERS.unpack(self.counters)
        return received, answered


@contextmanager
def contained(
    work: Callable[[], object],
    *,
    kernel: Kernel | None = None,
    policy: Bound | None = None,
    before: Callable[[], None] | None = None,
) -> Iterator[Run]:
    """Run *work* in a child under the filter; its result (JSON) comes back through a pipe."""
    run = Run()
    judged = policy or bound()
    held = judged.artifact.program
    assert held is not None
    raw = b"".join(struct.pack("=HBBI", i.code, i.jt, i.jf, i.k) for i in held.instructions)
    answer, told = os.pipe()
    number, numbered = os.pipe()
    going, go = os.pipe()
    kernel = kernel or Kernel()
    plain = Kernel()
    run.pid = os.fork()
    if run.pid == 0:
        code = 1
        try:
            os.close(answer)
            signal.alarm(60)
            if before is not None:
                before()
            plain.set_no_new_privs()
            listener = plain.install_filter(raw)
            os.write(numbered, struct.pack("=i", listener))
            os.read(going, 1)
            os.close(listener)
            result = work()
            os.write(told, json.dumps(result).encode())
            code = 0
        except BaseException:  # noqa: BLE001  told to the test, and nothing gets past the child's end
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(code)
    os.close(told)
    run._pipe = answer
    (theirs,) = struct.unpack("=i", os.read(number, 4))
    pidfd = plain.pidfd_open(run.pid)
    listener = plain.pidfd_getfd(pidfd, theirs)
    os.close(pidfd)
    begun = time.monotonic()
    supervisor = Supervisor(
        kernel,
        listener,
        judged,
        held,
        run.events.extend,
        run.counters,
        lambda at: int((at - begun) * 1000),
    )
    run.supervisor = supervisor
    supervisor.start()
    os.write(go, b"!")
    try:
        yield run
    finally:
        try:
            os.kill(run.pid, signal.SIGKILL)
            os.waitpid(run.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        supervisor.stop()
        for descriptor in (answer, number, numbered, going, go):
            os.close(descriptor)
