"""The supervisor against the real kernel, loopback only."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import (
    EACCES,
    ECONNREFUSED,
    EFAULT,
    EMFILE,
    ENOENT,
    ENOSYS,
    EPERM,
    EPIPE,
)
from pathlib import Path

import pytest
from supervision import FaultyKernel, bound, contained, tables

from flowproof.artifact.model import UnixRow
from flowproof.record.codes import Code
from flowproof.run.kernel import Kernel

pytestmark = [
    pytest.mark.enforce,
    pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's"),
]


def errno_of(act: Callable[[], object]) -> int:
    """The errno of a call, 0 if it went through."""
    try:
        act()
    except OSError as error:
        return error.errno or -1
    return 0


def tcp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def udp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def receiver() -> tuple[socket.socket, int]:
    """A datagram socket on every loopback address, outside of the run."""
    found = udp()
    found.bind(("0.0.0.0", 0))
    found.setblocking(False)
    return found, found.getsockname()[1]


def arrived(sock: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(sock.recv(65536))
        except BlockingIOError:
            return found


libc = ctypes.CDLL(None, use_errno=True)


def test_allowed_arrives_and_refused_does_not_by_every_call() -> None:
    inbox, port = receiver()

    def three_ways(name: str, address: str) -> list[int]:
        data, to = name.encode(), (address, port)
        with udp() as out:
            return [
                errno_of(lambda: out.sendto(b"sendto " + data, to)),
                errno_of(lambda: out.sendmsg([b"sendmsg ", data], [], 0, to)),
                errno_of(lambda: out.connect(to)),
            ]

    def work() -> object:
        return [
            three_ways("ok", "127.0.0.1"),
            three_ways("no", "127.0.0.2"),
            three_ways("by rule", "127.0.0.3"),
        ]

    with inbox, contained(work) as run:
        assert run.wait() == [[0, 0, 0], [ECONNREFUSED] * 3, [0, 0, 0]]
        assert run.supervisor is not None
        assert run.supervisor.wait_closed(2.0)
        assert arrived(inbox) == [
            b"sendto ok",
            b"sendmsg ok",
            b"sendto by rule",
            b"sendmsg by rule",
        ]
    told = [(event[4], event[6], event[8], event[9], event[10]) for event in run.attempts]
    assert told == [
        ("send", "127.0.0.1", False, None, ()),
        ("send", "127.0.0.1", False, None, ()),
        ("connect", "127.0.0.1", False, None, ()),
        ("send", "127.0.0.2", True, 2, (2,)),
        ("send", "127.0.0.2", True, 2, (2,)),
        ("probe", "127.0.0.2", True, 2, ()),
        ("send", "127.0.0.3", False, 0, ()),
        ("send", "127.0.0.3", False, 0, ()),
        ("connect", "127.0.0.3", False, 0, ()),
    ]
    assert run.faults == []
    received, answered = run.counts()
    assert received == answered == 9


def test_a_tcp_connect_is_performed_or_refused() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]

        def work() -> object:
            found = []
            for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0"):
                with tcp() as out:
                    found.append([out.connect_ex((address, port)), out.connect_ex((address, port))])
            with tcp() as out:
                out.setblocking(False)
                found.append([out.connect_ex(("127.0.0.2", port))])
            return found

        with contained(work) as run:
            refused = [ECONNREFUSED, ECONNREFUSED]
            assert run.wait() == [[0, 106], refused, [0, 106], [ECONNREFUSED]]
    assert run.attempts[0][3] == os.path.realpath(sys.executable)
    assert run.attempts[0][2] == run.pid


def sendmmsg(
    out: socket.socket, messages: list[tuple[bytes, tuple[str, int] | None]]
) -> tuple[int, list[int]]:
    """sendmmsg(2): the result and each msg_len."""
    raw = bytearray()
    keep: list[object] = []
    for data, to in messages:
        payload = ctypes.create_string_buffer(data, len(data))
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(payload), len(data))
        name, length = 0, 0
        if to is not None:
            packed = (
                struct.pack("=H", 2) + struct.pack(">H", to[1]) + socket.inet_aton(to[0]) + bytes(8)
            )
            sockaddr = ctypes.create_string_buffer(packed, 16)
            keep.append(sockaddr)
            name, length = ctypes.addressof(sockaddr), 16
        keep += [payload, vector]
        raw += struct.pack("=QI4xQQQQ8xI4x", name, length, ctypes.addressof(vector), 1, 0, 0, 0)
    buffer = (ctypes.c_char * len(raw)).from_buffer(raw)
    result = libc.sendmmsg(out.fileno(), buffer, len(messages), 0)
    lengths = [struct.unpack_from("=I", raw, 64 * at + 56)[0] for at in range(len(messages))]
    return result, lengths


def test_sendmmsg_tells_how_many_and_how_long() -> None:
    inbox, port = receiver()

    def work() -> object:
        with udp() as out:
            mixed = sendmmsg(out, [(b"one", ("127.0.0.1", port)), (b"two", ("127.0.0.2", port))])
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        plain = sendmmsg(left, [(b"abc", None), (b"defgh", None)])
        return [mixed, plain, [right.recv(9).decode(), right.recv(9).decode()]]

    with inbox, contained(work) as run:
        assert run.wait() == [[1, [3, 0]], [2, [3, 5]], ["abc", "defgh"]]
        assert arrived(inbox) == [b"one"]
    assert [(event[6], event[8]) for event in run.attempts] == [
        ("127.0.0.1", False),
        ("127.0.0.2", True),
    ]


def test_an_unspecified_family_does_not_carry_a_datagram_past_the_policy() -> None:
    inbox, port = receiver()

    def work() -> object:
        address = (
            struct.pack("=H", 0)
            + struct.pack(">H", port)
            + socket.inet_aton("127.0.0.2")
            + bytes(8)
        )
        raw = ctypes.create_string_buffer(address, 16)
        with udp() as out:
            return [libc.sendto(out.fileno(), b"x", 1, 0, raw, 16), ctypes.get_errno()]

    with inbox, contained(work) as run:
        assert run.wait() == [-1, ECONNREFUSED]
        assert arrived(inbox) == []
    assert run.attempts[0][6:9] == ("127.0.0.2", port, True)


def test_descriptors_travel_over_a_pair_of_sockets() -> None:
    def work() -> object:
        left, right = socket.socketpair()
        read, write = os.pipe()
        socket.send_fds(left, [b"here"], [write])
        _data, found, _flags, _address = socket.recv_fds(right, 9, 4)
        os.write(found[0], b"through")
        return os.read(read, 9).decode()

    with contained(work) as run:
        assert run.wait() == "through"
    assert run.events == []


def test_interfaces_and_a_dissolved_association_work_and_are_no_events() -> None:
    def work() -> object:
        names = socket.if_nameindex()
        with udp() as out:
            out.connect(("127.0.0.1", 9))
            unspecified = (ctypes.c_char * 16)()
            dissolved = libc.connect(out.fileno(), unspecified, 16)
            return [bool(names), dissolved, errno_of(out.getpeername) != 0]

    with contained(work) as run:
        assert run.wait() == [True, 0, True]
    assert len(run.attempts) == 1


def test_listening_is_judged_by_the_address_that_is_bound() -> None:
    def listening(address: str | None) -> int:
        with tcp() as sock:
            if address is not None:
                sock.bind((address, 0))
            return errno_of(lambda: sock.listen(1))

    def work() -> object:
        found = [listening(None), listening("0.0.0.0"), listening("127.0.0.1")]
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::ffff:127.0.0.1", 0))
            found.append(errno_of(lambda: sock.listen(1)))
        return found

    with contained(work) as run:
        assert run.wait() == [EPERM, EPERM, 0, 0]
    assert [(event[4], event[6]) for event in run.attempts] == [
        ("listen", "0.0.0.0"),
        ("listen", "0.0.0.0"),
        ("listen", "127.0.0.1"),
        ("listen", "127.0.0.1"),
    ]


def test_a_refused_family_is_answered_and_recorded() -> None:
    with contained(
        lambda: errno_of(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
    ) as run:
        assert run.wait() == EPERM
    assert run.attempts[0][4:11] == ("socket", "vsock", "vsock", None, True, 2, (2,))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="int 0x80 is x86's")
def test_a_foreign_call_is_answered_and_recorded() -> None:
    def work() -> object:
        # mov eax, 359 (socket); xor ebx/ecx/edx; int 0x80; ret
        code = b"\xb8\x67\x01\x00\x00\x31\xdb\x31\xc9\x31\xd2\xcd\x80\xc3"
        page = mmap.mmap(-1, 4096, prot=7)
        page.write(b"\x53" + code[:-1] + b"\x5b\xc3")  # rbx is the caller's
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        return ctypes.CFUNCTYPE(ctypes.c_int)(address)()

    with contained(work) as run:
        assert run.wait() == -EPERM
    assert run.attempts[0][4:10] == ("foreign", "foreign-abi", "foreign-abi", None, True, 2)
    assert run.attempts[0][12] == "program is 32-bit: call 359"


def test_a_thread_s_own_call_is_seen() -> None:
    def work() -> object:
        found: list[int] = []
        with tcp() as sock:
            thread = threading.Thread(
                target=lambda: found.append(sock.connect_ex(("127.0.0.2", 9)))
            )
            thread.start()
            thread.join()
        return found

    with contained(work) as run:
        assert run.wait() == [ECONNREFUSED]
    assert run.attempts[0][2] == run.pid
    assert run.faults == []


@contextmanager
def full_listener() -> Iterator[tuple[int, socket.socket]]:
    """A listener whose backlog is full, so that a blocking connect to it sleeps; its port first."""
    with ExitStack() as stack:
        server = stack.enter_context(tcp())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            sock = stack.enter_context(tcp())
            sock.setblocking(False)
            sock.connect_ex(server.getsockname())
        time.sleep(0.05)
        yield server.getsockname()[1], server


def test_a_connect_that_sleeps_does_not_hold_up_another() -> None:
    with full_listener() as (full, _), socket.create_server(("127.0.0.1", 0), backlog=128) as quick:
        port = quick.getsockname()[1]

        def work() -> object:
            sleeper = os.fork()
            if sleeper == 0:
                with tcp() as sock:
                    sock.settimeout(None)
                    sock.connect(("127.0.0.1", full))
                os._exit(0)
            time.sleep(0.2)
            begun = time.monotonic()
            worst = 0.0
            for _ in range(50):
                with tcp() as sock:
                    once = time.monotonic()
                    sock.connect(("127.0.0.1", port))
                    worst = max(worst, time.monotonic() - once)
            os.kill(sleeper, signal.SIGKILL)
            os.wait()
            return [time.monotonic() - begun, worst]

        with contained(work) as run:
            total, worst = run.wait()
            assert total < 2.0
            assert worst < 1.0
    received, answered = run.counts()
    assert received == answered == 51


def test_a_send_that_sleeps_does_not_hold_up_its_reader() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def work() -> object:
            left, right = socket.socketpair()
            size = 2 << 20
            if os.fork() == 0:
                left.close()
                with tcp() as sock:
                    sock.connect(("127.0.0.1", port))
                got = 0
                while got < size:
                    got += len(right.recv(1 << 16))
                os._exit(0)
            right.close()
            begun = time.monotonic()
            sent = left.sendmsg([b"x" * size])
            _pid, status = os.wait()
            return [sent, status, time.monotonic() - begun]

        with contained(work) as run:
            sent, status, seconds = run.wait()
            assert (sent, status) == (2 << 20, 0)
            assert seconds < 5.0


def test_a_signal_handler_ends_a_sleeping_connect() -> None:
    def work() -> object:
        signal.signal(signal.SIGALRM, lambda _number, _frame: None)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begun = time.monotonic()
        with tcp() as sock:
            raw = b"\x02\0" + full.to_bytes(2, "big") + b"\x7f\0\0\x01" + bytes(8)
            result = libc.connect(sock.fileno(), raw, 16)
            return [result, ctypes.get_errno(), time.monotonic() - begun]

    with full_listener() as (full, _), contained(work) as run:
        result, errno, seconds = run.wait()
        assert (result, errno) == (-1, 4)
        assert 0.2 < seconds < 1.5
    assert run.faults == []
    received, answered = run.counts()
    assert received == answered


def test_a_sleeping_call_that_cannot_be_ended_as_bare_is_a_fault() -> None:
    def work() -> object:
        signal.signal(signal.SIGALRM, lambda _number, _frame: None)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with tcp() as sock:
            raw = b"\x02\0" + full.to_bytes(2, "big") + b"\x7f\0\0\x01" + bytes(8)
            result = libc.connect(sock.fileno(), raw, 16)
            return [result, ctypes.get_errno()]

    kernel = FaultyKernel({"send_timeout": EPERM})
    with full_listener() as (full, _), contained(work, kernel=kernel) as run:
        assert run.wait() == [-1, EPERM]
    assert [fault[3:] for fault in run.faults] == [(Code.PERFORM.value, "connect", "EPERM")]


def test_a_sleeping_call_that_may_not_be_interrupted_is_a_fault_once() -> None:
    def work() -> object:
        signal.signal(signal.SIGALRM, lambda _number, _frame: None)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        with tcp() as sock:
            raw = b"\x02\0" + full.to_bytes(2, "big") + b"\x7f\0\0\x01" + bytes(8)
            return libc.connect(sock.fileno(), raw, 16)

    kernel = FaultyKernel({"tgkill": EPERM})
    with full_listener() as (full, _), contained(work, kernel=kernel) as run:
        end = time.monotonic() + 5.0
        while not run.faults and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(run.pid, signal.SIGKILL)
        os.waitpid(run.pid, 0)
    assert [fault[3:] for fault in run.faults] == [
        (Code.INTERRUPTION.value, "connect", "tgkill: EPERM")
    ]


def test_a_call_that_restarts_is_performed_once_and_shows_no_errno_of_the_kernel_s() -> None:
    def work() -> object:
        caught: list[int] = []
        signal.signal(signal.SIGALRM, lambda number, _frame: caught.append(number))
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with tcp() as sock:
            raw = b"\x02\0" + full.to_bytes(2, "big") + b"\x7f\0\0\x01" + bytes(8)
            result = libc.connect(sock.fileno(), raw, 16)
            return [result, ctypes.get_errno() if result else 0, len(caught)]

    with full_listener() as (full, server), contained(work) as run:
        time.sleep(0.6)
        accepted = []
        for _ in range(5):
            server.settimeout(0.5)
            with suppress(TimeoutError):
                accepted.append(server.accept()[0])
        assert run.wait() == [0, 0, 1]
        for sock in accepted:
            sock.close()
    assert len(run.attempts) == 2  # the restarted call is a call
    assert run.faults == []


def test_the_death_of_a_sleeping_caller_frees_its_worker() -> None:
    def work() -> object:
        with tcp() as sock:
            sock.connect(("127.0.0.1", full))
        return None

    with full_listener() as (full, _), contained(work) as run:
        time.sleep(0.2)
        assert run.supervisor is not None
        os.kill(run.pid, signal.SIGKILL)
        os.waitpid(run.pid, 0)
        assert run.supervisor.wait_closed(2.0)
        end = time.monotonic() + 2.0
        while run.supervisor.answered < run.supervisor.received and time.monotonic() < end:
            time.sleep(0.01)
        received, answered = run.counts()
        assert received == answered == 1
    assert run.faults == []


def test_a_broken_pipe_raises_its_signal() -> None:
    def work() -> object:
        caught: list[int] = []
        signal.signal(signal.SIGPIPE, lambda number, _frame: caught.append(number))
        left, right = socket.socketpair()
        right.close()
        quiet = errno_of(lambda: left.sendmsg([b"x"], [], socket.MSG_NOSIGNAL))
        before = list(caught)
        loud = errno_of(lambda: left.sendmsg([b"x"]))
        time.sleep(0.01)
        return [quiet, before, loud, caught]

    with contained(work) as run:
        assert run.wait() == [EPIPE, [], EPIPE, [int(signal.SIGPIPE)]]


def test_an_unmapped_address_is_a_fault_and_bare_to_the_program() -> None:
    def work() -> object:
        with tcp() as sock:
            return [libc.connect(sock.fileno(), ctypes.c_void_p(8), 16), ctypes.get_errno()]

    with contained(work) as run:
        assert run.wait() == [-1, EFAULT]
    assert [fault[3:5] for fault in run.faults] == [(Code.CHILD_MEMORY.value, "connect")]


def test_a_flipping_address_never_reaches_what_is_refused() -> None:
    inbox, _port = receiver()
    refused = udp()
    refused.bind(("127.0.0.2", 0))
    refused.setblocking(False)
    target = refused.getsockname()[1]

    def work() -> object:
        good = (
            struct.pack("=H", 2)
            + struct.pack(">H", target)
            + socket.inet_aton("127.0.0.1")
            + bytes(8)
        )
        buffer = ctypes.create_string_buffer(good, 16)
        stop = False

        def flip() -> None:
            while not stop:
                buffer[7] = b"\x02"
                buffer[7] = b"\x01"

        thread = threading.Thread(target=flip, daemon=True)
        thread.start()
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 1)
        header = struct.pack(
            "=QI4xQQQQ8x", ctypes.addressof(buffer), 16, ctypes.addressof(vector), 1, 0, 0
        )
        message = ctypes.create_string_buffer(header, len(header))
        sent = 0
        with udp() as out:
            for _ in range(1500):
                sent += libc.sendmsg(out.fileno(), message, 0) == 1
                sent += libc.sendto(out.fileno(), b"x", 1, 0, buffer, 16) == 1
        stop = True
        thread.join()
        return sent

    with inbox, refused, contained(work) as run:
        sent = run.wait()
        assert isinstance(sent, int)
        assert sent > 0
        assert arrived(refused) == []
    assert any(event[8] for event in run.attempts)


def test_the_canary_is_told_as_such_and_counts_as_nobody_s() -> None:
    def work() -> object:
        time.sleep(0.2)
        with udp() as sock:
            first = sock.connect_ex(("127.0.0.2", 9))
        time.sleep(0.2)
        with udp() as sock:
            return [first, sock.connect_ex(("127.0.0.2", 9))]

    with contained(work) as run:
        assert run.supervisor is not None
        run.supervisor.canary_pid = run.pid
        end = time.monotonic() + 5.0
        while not run.events and time.monotonic() < end:
            time.sleep(0.005)
        run.supervisor.canary_pid = None
        assert run.wait() == [ECONNREFUSED, ECONNREFUSED]
    assert run.events[0] == ("canary", True, 2, "probe", "127.0.0.2")
    assert [event[4] for event in run.attempts] == ["probe"]


FAULTS: list[tuple[str, int, Code, int]] = [
    ("pidfd_open", EPERM, Code.CHILD_HANDLE, EPERM),
    ("pidfd_getfd", EPERM, Code.CHILD_DESCRIPTOR, EPERM),
    ("pidfd_getfd", EMFILE, Code.CHILD_DESCRIPTOR, EPERM),
    ("read_memory", EPERM, Code.CHILD_MEMORY, EPERM),
    ("gather_memory", EACCES, Code.CHILD_MEMORY, EPERM),
    ("id_valid", EPERM, Code.LISTENER_VALID, EPERM),
    ("getsockopt", EPERM, Code.PERFORM, EPERM),
]


@pytest.mark.parametrize(("call", "errno", "code", "answer"), FAULTS)
def test_a_failing_mechanism_call_is_a_fault_and_nothing_leaves(
    call: str, errno: int, code: Code, answer: int
) -> None:
    inbox, port = receiver()

    def work() -> object:
        with udp() as out:
            return errno_of(lambda: out.sendto(b"x", ("127.0.0.1", port)))

    with inbox, contained(work, kernel=FaultyKernel({call: errno})) as run:
        assert run.wait() == answer
        assert arrived(inbox) == []
    assert [fault[3] for fault in run.faults] == [code.value]
    assert run.counts() == (1, 1)


@pytest.mark.parametrize(
    ("call", "code"), [("receive", Code.LISTENER_RECEIVE), ("send", Code.LISTENER_SEND)]
)
def test_a_listener_that_fails_is_closed(call: str, code: Code) -> None:
    def work() -> object:
        with udp() as out:
            return [
                errno_of(lambda: out.connect(("127.0.0.1", 9))),
                errno_of(lambda: out.connect(("127.0.0.1", 9))),
            ]

    with contained(work, kernel=FaultyKernel({call: EPERM})) as run:
        assert run.wait() == [ENOSYS, ENOSYS]
        assert run.supervisor is not None
        assert run.supervisor.wait_closed(1.0)
    assert [fault[3] for fault in run.faults] == [code.value]


class BrokenKernel(Kernel):
    """A kernel with a bug in it."""

    def getsockopt(self, descriptor: int, level: int, option: int) -> int:
        raise ZeroDivisionError("staged")


def test_a_bug_closes_the_listener_and_is_told() -> None:
    def work() -> object:
        with udp() as out:
            return errno_of(lambda: out.connect(("127.0.0.1", 9)))

    with contained(work, kernel=BrokenKernel()) as run:
        assert run.wait() == ENOSYS
    ((_tag, _ms, _pid, code, _call, detail),) = run.faults
    assert code == Code.SUPERVISOR_BUG.value
    assert "ZeroDivisionError" in str(detail)
    received, answered = run.counts()
    assert (received, answered) == (1, 0)


# --- unix sockets ---


def unix_server(path: str) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    found.bind(path)
    found.listen(8)
    return found


def connect_unix(path: str | bytes) -> int:
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(path)


def test_an_outside_unix_socket_is_refused_and_an_inside_one_is_not(tmp_path: Path) -> None:
    outside, inside = str(tmp_path / "out.sock"), str(tmp_path / "in.sock")
    tmp_path.chmod(0o777)
    dead = str(tmp_path / "dead.sock")
    unix_server(dead).close()
    link = tmp_path / "link.sock"
    link.symlink_to(outside)

    def work() -> object:
        server.close()  # it came with the fork, and would be held inside
        os.chdir(tmp_path)
        found = [connect_unix(path) for path in (outside, "out.sock", str(link), dead, "gone.sock")]
        found.append(connect_unix("/run/nscd/socket"))
        with unix_server(inside):
            found += [connect_unix(inside), connect_unix("./in.sock"), connect_unix(inside)]
        return found

    with unix_server(outside) as server, contained(work) as run:
        server.setblocking(False)
        assert run.wait() == [*[ECONNREFUSED] * 4, ENOENT, ECONNREFUSED, 0, 0, 0]
        with pytest.raises(BlockingIOError):
            server.accept()
    told = [event[4:9] for event in run.attempts]
    assert (
        told
        == [("unix", "unix", outside, None, True)] * 3 + [("unix", "unix", inside, None, False)] * 3
    )
    assert [event[9:11] for event in run.attempts] == [(2, (2,))] * 3 + [(None, ())] * 3
    assert run.faults == []


def test_an_abstract_name_is_told_inside_from_outside() -> None:
    name = f"\0flowproof-{os.getpid()}"

    def work() -> object:
        server.close()  # it came with the fork, and would be held inside
        found = [connect_unix(f"{name}-out"), connect_unix(f"{name}-gone")]
        with unix_server(f"{name}-in"):
            found.append(connect_unix(f"{name}-in"))
        return found

    with unix_server(f"{name}-out") as server, contained(work) as run:
        assert run.wait() == [ECONNREFUSED, ECONNREFUSED, 0]
    assert [(event[6], event[8]) for event in run.attempts] == [
        (f"@{name[1:]}-out", True),
        (f"@{name[1:]}-in", False),
    ]


def test_a_datagram_to_an_outside_unix_socket_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    path = str(tmp_path / "log.sock")

    def work() -> object:
        server.close()  # it came with the fork, and would be held inside
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            return errno_of(lambda: sock.sendto(b"x", path))

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(path)
        server.setblocking(False)
        with contained(work) as run:
            assert run.wait() == ECONNREFUSED
            assert arrived(server) == []
        with contained(work, policy=bound(tables(refusing=False))) as run:
            assert run.wait() == 0
            assert arrived(server) == [b"x"]


# --- without privileges ---


def as_nobody(test: Callable[[], object]) -> object:
    """Run a test as an unprivileged user, whoever runs the suite; return what it returned."""
    if os.geteuid() != 0:
        return test()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            Kernel().set_dumpable(True)  # a change of user takes it away
            os.write(write, json.dumps(test()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        data = answer.read()
    assert os.waitpid(pid, 0)[1] == 0
    return json.loads(data)


def test_it_needs_no_privileges() -> None:
    inbox, port = receiver()

    def test() -> object:
        def work() -> object:
            with udp() as out:
                sent = errno_of(lambda: out.sendto(b"x", ("127.0.0.1", port)))
                return [sent, errno_of(lambda: out.sendto(b"y", ("127.0.0.2", port)))]

        with contained(work) as run:
            found = run.wait()
        return [found, len(run.attempts), len(run.faults)]

    with inbox:
        assert as_nobody(test) == [[0, ECONNREFUSED], 2, 0]
        assert arrived(inbox) == [b"x"]


def test_a_program_that_shuts_its_memory_is_a_fault_without_privileges() -> None:
    def test() -> object:
        def work() -> object:
            Kernel().set_dumpable(False)
            with udp() as out:
                return errno_of(lambda: out.sendto(b"x", ("127.0.0.1", 9)))

        with contained(work) as run:
            found = run.wait()
        return [found, [fault[3] for fault in run.faults]]

    assert as_nobody(test) == [EPERM, [Code.CHILD_MEMORY.value]]


def test_a_unix_path_that_a_rule_allows_is_let_through_by_that_very_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    allowed, other = str(tmp_path / "ok.sock"), str(tmp_path / "no.sock")
    row = UnixRow(allowed, 1, 1)

    def work() -> object:
        for server in servers:
            server.close()
        os.link(other, f"{allowed}.link")
        return [connect_unix(allowed), connect_unix(other), connect_unix(f"{allowed}.link")]

    with unix_server(allowed) as first, unix_server(other) as second:
        servers = (first, second)
        with contained(work, policy=bound(tables((row,)))) as run:
            assert run.wait() == [0, ECONNREFUSED, ECONNREFUSED]
    assert [(event[8], event[9]) for event in run.attempts] == [(False, 0), (True, 2), (True, 2)]
    assert run.attempts[0][6] == allowed


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give its identity up")
def test_a_message_over_a_pair_is_from_its_sender_s_user() -> None:
    def work() -> object:
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        right.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        if os.fork() == 0:
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            left.sendmsg([b"x"])
            os._exit(0)
        os.wait()
        _data, ancillary, _flags, _address = right.recvmsg(9, 64)
        return struct.unpack("=iii", ancillary[0][2])[1]

    with contained(work) as run:
        assert run.wait() == 65534
    assert run.faults == []


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give its identity up")
def test_a_unix_socket_is_reached_with_the_caller_s_own_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    behind, open_ = str(shut / "x.sock"), str(tmp_path / "y.sock")

    def drop(path: str) -> int:
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os._exit(connect_unix(path))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def work() -> object:
        with unix_server(behind), unix_server(open_) as server:
            os.chmod(open_, 0o777)
            os.chmod(behind, 0o777)
            found = [connect_unix(behind), drop(behind), drop(open_)]
            peer = server.accept()[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return [*found, struct.unpack("=iii", peer)[1]]

    os.chmod(tmp_path.parent, 0o755)
    os.chmod(tmp_path.parent.parent, 0o755)
    with contained(work) as run:
        assert run.wait() == [0, EACCES, 0, 65534]
    assert run.faults == []
