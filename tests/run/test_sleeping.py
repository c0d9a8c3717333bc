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
from collections.abc import Callable
from errno import EINPROGRESS, EINTR, EPERM
from functools import partial

import pytest
from supervision import bound, contained, tables

from flowproof.record.codes import Code
from flowproof.run import pool
from flowproof.run.caller import FaultError
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
        pids = [apart(lambda: dial(1.5)) for _ in range(3)]
        time.sleep(0.4)
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
