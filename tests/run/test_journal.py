"""Events kept until they are sent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowproof.artifact.model import Decision
from flowproof.run import journal
from flowproof.run.journal import Journal, attempt

if TYPE_CHECKING:
    import pytest

WHO = (7, "/bin/program")
WHAT = attempt("connect", ("tcp", "10.0.0.9", 443), Decision(True, 2, (2,), (3,)), refused=True)


def test_events_are_taken_once_and_in_order() -> None:
    found = Journal(lambda _at: 12)
    found.attempt(WHO, WHAT)
    found.attempt((8, "/bin/other"), WHAT)
    assert [event[2] for event in found.take()] == [7, 8]
    assert found.take() == []


def test_an_attempt_is_told_as_the_wire_has_it() -> None:
    found = Journal(lambda _at: 12)
    found.attempt(WHO, WHAT)
    assert found.take() == [
        (
            "attempt",
            12,
            7,
            "/bin/program",
            "connect",
            "tcp",
            "10.0.0.9",
            443,
            True,
            2,
            (2,),
            (3,),
            None,
        )
    ]


def test_a_probe_asserts_nothing() -> None:
    what = attempt("probe", ("udp", "10.0.0.9", 443), Decision(True, 2, (2,), (3,)), refused=True)
    assert what[6:8] == ((), (3,))


def test_only_the_canary_s_own_attempt_is_the_canary_s() -> None:
    found = Journal(lambda _at: 0)
    found.canary_pid = 7
    found.attempt((8, "/bin/other"), WHAT)
    found.attempt(WHO, WHAT)
    assert [event[0] for event in found.take()] == ["attempt", "canary"]


def test_events_that_nobody_takes_are_counted_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "WAITING", 3)
    found = Journal(lambda _at: 0)
    for _ in range(5):
        found.attempt(WHO, WHAT)
    taken = found.take()
    assert [event[0] for event in taken] == ["attempt"] * 3 + ["fault"]
    assert taken[-1][3] == "EVENTS_LOST"
    assert "2 or more" in str(taken[-1][5])
    assert found.take() == []
