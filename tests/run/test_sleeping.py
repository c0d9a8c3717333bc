"""Calls that sleep off loopback: in a network namespace of the test's own, where nobody answers."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from errno import EINPROGRESS, EINTR, EPERM
from functools import partial

import pytest
from supervision import bound, contained, tables

from flowproof.record.codes import Code
from flowproof.run import pool, supervisor
from flowproof.run.caller import FaultError
from flowproof.run.kernel import Kernel
from flowproof.run.pool import start_thread

pytestmark = [
    pytest.mark.enforce,
    pytest.mark.namespace,
    pytest.mark.root,
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
]
if sys.platform == "linux" and os.geteuid() != 0 and not os.environ.get("CI"):
    pytestmark.append(pytest.mark.skip(reason="a namespace with a link of its own needs root"))

CLONE_NEWNET = 0x40000000
NOWHERE = ("10.99.9.2", 9)
libc = ctypes.CDLL(None, use_errno=True)


def blackhole() -> None:
    """Put this process into a network whose neighbour swallows what it is sent."""
    assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    for line in (
        "ip link set lo up",
        "ip link add v0 type veth peer name v1",
        "ip link set v0 up",
        "ip link set v1 up",
        "ip addr add 10.99.9.1/24 dev v0",
        "ip neigh add 10.99.9.2 lladdr 02:00:00:00:00:02 dev v0",
    ):
        subprocess.run(line.split(), check=True)


def dial(timeout: float | None) -> list[float]:
    """Connect to nowhere, blocking, with a timeout of the kernel's; errno and seconds."""
    with socket.socket() as sock:
        if timeout is not None:
            whole = int(timeout)
            value = whole.to_bytes(8, "little") + int((timeout - whole) * 1e6).to_bytes(8, "little")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
        raw = b"\x02\0" + NOWHERE[1].to_bytes(2, "big") + socket.inet_aton(NOWHERE[0]) + bytes(8)
        begun = time.monotonic()
        result = libc.connect(sock.fileno(), raw, 16)
        return [ctypes.get_errno() if result else 0, time.monotonic() - begun]


def apart(act: Callable[[], object]) -> int:
    """Run *act* in a process of its own."""
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(0)
    return pid


open_policy = partial(bound, tables(refusing=False))


def test_sleeping_connects_leave_loopback_alone_and_end_as_bare() -> None:
    def work() -> object:
        begun = time.monotonic()
        pids = [apart(lambda: dial(0.8)) for _ in range(10)]
        time.sleep(0.2)
        with socket.create_server(("127.0.0.1", 0)) as server:
            quick = time.monotonic()
            for _ in range(20):
                socket.create_connection(server.getsockname()).close()
            quick = time.monotonic() - quick
        own = dial(0.8)
        for pid in pids:
            os.waitpid(pid, 0)
        return [quick, own, time.monotonic() - begun]

    with contained(work, policy=open_policy(), before=blackhole) as run:
        quick, (errno, seconds), total = run.wait()
    assert quick < 0.5
    assert errno == EINPROGRESS
    assert 0.7 < seconds < 2.0
    assert total < 5.0
    assert run.faults == []


def test_a_handler_ends_a_connect_that_would_sleep_for_minutes() -> None:
    def work() -> object:
        signal.signal(signal.SIGALRM, lambda _number, _frame: None)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        return dial(None)

    with contained(work, policy=open_policy(), before=blackhole) as run:
        errno, seconds = run.wait()
    assert errno == EINTR
    assert 0.2 < seconds < 2.0
    assert run.counts()[0] == run.counts()[1]


def test_each_of_more_sleepers_than_are_looked_at_at_once_gets_its_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "_LOOKS", 1)

    def interrupted(file: int) -> None:
        signal.signal(signal.SIGALRM, lambda _number, _frame: None)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        errno, seconds = dial(3.0)
        os.write(file, b"i" if errno == EINTR and seconds < 2.0 else b"-")

    def work() -> object:
        reader, writer = os.pipe()
        pids = [apart(lambda: dial(3.0)) for _ in range(16)]
        pids += [apart(partial(interrupted, writer)) for _ in range(8)]
        for pid in pids:
            os.waitpid(pid, 0)
        os.close(writer)
        return os.read(reader, 100).decode()

    with contained(work, policy=open_policy(), before=blackhole) as run:
        assert run.wait() == "i" * 8


def test_a_time_limit_ends_as_bare_where_a_worker_was_interrupted_for_nothing() -> None:
    # a withdrawal that comes a moment late ends the next call of its worker's thread instead
    with contained(lambda: dial(1.2), policy=open_policy(), before=blackhole) as run:
        time.sleep(0.5)
        for thread in threading.enumerate():
            if thread.name in {"worker", "reader"} and thread.ident is not None:
                signal.pthread_kill(thread.ident, signal.SIGUSR2)
        errno, seconds = run.wait()
    assert errno == EINPROGRESS
    assert 1.1 < seconds < 3.0
    assert run.faults == []


def test_a_non_blocking_connect_comes_back_at_once() -> None:
    def work() -> object:
        with socket.socket() as sock:
            sock.setblocking(False)
            return [sock.connect_ex(NOWHERE), sock.connect_ex(NOWHERE)]

    with contained(work, policy=open_policy(), before=blackhole) as run:
        assert run.wait() == [EINPROGRESS, 114]


def test_beyond_the_cap_a_call_is_refused_and_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "THREADS", 3)

    def work() -> object:
        pids = [apart(lambda: dial(3.0)) for _ in range(3)]
        time.sleep(1.0)
        refused = dial(1.5)
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sock:
            sock.setblocking(False)
            quick = sock.connect_ex(server.getsockname())
        for pid in pids:
            os.waitpid(pid, 0)
        return [refused, quick, dial(0.2)]

    with contained(work, policy=open_policy(), before=blackhole) as run:
        (errno, seconds), quick, (after, _) = run.wait()
    assert errno == EPERM
    assert seconds < 0.5
    assert quick in (0, EINPROGRESS)
    assert after == EINPROGRESS
    assert [fault[3] for fault in run.faults] == [Code.WORKERS.value]


def test_a_thread_that_cannot_be_had_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(FaultError) as found:
        start_thread(lambda: None, "worker")
    assert found.value.code is Code.THREADS


def test_the_end_of_the_tree_frees_every_worker() -> None:
    def work() -> object:
        for _ in range(5):
            apart(lambda: dial(None))
        time.sleep(0.3)
        libc.kill(0, signal.SIGKILL)
        return None

    def own_group() -> None:
        os.setsid()
        blackhole()

    with contained(work, policy=open_policy(), before=own_group) as run:
        run.wait()
        assert run.supervisor is not None
        assert run.supervisor.wait_closed(3.0)
        begun = time.monotonic()
        run.supervisor.stop()
        assert time.monotonic() - begun < 1.5
    assert run.counts() == (5, 5)
    assert run.faults == []


@contextmanager
def full_listener() -> Iterator[tuple[str, int]]:
    """A listener whose backlog is full, so that a blocking connect to it sleeps: its address."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(server.getsockname())
        time.sleep(0.05)
        yield server.getsockname()


def blocked_in(address: tuple[str, int]) -> int:
    """A process that blocks in a connect to *address*."""

    def block() -> None:
        with socket.socket() as sock:
            sock.connect(address)

    return apart(block)


@pytest.mark.parametrize("where", ["loopback", "off loopback"])
def test_fifty_blocked_connects_hold_up_nobody(where: str) -> None:
    def work() -> object:
        with full_listener() as full, socket.create_server(("127.0.0.1", 0), backlog=64) as server:
            pids = [blocked_in(full if where == "loopback" else NOWHERE) for _ in range(50)]
            time.sleep(1.5)
            took = []
            for _ in range(100):
                began = time.monotonic()
                with socket.create_connection(server.getsockname()):
                    took.append(time.monotonic() - began)
                server.accept()[0].close()
            waiting = sum(os.waitpid(pid, os.WNOHANG)[0] == 0 for pid in pids)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            return [waiting, sorted(took)]

    with contained(work, policy=open_policy(), before=blackhole) as run:
        waiting, took = run.wait()
    assert waiting == 50
    assert took[50] < 0.05, "the median of them"
    assert took[-1] < 1.0, "the worst"
    assert run.faults == []
    received, answered = run.counts()
    assert received == answered


@pytest.mark.parametrize("where", ["loopback", "off loopback"])
def test_a_dead_caller_frees_its_worker_at_once(where: str) -> None:
    reading, writing = os.pipe()

    def work() -> object:
        with full_listener() as full:
            pids = [blocked_in(full if where == "loopback" else NOWHERE) for _ in range(20)]
            time.sleep(0.8)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            os.write(writing, b"!")
            time.sleep(1.0)
        return None

    with contained(work, policy=open_policy(), before=blackhole) as run:
        assert run.supervisor is not None
        pending = run.supervisor._pool.pending
        os.read(reading, 1)
        began = time.monotonic()
        while any(operation.started for operation in pending) and time.monotonic() < began + 5.0:
            time.sleep(0.002)
        took = time.monotonic() - began
        run.wait()
    os.close(reading)
    os.close(writing)
    assert took < 0.5
    assert run.faults == []


def test_what_cannot_sleep_needs_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool.Pool, "submit", lambda *_arguments: False)

    def work() -> object:
        found = []
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sock:
            found.append(sock.connect_ex(server.getsockname()))
        for kind, address in ((socket.SOCK_DGRAM, NOWHERE), (socket.SOCK_DGRAM, ("127.0.0.1", 9))):
            with socket.socket(socket.AF_INET, kind) as sock:
                found += [sock.connect_ex(address), sock.sendto(b"x", address)]
        with socket.socket() as sock:
            sock.setblocking(False)
            found.append(sock.connect_ex(NOWHERE))
        left, right = socket.socketpair()
        with left, right:
            found.append(left.sendmsg([b"abc"]))
        with socket.socket() as sock:  # and this one does
            found.append(sock.connect_ex(NOWHERE))
        return found

    with contained(work, policy=open_policy(), before=blackhole) as run:
        assert run.wait() == [0, 0, 1, 0, 1, EINPROGRESS, 3, EPERM]
    assert [fault[3] for fault in run.faults] == [Code.WORKERS.value]


@pytest.mark.parametrize("filling", ["loopback", "off loopback"])
def test_beyond_the_cap_loopback_is_refused_too_and_what_does_not_sleep_goes_on(
    filling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "THREADS", 4)

    def work() -> object:
        with full_listener() as full, socket.create_server(("127.0.0.1", 0)) as server:

            def blocked(address: tuple[str, int]) -> None:
                with socket.socket() as sock:
                    os._exit(sock.connect_ex(address))

            pids = []
            for at in range(6):
                to = NOWHERE if filling == "off loopback" and at < 4 else full
                pids.append(apart(partial(blocked, to)))
                time.sleep(0.1)
            ended: dict[int, int] = {}
            patience = time.monotonic() + 5.0
            while len(ended) < 2 and time.monotonic() < patience:  # a busy machine takes its time
                for pid in set(pids) - set(ended):
                    found, status = os.waitpid(pid, os.WNOHANG)
                    if found:
                        ended[pid] = os.waitstatus_to_exitcode(status)
                time.sleep(0.01)
            with socket.socket() as sock, socket.socket(type=socket.SOCK_DGRAM) as box:
                sock.setblocking(False)
                quick = [sock.connect_ex(server.getsockname()), box.connect_ex(("127.0.0.1", 9))]
            for pid in set(pids) - set(ended):
                os.kill(pid, signal.SIGKILL)
            return [list(ended.values()), quick]

    with contained(work, policy=open_policy(), before=blackhole) as run:
        refused, quick = run.wait()
    assert refused == [EPERM] * 2
    assert quick in ([0, 0], [EINPROGRESS, 0])
    assert [fault[3] for fault in run.faults] == [Code.WORKERS.value] * 2


class SlowKernel(Kernel):
    """A kernel on which a caller's memory takes its time, as a page of a network file system does."""

    def read_memory(self, tid: int, address: int, length: int) -> bytes:
        time.sleep(0.5)
        return super().read_memory(tid, address, length)


@pytest.mark.parametrize(("cap", "faults"), [(0, [Code.WORKERS.value]), (4, [])])
def test_a_reader_that_is_stuck_beyond_the_cap_is_a_fault(
    cap: int, faults: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "THREADS", cap)

    def work() -> object:
        with socket.socket(type=socket.SOCK_DGRAM) as box:
            return [box.connect_ex(("127.0.0.1", 9)), box.connect_ex(("127.0.0.1", 9))]

    with contained(work, policy=open_policy(), kernel=SlowKernel()) as run:
        assert run.wait() == [0, 0]
    assert [fault[3] for fault in run.faults] == faults
    assert all("stuck in connect" in str(fault[5]) for fault in run.faults)
