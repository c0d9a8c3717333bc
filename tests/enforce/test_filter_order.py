"""C35: what is refused by an errno stays so beside a filter that notifies of the same call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from evidence import FAIL
from stage import Y0, Stage

from flowproof.diagnostics import Report
from flowproof.ir.resolve import resolve_flow
from flowproof.lower.backend import compile_policy
from flowproof.source.suite import load
from flowproof.verify import bpf

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

case = pytest.mark.case

MACHINE = os.uname().machine
SOCKET = {"x86_64": 41, "aarch64": 198}[MACHINE]
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[MACHINE]  # linux/audit.h
AF_INET, AF_PACKET, AF_VSOCK, EAFNOSUPPORT = 2, 17, 40, 97
IO_URING = (425, 426, 427)
ERRNO_EPERM, USER_NOTIF, ALLOW = 0x00050001, 0x7FC00000, 0x7FFF0000  # linux/seccomp.h


@case("C35")
def test_errno_of_another_filter_wins_over_our_notification(root_stage: Stage) -> None:
    outer = root_stage.program("outer.py", f"{SOCKET}:0:{AF_VSOCK}={EAFNOSUPPORT}")
    ran = root_stage.contained(root_stage.flow(Y0, root_stage.program("families.py")), before=outer)
    refused = ran.report["refused"]
    assert isinstance(refused, dict)
    assert refused.pop("vsock") == "EAFNOSUPPORT", ran
    assert set(refused.values()) == {"EPERM"}, ran
    families = {str(event.get("destination")) for event in ran.record.refused}
    assert "packet" in families, ran
    assert "vsock" not in families, "it never came to the supervisor"
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@case("C35")
def test_errno_and_notification_of_one_compiled_filter_keep_to_their_calls(stage: Stage) -> None:
    report = Report()
    suite = load(str(stage.flow(Y0, ["true"])), report)
    assert suite is not None
    resolved = resolve_flow(suite.flows[0], report)
    assert resolved is not None
    program = compile_policy(resolved.policy, f"linux-{MACHINE}").program
    assert program is not None
    steps = [(i.code, i.jt, i.jf, i.k) for i in program.instructions]

    def answer(number: int, *arguments: int) -> int:
        return bpf.run(steps, bpf.data(number, AUDIT_ARCH, arguments)).action

    assert {answer(number) for number in IO_URING} == {ERRNO_EPERM}
    assert answer(SOCKET, AF_PACKET, 3, 0) & 0xFFFF0000 == USER_NOTIF & 0xFFFF0000
    assert answer(SOCKET, AF_INET, 1, 0) == ALLOW


@case("C35")
def test_golden_listing_shows_which_refusal_is_whose(stage: Stage) -> None:
    golden = Path(__file__).parents[1] / "golden" / "no-egress" / f"linux-{MACHINE}.txt"
    lines = golden.read_text(encoding="utf-8").splitlines()
    fixed = [at for at, line in enumerate(lines) if "recorded as families" in line]
    errno = [at for at, line in enumerate(lines) if "by the kernel, not counted: io_uring" in line]
    assert len(fixed) == len(errno) == 1, lines[:20]
    assert fixed < errno, "the summary tells what is recorded before what the kernel answers"
    returns = [line for line in lines if " ret " in line or "return" in line]
    assert any("0x00050001" in line for line in returns), returns
    assert any("0x7fc0" in line for line in returns), returns
