"""An outer filter that refuses one mechanism call: the tier changes, and nothing is green (C32)."""

from __future__ import annotations

import os

import pytest
from evidence import CAPABILITY, PASS
from stage import Y0, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

MACHINE = os.uname().machine
NUMBERS = {
    "x86_64": {"seccomp": 317, "prctl": 157, "ioctl": 16, "readv": 310, "acct": 163},
    "aarch64": {"seccomp": 277, "prctl": 167, "ioctl": 29, "readv": 270, "acct": 89},
}[MACHINE]
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # asm-generic/unistd.h, and the same on x86_64

REFUSED = {
    "seccomp": (NUMBERS["seccomp"], "-", 0),
    "seccomp SET_MODE_FILTER": (NUMBERS["seccomp"], "0", 1),
    "seccomp GET_NOTIF_SIZES": (NUMBERS["seccomp"], "0", 3),
    "prctl SET_NO_NEW_PRIVS": (NUMBERS["prctl"], "0", 38),
    "prctl SET_DUMPABLE": (NUMBERS["prctl"], "0", 4),
    "prctl SET_CHILD_SUBREAPER": (NUMBERS["prctl"], "0", 36),
    "ioctl NOTIF_RECV": (NUMBERS["ioctl"], "1", 0xC0502100),
    "ioctl NOTIF_SEND": (NUMBERS["ioctl"], "1", 0xC0182101),
    "ioctl NOTIF_ID_VALID": (NUMBERS["ioctl"], "1", 0x40082102),
    "pidfd_open": (PIDFD_OPEN, "-", 0),
    "pidfd_getfd": (PIDFD_GETFD, "-", 0),
    "process_vm_readv": (NUMBERS["readv"], "-", 0),
}
"""Mechanism call → its number, and the argument and value that tell it (linux/seccomp.h, prctl.h)."""


@pytest.mark.case("C32")
@pytest.mark.parametrize("call", REFUSED)
def test_refused_mechanism_call_stops_the_run_before_its_command(stage: Stage, call: str) -> None:
    number, argument, value = REFUSED[call]
    outer = stage.program("outer.py", str(number), argument, str(value))
    path = stage.flow(Y0, stage.program("reach.py", "tcp", "10.99.0.1", "9000"))
    ran = stage.contained(path, before=outer)
    assert ran.report == {}, f"the command started: {ran}"
    assert ran.arrivals == [], ran
    assert (ran.record.verdict, ran.code) == (CAPABILITY, 3), ran


def test_outer_filter_that_refuses_an_unrelated_call_changes_nothing(stage: Stage) -> None:
    outer = stage.program("outer.py", str(NUMBERS["acct"]), "-", "0")
    path = stage.flow(Y0, stage.program("reach.py", "tcp", "10.99.0.1", "9000"))
    ran = stage.contained(path, before=outer)
    assert ran.reached("10.99.0.1") == 1, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
