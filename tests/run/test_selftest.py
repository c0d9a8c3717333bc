"""The self-test: each call of the mechanism failing in turn gives its own code, and nothing hangs."""

from __future__ import annotations

import os
import sys
import time
from errno import EBUSY, EINVAL, ENETUNREACH, EPERM, ESRCH
from struct import Struct

import pytest
from runnable import FaultyKernel, as_user

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.kernel import Kernel, WaitKillableError
from flowproof.run.selftest import self_test
from flowproof.run.steps import STEPS, Capability, first_failure

pytestmark = pytest.mark.enforce
NOBODY = 65534


def failure(kernel: Kernel, seconds: float = 5.0) -> Capability:
    found = self_test(kernel, seconds)
    failed = first_failure(found)
    assert failed is not None
    reached = [step for step, _code, _shows in STEPS].index(failed.id)
    assert [row.ok for row in found[:reached]] == [True] * reached
    assert [row.detail for row in found[reached + 1 :]] == ["not reached"] * (
        len(STEPS) - reached - 1
    )
    return failed


def test_every_step_passes_on_a_host_that_can() -> None:
    found = self_test()
    assert [row.id for row in found] == [step for step, _code, _shows in STEPS]
    assert first_failure(found) is None


def test_every_step_passes_for_a_user_without_capabilities() -> None:
    failed = as_user(NOBODY, lambda: [(c.id, c.detail) for c in self_test() if not c.ok])
    assert failed == []


FAULTS = [
    ("notification_sizes", EPERM, 0, "seccomp.sizes", Code.NOTIFICATION_SIZES),
    ("set_subreaper", EPERM, 0, "process.subreaper", Code.SUBREAPER),
    ("set_no_new_privs", EPERM, 0, "process.no-new-privs", Code.NO_NEW_PRIVS),
    ("shut_in", EPERM, 0, "process.domain", Code.DOMAIN),
    ("install_filter", EPERM, 0, "seccomp.install", Code.FILTER_INSTALL),
    ("install_filter", EINVAL, 0, "seccomp.install", Code.FILTER_INSTALL),
    ("install_filter", EBUSY, 0, "seccomp.install", Code.LISTENER_BUSY),
    ("set_dumpable", EPERM, 0, "process.dumpable", Code.UNDUMPABLE),
    ("children", EPERM, 0, "process.children", Code.CHILD_PROCESS),
    ("status", EPERM, 0, "process.children", Code.CHILD_PROCESS),
    ("executable", EPERM, 0, "process.children", Code.CHILD_PROCESS),
    ("pidfd_open", EPERM, 0, "pidfd.open", Code.CHILD_HANDLE),
    ("pidfd_getfd", EPERM, 0, "pidfd.listener", Code.CHILD_DESCRIPTOR),
    ("receive", EPERM, 0, "seccomp.receive", Code.LISTENER_RECEIVE),
    ("poll", EPERM, 0, "seccomp.receive", Code.LISTENER_RECEIVE),
    ("read_memory", EPERM, 0, "process.memory", Code.CHILD_MEMORY),
    ("read_memory", ESRCH, 0, "process.memory", Code.CHILD_MEMORY),
    ("pidfd_getfd", EPERM, 1, "pidfd.descriptor", Code.CHILD_DESCRIPTOR),
    ("id_valid", EPERM, 0, "seccomp.valid", Code.LISTENER_VALID),
    ("send", EPERM, 0, "seccomp.refuse", Code.LISTENER_SEND),
    ("connect", EPERM, 0, "seccomp.perform", Code.PERFORM),
    ("close_range", EPERM, 0, "descriptors.close", Code.DESCRIPTORS),
    ("kill", EPERM, 0, "process.end", Code.ENDING),
]


@pytest.mark.parametrize(
    ("call", "errno", "after", "step", "code"),
    FAULTS,
    ids=[f"{f[0]}-{f[1]}-{f[2]}" for f in FAULTS],
)
def test_a_call_that_fails_has_its_step_and_code(
    call: str, errno: int, after: int, step: str, code: Code
) -> None:
    failed = failure(FaultyKernel({call: errno}, after))
    assert (failed.id, failed.code) == (step, code)
    assert call in failed.detail or step == "descriptors.close"


class Unscoped(Kernel):
    """Landlock before its scopes: Linux 5.19 to 6.11."""

    def landlock(self) -> int:
        return min(super().landlock(), 5)


def unseen(kernel: Kernel) -> dict[str, tuple[Code | None, str]]:
    """Return what lowers the tier on *kernel*, and that nothing else is missing."""
    found = self_test(kernel)
    assert first_failure(found) is None
    return {row.id: (row.code, row.detail) for row in found if not row.ok}


def test_a_command_within_reach_of_its_supervisor_s_signals_lowers_the_tier() -> None:
    found = unseen(Unscoped())
    assert set(found) == {"reach.signals"}
    code, detail = found["reach.signals"]
    assert code is Code.NOT_SHIELDED
    assert "kill of another process" in detail
    assert "kill of its supervisor" in detail


def test_a_command_that_is_not_shut_in_is_seen_to_reach_other_processes() -> None:
    class Open(Kernel):
        def seclusion(self) -> str | None:
            return None

    found = unseen(Open())
    assert set(found) == {"reach.processes", "reach.signals"}
    code, detail = found["reach.processes"]
    assert code is Code.NOT_SECLUDED
    assert all(call in detail for call in ("ptrace", "process_vm_readv", "pidfd_getfd"))


@pytest.mark.parametrize("call", ["trace", "read_memory", "kill"])
def test_an_attempt_that_cannot_tell_is_no_refusal(call: str) -> None:
    class Unclear(Kernel):
        def refuse(self, *_arguments: object) -> bytes:
            raise OSError(ESRCH, f"{call}: no such process")

    kernel = Unclear()
    own, real = os.getpid(), getattr(kernel, call)

    def only_below(pid: int, *rest: object) -> object:
        """Refuse in the contained child alone, which is two forks away."""
        grandchild = os.getppid() != own and os.getpid() != own
        return kernel.refuse() if grandchild else real(pid, *rest)

    setattr(kernel, call, only_below)
    lowered = "reach.signals" if call == "kill" else "reach.processes"
    assert set(unseen(kernel)) == {lowered}


def test_a_namespace_whose_loopback_is_down_is_told_how_to_bring_it_up() -> None:
    failed = failure(FaultyKernel({"connect": ENETUNREACH}, 0))
    assert failed.code is Code.PERFORM
    assert "`ip link set lo up`" in failed.detail


def test_a_kernel_without_killable_waits_has_its_code() -> None:
    class Old(Kernel):
        def install_filter(self, program: bytes, flags: int = 0) -> int:
            raise WaitKillableError(EINVAL, "seccomp: WAIT_KILLABLE_RECV is not known")

    assert failure(Old()).code is Code.WAIT_KILLABLE


def test_structures_of_another_size_are_refused() -> None:
    class Newer(Kernel):
        def notification_sizes(self) -> tuple[int, int, int]:
            return 88, 24, 64

    assert failure(Newer()).code is Code.NOTIFICATION_SIZES


def test_memory_that_reads_as_something_else_is_refused() -> None:
    class Lying(Kernel):
        def read_memory(self, tid: int, address: int, length: int) -> bytes:
            return b"\0" * length

    assert failure(Lying()).code is Code.CHILD_MEMORY


def test_an_answer_that_does_not_arrive_is_refused() -> None:
    class Mute(Kernel):
        def send(self, listener: int, response: bytearray) -> None:
            response[16:20] = b"\0" * 4  # the errno: the call reads as done
            super().send(listener, response)

    failed = failure(Mute())
    assert (failed.id, failed.code) == ("seccomp.refuse", Code.SELF_TEST)


def test_a_step_that_hangs_is_ended_and_named() -> None:
    class Hanging(Kernel):
        def read_memory(self, tid: int, address: int, length: int) -> bytes:
            time.sleep(60)
            return b""

    began = time.monotonic()
    failed = failure(Hanging(), seconds=0.2)
    assert (failed.id, failed.code) == ("process.memory", Code.CHILD_MEMORY)
    assert "in time" in failed.detail
    assert time.monotonic() - began < 5


def test_a_bug_in_the_test_itself_reads_as_a_failed_step() -> None:
    class Broken(Kernel):
        def children(self, pid: int) -> tuple[int, ...]:
            raise ZeroDivisionError

    failed = failure(Broken())
    assert (failed.id, failed.code) == ("process.children", Code.SELF_TEST)
    assert "ZeroDivisionError" in failed.detail


def test_the_test_leaves_no_process_and_no_descriptor() -> None:
    before = (sorted(os.listdir("/proc/self/fd")), Kernel().children(os.getpid()))
    self_test()
    assert (sorted(os.listdir("/proc/self/fd")), Kernel().children(os.getpid())) == before


def outer(number: int, action: int, argument: int | None = None) -> None:
    """Put a filter on this process that takes *action* on one system call (with args[1] *argument*)."""
    steps = [(n.BPF_LD_W_ABS, 0, 0, 0)]
    if argument is None:
        steps.append((n.BPF_JMP_JEQ_K, 0, 1, number))
    else:
        steps += [
            (n.BPF_JMP_JEQ_K, 0, 3, number),
            (n.BPF_LD_W_ABS, 0, 0, 24),
            (n.BPF_JMP_JEQ_K, 0, 1, argument),
        ]
    steps += [(n.BPF_RET_K, 0, 0, action), (n.BPF_RET_K, 0, 0, n.SECCOMP_RET_ALLOW)]
    kernel = Kernel()
    kernel.set_no_new_privs()
    kernel.install_filter(b"".join(Struct("=HBBI").pack(*step) for step in steps), 0)


def under(number: int, action: int, argument: int | None = None) -> tuple[str, str, str]:
    def work() -> tuple[str, str, str]:
        outer(number, action, argument)
        failed = first_failure(self_test())
        assert failed is not None
        assert failed.code is not None
        return failed.id, failed.code.value, failed.detail

    step, code, detail = as_user(NOBODY, work)
    return step, code, detail


NUMBERS = n.SYSCALLS.get(os.uname().machine, n.SYSCALLS["x86_64"])
REFUSE = n.SECCOMP_RET_ERRNO | EPERM
KILL_PROCESS = 0x80000000


@pytest.mark.parametrize(
    ("call", "step", "code"),
    [
        ("pidfd_open", "pidfd.open", "CHILD_HANDLE"),
        ("pidfd_getfd", "pidfd.listener", "CHILD_DESCRIPTOR"),
        ("process_vm_readv", "process.memory", "CHILD_MEMORY"),
        ("close_range", "descriptors.close", "DESCRIPTORS"),
    ],
)
def test_an_outer_filter_that_refuses_a_call_is_found(call: str, step: str, code: str) -> None:
    assert under(NUMBERS[call], REFUSE)[:2] == (step, code)


@pytest.mark.parametrize(
    ("request_", "step", "code"),
    [
        (n.SECCOMP_IOCTL_NOTIF_RECV, "seccomp.receive", "LISTENER_RECEIVE"),
        (n.SECCOMP_IOCTL_NOTIF_ID_VALID, "seccomp.valid", "LISTENER_VALID"),
        (n.SECCOMP_IOCTL_NOTIF_SEND, "seccomp.refuse", "LISTENER_SEND"),
    ],
)
def test_an_outer_filter_that_refuses_an_ioctl_is_found(
    request_: int, step: str, code: str
) -> None:
    ioctl = {"x86_64": 16, "aarch64": 29}[os.uname().machine]
    assert under(ioctl, REFUSE, request_)[:2] == (step, code)


def test_an_outer_filter_that_kills_ends_the_probe_and_not_the_run() -> None:
    step, code, detail = under(NUMBERS["pidfd_getfd"], KILL_PROCESS)
    assert (step, code) == ("pidfd.listener", "CHILD_DESCRIPTOR")
    assert "SIGSYS" in detail


def test_a_listener_that_is_installed_already_is_busy() -> None:
    def work() -> str:
        kernel = Kernel()
        kernel.set_no_new_privs()
        kernel.install_filter(Struct("=HBBI").pack(n.BPF_RET_K, 0, 0, n.SECCOMP_RET_ALLOW))
        failed = first_failure(self_test())
        assert failed is not None
        return f"{failed.id} {failed.code}"

    assert as_user(NOBODY, work) == "seccomp.install Code.LISTENER_BUSY"


def test_another_platform_is_said_and_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    failed = failure(FaultyKernel({"notification_sizes": EPERM}))
    assert (failed.id, failed.code) == ("platform", Code.PLATFORM)
