"""The tree below a process: found whole, ended whole, and nobody else's children touched."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from errno import EACCES

import pytest
from runnable import PYTHON, FaultyKernel

from flowproof.run.descendants import Descendants
from flowproof.run.kernel import Kernel

pytestmark = pytest.mark.enforce


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    found = Kernel()
    found.set_subreaper()
    yield found
    found.set_subreaper(False)


@pytest.fixture
def tree(kernel: Kernel) -> Iterator[Descendants]:
    found = Descendants(kernel, frozenset(kernel.children(os.getpid())))
    yield found
    found.end(5)


def spawn(*argv: str) -> int:
    return os.posix_spawn(argv[0], argv, os.environ)


def await_count(tree: Descendants, count: int) -> None:
    end = time.monotonic() + 5
    while len(tree.alive()) < count:
        assert time.monotonic() < end
        time.sleep(0.005)


def test_grandchildren_in_sessions_of_their_own_are_found_and_ended(tree: Descendants) -> None:
    spawn(
        "/bin/sh",
        "-c",
        "setsid sleep 60 & setsid sh -c 'trap \"\" TERM; sleep 60; sleep 60' & wait",
    )
    await_count(tree, 4)
    assert tree.end(5)
    assert tree.descendants() == ()


def test_an_orphan_falls_to_the_subreaper_and_is_ended(tree: Descendants) -> None:
    pid = spawn("/bin/sh", "-c", "(setsid sleep 60 &) ; exit 0")
    end = time.monotonic() + 5
    while pid not in tree.statuses:
        tree.reap()
        assert time.monotonic() < end
    while [os.path.basename(program) for _pid, program in tree.alive()] != ["sleep"]:
        assert time.monotonic() < end
    assert tree.end(5)


def test_the_status_of_a_child_that_was_reaped_is_kept(tree: Descendants) -> None:
    pid = spawn("/bin/sh", "-c", "exit 7")
    assert tree.wait(5)
    assert os.waitstatus_to_exitcode(tree.statuses[pid]) == 7


def test_waiting_ends_when_something_outlives_the_time(tree: Descendants) -> None:
    spawn("/bin/sleep", "60")
    assert not tree.wait(0.05)
    assert tree.end(5)


def test_a_process_that_forks_as_fast_as_it_can_is_ended(tree: Descendants) -> None:
    code = "import os,time\nfor _ in range(40):\n    if os.fork() == 0:\n        os.setsid()\n        os.fork()\n        time.sleep(60)\ntime.sleep(60)"
    spawn(PYTHON, "-c", code)
    await_count(tree, 20)
    assert tree.end(10)


def test_children_that_are_not_the_runs_are_spared(kernel: Kernel) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as other:
        tree = Descendants(kernel, frozenset(kernel.children(os.getpid())))
        spawn("/bin/sleep", "61")
        await_count(tree, 1)
        assert tree.end(5)
        assert other.poll() is None
        other.kill()


def test_a_program_that_cannot_be_read_is_alive_all_the_same(tree: Descendants) -> None:
    pid = spawn("/bin/sleep", "60")
    hidden = Descendants(FaultyKernel({"executable": EACCES}), tree._spare)
    assert hidden.alive() == ((pid, "?"),)
    assert tree.end(5)


def test_what_cannot_be_killed_is_said(kernel: Kernel, tree: Descendants) -> None:
    spawn("/bin/sleep", "60")
    powerless = Descendants(FaultyKernel({"kill": 1}), tree._spare)
    assert not powerless.end(0.05)
    assert tree.end(5)
