"""Lane lines: listed, then counted, bounded; and what is counted live is what an audit counts."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowproof.record import tally as limits
from flowproof.record.codes import Code
from flowproof.record.faults import FaultTally, recount_faults
from flowproof.record.model import FaultCount, Hits, Through
from flowproof.record.redact import Folders
from flowproof.record.tally import LISTED, RuleRef, Tally, recount
from flowproof.resources import data

SCHEMA = jsonschema.Draft202012Validator(json.loads(data("schema", "lane-event.schema.json")))
RULES = (
    RuleRef("a.allow", "none"),
    RuleRef("b.deny", "containment"),
    RuleRef("c.never", "behaviour"),
)
FOLDERS = Folders.of("/home/u/work", "/home/u", "/tmp")


def attempt(
    refused: bool = True,
    by: int | None = 1,
    asserting: tuple[int, ...] = (),
    observing: tuple[int, ...] = (),
    operation: str = "connect",
    protocol: str = "tcp",
    destination: str = "10.99.0.2",
    port: int | None = 9000,
) -> tuple[Any, ...]:
    return (
        5,
        77,
        "/home/u/work/agent",
        operation,
        protocol,
        destination,
        port,
        refused,
        by,
        asserting,
        observing,
        None,
    )


def lines_of(
    *attempts: tuple[Any, ...], names: dict[str, str] | None = None
) -> tuple[list[dict[str, Any]], Tally]:
    lines: list[dict[str, Any]] = []
    tally = Tally(RULES, names or {}, FOLDERS, lines.append)
    for one in attempts:
        tally.attempt(*one)
    tally.finish()
    for line in lines:
        SCHEMA.validate(line)
    return lines, tally


def test_a_refused_attempt_is_listed_with_its_rule_claim_and_place() -> None:
    (line,), _ = lines_of(attempt(), names={"10.99.0.2": "db.example"})
    assert line == {
        "kind": "event",
        "n": 1,
        "ms": 5,
        "pid": 77,
        "program": "${cwd}/agent",
        "operation": "connect",
        "protocol": "tcp",
        "destination": "10.99.0.2",
        "port": 9000,
        "name": "db.example",
        "handling": "refused",
        "by": {"rule": "b.deny", "claim": "containment"},
        "asserting": [],
        "observing": [],
        "note": None,
    }


def test_a_retry_loop_is_listed_up_to_the_cap_and_then_counted() -> None:
    lines, tally = lines_of(*[attempt()] * 1000)
    assert [line["kind"] for line in lines] == ["event"] * LISTED + ["more"]
    assert lines[-1]["count"] == 1000 - LISTED
    assert recount(lines).hits == {"b.deny": Hits(refused=1000)}
    assert not tally.truncated


def test_a_scan_of_many_addresses_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DESTINATIONS", 10)
    lines, tally = lines_of(
        *[attempt(destination=f"10.0.0.{i}", asserting=(2,)) for i in range(50)]
    )
    assert len(lines) == 11
    assert (lines[-1]["kind"], lines[-1]["destination"], lines[-1]["count"]) == ("more", None, 40)
    assert tally.truncated
    assert recount(lines).hits == {"b.deny": Hits(refused=50), "c.never": Hits(counted=50)}


def test_what_was_let_through_is_counted_by_rule_and_seen_once_each() -> None:
    lines, _ = lines_of(*[attempt(refused=False, by=0)] * 3, attempt(refused=False, by=0, port=1))
    assert [line["kind"] for line in lines] == ["let-through", "seen", "seen"]
    assert [line["count"] for line in lines] == [4, 3, 1]
    assert recount(lines).hits == {"a.allow": Hits(let_through=4)}


def test_the_seen_table_is_capped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEEN", 2)
    lines, tally = lines_of(*[attempt(refused=False, by=None, port=port) for port in range(5)])
    assert [line["kind"] for line in lines] == ["let-through", "seen", "seen"]
    assert (lines[0]["count"], lines[0]["truncated"], tally.truncated) == (5, True, True)


def test_a_unix_socket_that_a_rule_lets_through_is_a_way_around_and_one_of_the_run_is_none() -> (
    None
):
    def unix(path: str, by: int | None, *, refused: bool = False) -> tuple[Any, ...]:
        return attempt(refused, by, operation="unix", protocol="unix", destination=path, port=None)

    lines, _ = lines_of(
        unix("/run/broker.sock", 0),
        unix("/run/broker.sock", 0),
        unix("/home/u/work/own.sock", None),
        unix("/run/other.sock", 1, refused=True),
    )
    assert recount(lines).through == (Through("unix", "/run/broker.sock", None, 2),)


def test_an_expected_no_that_is_let_through_is_listed_as_a_violation() -> None:
    lines, _ = lines_of(attempt(refused=False, by=None, asserting=(2,)))
    assert (lines[0]["kind"], lines[0]["handling"]) == ("event", "let-through")
    assert recount(lines).hits == {"c.never": Hits(counted=1)}


def test_a_probe_is_listed_and_counts_for_nobody() -> None:
    lines, _ = lines_of(attempt(operation="probe", protocol="udp"))
    assert recount(lines).hits == {"b.deny": Hits(probes=1)}


def test_the_path_of_a_unix_socket_is_written_with_its_folder_put_back() -> None:
    (line,), _ = lines_of(
        attempt(operation="unix", protocol="unix", destination="/home/u/.ssh/agent", port=None)
    )
    assert line["destination"] == "${home}/.ssh/agent"


def test_a_loopback_listener_that_the_run_did_not_open_is_named() -> None:
    def through(
        destination: str, port: int, protocol: str = "tcp", operation: str = "connect"
    ) -> tuple[Any, ...]:
        return attempt(
            False, None, destination=destination, port=port, protocol=protocol, operation=operation
        )

    lines, _ = lines_of(
        through("127.0.0.1", 8080),
        through("127.0.0.1", 8080),
        through("127.0.0.1", 7000),
        through("127.0.0.1", 7000, operation="listen"),
        through("::1", 7001),
        through("::", 7001, operation="listen"),
        through("127.0.0.53", 53, "udp"),
        through("10.99.0.1", 80),
    )
    assert recount(lines).through == (
        Through("tcp", "127.0.0.1", 8080, 2),
        Through("udp", "127.0.0.53", 53, 1),
    )


RULE_INDEX = st.integers(0, 2)
ATTEMPTS = st.tuples(
    st.booleans(),
    st.none() | RULE_INDEX,
    st.lists(RULE_INDEX, max_size=2, unique=True).map(tuple),
    st.lists(RULE_INDEX, max_size=1).map(tuple),
    st.sampled_from(["connect", "send", "probe", "listen"]),
    st.sampled_from(["tcp", "udp"]),
    st.sampled_from(["127.0.0.1", "10.0.0.1", "10.0.0.2", "::1"]),
    st.sampled_from([1, 2]),
)


@settings(max_examples=60)
@given(st.lists(ATTEMPTS, max_size=80))
def test_no_attempt_is_lost_between_listing_and_counting(attempts: list[tuple[Any, ...]]) -> None:
    lines, _ = lines_of(*[attempt(*one) for one in attempts])
    hits = recount(lines).hits
    for index, rule in enumerate(RULES):
        found = hits.get(rule.id, Hits())
        refused = [a for a in attempts if a[0] and a[1] == index]
        assert found.refused == sum(a[4] != "probe" for a in refused)
        assert found.probes == sum(a[4] == "probe" for a in refused)
        assert found.let_through == sum(not a[0] and a[1] == index for a in attempts)
        assert found.counted == sum(index in a[2] for a in attempts)
        assert found.observed == sum(index in a[3] for a in attempts)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"kind": "event"},
        {"kind": "more", "count": "3"},
        {"kind": "more", "count": True},
        {"kind": "x", "count": 1},
    ],
)
def test_a_line_that_is_none_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="event"):
        recount([line])


def test_faults_are_listed_up_to_the_cap_and_counted_by_code_and_lane() -> None:
    lines: list[dict[str, Any]] = []
    faults = FaultTally(FOLDERS, lines.append)
    for _ in range(150):
        faults.fault(1, 2, Code.CHILD_MEMORY, "connect", "process_vm_readv: EPERM")
    faults.fault(1, 2, Code.LISTENER_RECEIVE, "ioctl", "EPERM")
    faults.finish()
    for line in lines:
        SCHEMA.validate(line)
    assert [line["kind"] for line in lines].count("fault") == 101
    expected = (
        FaultCount(Code.CHILD_MEMORY, "connect", 150),
        FaultCount(Code.LISTENER_RECEIVE, None, 1),
    )
    assert recount_faults(lines) == expected == faults.counts()


def test_a_fault_with_an_unknown_code_is_refused() -> None:
    with pytest.raises(ValueError, match="NOPE"):
        recount_faults([{"kind": "fault", "code": "NOPE", "lane": None}])


def test_what_was_let_through_and_was_too_large_to_send_is_listed() -> None:
    attempts = [(*attempt(False, 0)[:-1], note) for note in ("too large", None, "inside")]
    lines, _ = lines_of(*attempts)
    assert [(line["kind"], line.get("note")) for line in lines] == [
        ("event", "too large"), ("let-through", None), ("seen", None),
    ]  # fmt: skip
    assert recount(lines).hits[RULES[0].id].let_through == 3
