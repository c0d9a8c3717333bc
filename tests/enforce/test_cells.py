"""Call, family, length, readability against the real kernel: nothing that cannot be parsed gets out."""

from __future__ import annotations

import pytest
from evidence import FAIL
from stage import Y0, Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

DENIED = ("10.99.0.2", "fd00:99::2")
CALLS = ("connect", "sendto", "sendmsg", "sendmmsg")
OUT = {"1", "4", "dissolved"}
"""What a cell that was not refused ends with: messages or bytes sent, or an association dissolved."""


def program(stage: Stage) -> list[str]:
    return stage.program("cells.py", *DENIED, "9000")


def cells(ran: Ran) -> dict[str, str]:
    found = ran.report["cells"]
    assert isinstance(found, dict), ran
    return found


def let_out(ran: Ran) -> set[str]:
    return {cell for cell, seen in cells(ran).items() if seen in OUT}


def test_bare_the_cells_reach_the_denied_addresses_by_each_call(stage: Stage) -> None:
    ran = stage.bare(program(stage))
    assert all(ran.reached(address) > 0 for address in DENIED), ran
    ways = {(cell.split()[0], cell.split()[2]) for cell in let_out(ran)}
    assert {(call, family) for call in CALLS for family in ("inet", "inet6", "mapped")} <= ways
    assert {("sendto", "unspec"), ("sendmsg", "unspec"), ("sendmmsg", "unspec")} <= ways
    assert not {cell for cell in let_out(ran) if cell.endswith("not")}


def test_contained_no_cell_reaches_them_and_none_goes_unrecorded(stage: Stage) -> None:
    bare, ran = stage.bare(program(stage)), stage.contained(stage.flow(Y0, program(stage)))
    assert ran.reached(*DENIED) == 0, ran
    assert ran.arrivals == [], ran
    left = {cell for cell in let_out(ran) if cell.split()[2] != "unspec"}
    assert left == set()
    assert all(seen == "dissolved" for cell, seen in cells(ran).items() if cell in let_out(ran))
    # what the bare kernel refuses is refused, and what cannot be read gives what it gives bare
    assert let_out(ran) <= let_out(bare)
    unread = {c for c, seen in cells(bare).items() if seen == "EFAULT"}
    assert {cells(ran)[cell] for cell in unread} == {"EFAULT"}
    assert (
        ran.report["headers"]
        == bare.report["headers"]
        == dict.fromkeys(("sendmsg header", "sendmmsg header"), "EFAULT")
    )
    destinations = {str(event["destination"]) for event in ran.record.refused}
    assert destinations >= {*DENIED, "family 99, 16 bytes", "no family"}, destinations
    assert "CHILD_MEMORY" in {fault["code"] for fault in ran.record.lane("faults")}
    assert (ran.record.verdict, ran.code) == (FAIL, 1), (
        "a refusal of `never` is known, whatever is not"
    )
