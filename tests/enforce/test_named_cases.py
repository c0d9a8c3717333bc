"""Which cases of the Linux behaviour list ran. It runs behind them all (`conftest.py` sees to that).

Under CI every id of the list has to be carried by a test that ran, and all of its tests have to have passed.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
from pathlib import Path

import pytest
from ids import held, unmet
from missing import under_ci

from flowproof.run.recorder import CARRIED_LANES

pytestmark = [pytest.mark.namespace]

TABLE = json.loads(Path(__file__).with_name("linux_behaviour.json").read_text(encoding="utf-8"))
LANE_OF_CASE = {"C40": "files"}
"""Cases about a lane that the runner may not carry yet; every other is about connections."""

IPPROTO_SCTP = 132  # linux/in.h
GETPID_X32 = 0x40000000 + 39  # __X32_SYSCALL_BIT and the number of getpid, asm/unistd_x32.h


def required() -> list[str]:
    """Return the ids of the list, but for cases of a lane that is not carried."""
    ids = [case["id"] for case in TABLE["cases"]]
    return [x for x in ids if LANE_OF_CASE.get(x, "connect") in CARRIED_LANES]


def absent() -> list[str]:
    """Return what this kernel has not, of that which a kernel may be without."""
    found = []
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SCTP).close()
    except OSError:
        found.append("SCTP")
    if os.uname().machine != "x86_64" or ctypes.CDLL(None).syscall(GETPID_X32) < 0:
        found.append("x32")
    return found


def test_required_cases_ran(
    cases_ran: dict[str, set[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    ids = required()
    ran = {case: outcomes for case, outcomes in cases_ran.items() if case not in LANE_OF_CASE} | {
        case: outcomes for case, outcomes in cases_ran.items() if case in ids
    }
    wrong = unmet(ids, ran)
    with capsys.disabled():
        print(f"\ncases that held: {' '.join(sorted(held(ran))) or 'none'}")
        print(f"absent from this kernel: {', '.join(absent()) or 'nothing'}")
        left = sorted(set(LANE_OF_CASE) - set(ids))
        if left:
            print(f"cases of a lane that is not carried: {' '.join(left)}")
    if not wrong:
        return
    told = f"cases that did not hold: {'; '.join(wrong)}"
    assert not under_ci(), told
    assert not any("failed" in outcomes for outcomes in ran.values()), told
    pytest.skip(f"{told} (a failure under CI)")


def test_only_what_a_kernel_may_be_without_is_absent() -> None:
    assert set(absent()) <= set(TABLE["may_be_absent"])


def test_ids_of_the_list_are_told_apart() -> None:
    ids = [case["id"] for case in TABLE["cases"]]
    assert len(ids) == len(set(ids)) >= 32
    assert all(case["about"] for case in TABLE["cases"])
