"""Callers on paper: memory is a dictionary, and what the calls do to a kernel is only noted."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from errno import EBADF, EFAULT

from supervision import bound, tables

from flowproof.run import numbers as n
from flowproof.run.caller import Caller, Work
from flowproof.run.calls import CALLS
from flowproof.run.decide import Decisions
from flowproof.run.journal import Journal
from flowproof.run.kernel import Kernel, ThreadStatus
from flowproof.run.tree import Tree

STATUS = (
    "Tgid:\t7\nThreads:\t1\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t\nSigPnd:\t0\nShdPnd:\t0\n"
    "SigBlk:\t0\nSigIgn:\t0\nSigCgt:\t0\n"
)
TCP4, TCP6, UDP4, UDP6, STREAM, NETLINK, PING = range(20, 27)
SOCKETS = {
    TCP4: (n.AF_INET, n.SOCK_STREAM, n.IPPROTO_TCP),
    TCP6: (n.AF_INET6, n.SOCK_STREAM, n.IPPROTO_TCP),
    UDP4: (n.AF_INET, n.SOCK_DGRAM, n.IPPROTO_UDP),
    UDP6: (n.AF_INET6, n.SOCK_DGRAM, n.IPPROTO_UDP),
    STREAM: (n.AF_UNIX, n.SOCK_STREAM, 0),
    NETLINK: (n.AF_NETLINK, n.SOCK_RAW, n.NETLINK_ROUTE),
    PING: (n.AF_INET, n.SOCK_DGRAM, 1),
}
SECRET = 0xDEAD0000  # an address at which nothing is mapped


class Paper(Kernel):
    """Memory is a dictionary, a duplicate is the caller's number, and what is done is only noted."""

    def __init__(self) -> None:  # not the real one's: nothing of it is called
        self.memory: dict[int, bytes] = {}
        self.done: list[tuple[object, ...]] = []
        self.open: list[int] = []
        self.faults: dict[str, int] = {}
        self.written: dict[int, bytes] = {}
        self.answers: list[int] = []  # errnos of the connects to come; success beyond
        self.sleeps = True
        self.program = "/bin/program"

    def fail(self, name: str) -> None:
        if name in self.faults:
            raise OSError(self.faults[name], name)

    def map(self, data: bytes) -> int:
        address = 0x1000000 * (len(self.memory) + 1)
        self.memory[address] = data
        return address

    def read_memory(self, tid: int, address: int, length: int) -> bytes:
        self.fail("read_memory")
        for start, data in self.memory.items():
            if start <= address < start + len(data):
                return data[address - start : address - start + length]
        raise OSError(EFAULT, "read_memory")

    def gather_memory(self, tid: int, vectors: list[tuple[int, int]]) -> bytes:
        self.fail("gather_memory")
        return b"".join(self.read_memory(tid, address, length) for address, length in vectors)

    def write_memory(self, tid: int, address: int, data: bytes) -> int:
        self.fail("write_memory")
        self.written[address] = data
        return len(data)

    def pidfd_open(self, tid: int) -> int:
        self.fail("pidfd_open")
        self.open.append(-1)
        return 1000

    def pidfd_getfd(self, pidfd: int, descriptor: int) -> int:
        self.fail("pidfd_getfd")
        if descriptor not in SOCKETS and descriptor < 500:
            raise OSError(EBADF, "pidfd_getfd")
        self.open.append(descriptor)
        return descriptor

    def close(self, descriptor: int) -> None:
        self.open.remove(-1 if descriptor == 1000 else descriptor)

    def id_valid(self, listener: int, notification: bytearray) -> None:
        self.fail("id_valid")

    def getsockopt(self, descriptor: int, level: int, option: int) -> int:
        self.fail("getsockopt")
        domain, kind, protocol = SOCKETS[descriptor]
        return {n.SO_DOMAIN: domain, n.SO_TYPE: kind, n.SO_PROTOCOL: protocol}[option]

    def nonblocking(self, descriptor: int) -> bool:
        return not self.sleeps

    def connect(self, descriptor: int, address: bytes) -> None:
        self.done.append(("connect", descriptor, address))
        if self.answers and (errno := self.answers.pop(0)):
            raise OSError(errno, "connect")

    def send_timeout(self, descriptor: int) -> bool:
        return False

    def sendmsg(
        self, descriptor: int, address: bytes, data: bytes, control: bytes, flags: int
    ) -> int:
        self.done.append(("send", descriptor, address, data, control))
        return len(data)

    def status(self, tid: int) -> ThreadStatus:
        return ThreadStatus(STATUS)

    def executable(self, tid: int) -> str:
        return self.program


DECISIONS = bound(tables()).decisions


class Bench:
    """A caller on paper."""

    def __init__(
        self, decisions: Decisions = DECISIONS, clock: Callable[[float], int] = lambda _at: 5
    ) -> None:
        self.kernel = Paper()
        self.journal = Journal(clock)
        self.caller = Caller(self.kernel, 3, decisions, self.journal, Tree(self.kernel, 1))
        self.caller.tid = 7
        self.caller.privileged = False

    def handle(self, name: str, arguments: tuple[int, ...]) -> int | Work:
        """Return what the call's handler does."""
        return CALLS[name](self.caller, arguments)

    def call(self, name: str, *arguments: int) -> int:
        """Return the result; work that may sleep is done at once."""
        result = self.handle(name, (*arguments, 0, 0, 0, 0, 0, 0)[:6])
        if isinstance(result, Work):
            work = result
            result = work.perform(self.caller.operation)
            for descriptor in work.descriptors:
                self.kernel.close(descriptor)
        self.caller.close()
        assert self.kernel.open == [], "descriptors are left open"
        return result

    def send(
        self,
        name: str,
        descriptor: int,
        raw: bytes | None,
        data: bytes = b"data",
        control: bytes = b"",
        *,
        length: int | None = None,
        flags: int = 0,
    ) -> int:
        """Make one of the four calls with a destination."""
        kernel = self.kernel
        length = len(raw or b"") if length is None else length
        pointer = SECRET if raw is None else kernel.map(raw)
        if raw is None and length == 0:
            pointer = 0
        if name == "connect":
            return self.call(name, descriptor, pointer, length)
        payload = kernel.map(data)
        if name == "sendto":
            return self.call(name, descriptor, payload, len(data), flags, pointer, length)
        vector = kernel.map(struct.pack("=QQ", payload, len(data)))
        extra = kernel.map(control) if control else 0
        header = struct.pack(
            "=QI4xQQQQ8x", pointer, length & 0xFFFFFFFF, vector, 1, extra, len(control)
        )
        if name == "sendmsg":
            return self.call(name, descriptor, kernel.map(header), flags)
        return self.call(name, descriptor, kernel.map(header + bytes(8)), 1, flags)

    @property
    def events(self) -> list[tuple[object, ...]]:
        return self.journal.take()


def v4(address: str, port: int = 443, family: int = n.AF_INET) -> bytes:
    return (
        struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)
    )


def v6(address: str, port: int = 443) -> bytes:
    return (
        struct.pack("=H", 10)
        + struct.pack(">HI", port, 0)
        + socket.inet_pton(socket.AF_INET6, address)
        + bytes(4)
    )


WITH_ADDRESS = ("connect", "sendto", "sendmsg", "sendmmsg")
ADDRESSES = [
    v4("10.0.0.9"), v4("127.0.0.1"), v4("127.0.0.2"), v4("0.0.0.0"), v4("10.0.0.9", family=0),
    v4("127.0.0.1", family=0), v4("10.0.0.9", family=3), v4("127.0.0.1", family=99), v6("::1"),
    v6("2001:db8::9"), v6("::ffff:10.0.0.9"), v6("::ffff:127.0.0.1"), v6("::"),
    struct.pack("=HHII", 16, 0, 0, 0), struct.pack("=H", 40) + bytes(14),
]  # fmt: skip
LENGTHS = (0, 1, 2, 3, 8, 15, 16, 23, 24, 28, 64, 128, 129, 0x7FFFFFFF, -1)
