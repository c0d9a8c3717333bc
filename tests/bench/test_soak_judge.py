"""The judge of a soak is judged: a soak that holds, and doctored ones of which each has to be caught."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from bench.soak.judge import EXACT, LIMITS, SURVIVORS, Check, Facts, judge
from bench.soak.samples import Held, Sample
from bench.soak.text import show
from bench.soak.world import Arrival, counter_names

SECONDS = 60
LOAD: dict[str, Any] = {
    **dict.fromkeys(counter_names(), 100),
    "failed": 0,
    "interrupted": 0,
    "full_calls": 300,
    "first_failure": "",
    "survivors": [501, 502, 503, 504, 505],
}
ARRIVALS = [
    Arrival("tcp", "10.99.0.1:9000", 100, 100, 0),
    Arrival("tcp", "127.0.0.1:9000", 100, 100, 0),
    Arrival("tcp", "10.99.0.1:9001", 100, 100, 0),
    Arrival("udp", "10.99.0.1:9100", 60, 70, 0),
    Arrival("udp", "10.99.0.1:9107", 40, 30, 0),
    Arrival("udp", "127.0.0.1:9100", 100, 100, 0),
    Arrival("tcp", "10.99.0.2:9000", 0, 0, 0),
    Arrival("udp", "10.99.0.2:9100", 0, 0, 0),
    Arrival("tcp", "10.99.0.3:9000", 0, 0, 0),
]


def record() -> dict[str, Any]:
    hits: dict[str, dict[str, int]] = {}
    for rule, kind, counter in EXACT:
        hits.setdefault(rule, {})[kind] = LOAD[counter]
    hits |= {
        "soak.storm": {"let_through": 103},
        "soak.full": {"let_through": 150},
        "soak.loopback-full": {"observed": 149},
    }
    return {
        "run": {"complete": True},
        "controls": [{"verdict": "pass"}],
        "lanes": {"connect": {"tier": {"word": "enforced"}}},
        "supervisor": {"alive": True, "received": 9, "answered": 9, "lost": 0},
        "faults": [],
        "survivors": [{"pid": pid} for pid in LOAD["survivors"]],
        "rules": [{"id": rule, "hits": counts} for rule, counts in hits.items()],
    }


def samples(
    leak: Callable[[float], Held] = lambda _at: Held(0, 0, 0, 0), operations: float = 50
) -> list[Sample]:
    """A sample every half second; *leak* is what the supervisor holds more at a time."""
    found = []
    for step in range(2 * SECONDS):
        at, wobble = step / 2, step * 7 % 11
        more = leak(at)
        held = Held(
            50 + wobble + more.descriptors,
            200 + 20 * wobble + more.pidfds,
            55 + wobble + more.threads,
            45_000 + 300 * wobble + more.memory,
        )
        found.append(Sample(at, 50, int(at * operations), held, Held(8, 0, 1, 22_000)))
    return found


def facts(**changed: object) -> Facts:
    whole: dict[str, Any] = {
        "seconds": SECONDS,
        "samples": samples(),
        "load": copy.deepcopy(LOAD),
        "arrivals": list(ARRIVALS),
        "record": record(),
        "problems": [],
        "exit_code": 0,
        "left": [],
    }
    whole.update(changed)
    return Facts(**whole)


def failures(doctored: Facts) -> list[str]:
    return [check.name for check in judge(doctored) if not check.held]


def test_soak_that_holds_is_said_to() -> None:
    assert failures(facts()) == []
    assert len(LOAD["survivors"]) == SURVIVORS


@pytest.mark.parametrize("measure", Held._fields)
@pytest.mark.parametrize("process", ["supervisor", "recorder"])
def test_what_leaks_slowly_is_caught(measure: str, process: str) -> None:
    size = (
        LIMITS[measure] * 2.5
    )  # over the whole soak: a third of it lies between the medians' thirds

    def more(at: float) -> Held:
        return Held(0, 0, 0, 0)._replace(**{measure: int(size * at / SECONDS)})

    leaking = samples(more)
    if process == "recorder":
        leaking = [
            one._replace(recorder=one.supervisor, supervisor=Held(50, 9, 9, 9)) for one in leaking
        ]
    assert failures(facts(samples=leaking)) == [f"{process}: {measure} flat"]


def test_burst_is_no_leak() -> None:
    burst = samples(lambda at: Held(400, 400, 400, 90_000) if 50 < at < 54 else Held(0, 0, 0, 0))
    assert failures(facts(samples=burst)) == []


ARRIVAL_NAMES = {
    0: ("connections made and taken, 10.99.0.1", "tcp bytes sent and received, 10.99.0.1"),
    1: ("connections made and taken, 127.0.0.1", "tcp bytes sent and received, 127.0.0.1"),
    2: (
        "connections made and taken, 10.99.0.1 under signals",
        "tcp bytes sent and received, 10.99.0.1 under signals",
    ),
    4: ("datagrams made and taken, 10.99.0.1", "udp bytes sent and received, 10.99.0.1"),
    5: ("datagrams made and taken, 127.0.0.1", "udp bytes sent and received, 127.0.0.1"),
}


@pytest.mark.parametrize("row", ARRIVAL_NAMES)
@pytest.mark.parametrize("by", [-1, 1])
def test_one_lost_or_doubled_is_caught(row: int, by: int) -> None:
    times, size = ARRIVAL_NAMES[row]
    arrived = list(ARRIVALS)
    arrived[row] = arrived[row]._replace(bytes=arrived[row].bytes + by)
    assert failures(facts(arrivals=arrived)) == [size]
    arrived[row] = ARRIVALS[row]._replace(times=ARRIVALS[row].times + by)
    assert failures(facts(arrivals=arrived)) == [times]


def test_byte_out_of_place_is_caught_where_the_sums_agree() -> None:
    arrived = [ARRIVALS[0]._replace(wrong=1), *ARRIVALS[1:]]
    assert failures(facts(arrivals=arrived)) == ["each byte in its place, each datagram once"]


@pytest.mark.parametrize("row", [6, 7, 8])
def test_arrival_where_it_is_refused_is_caught(row: int) -> None:
    arrived = list(ARRIVALS)
    arrived[row] = arrived[row]._replace(times=1)
    assert failures(facts(arrivals=arrived)) == ["nothing arrives where it is refused"]


@pytest.mark.parametrize(("rule", "kind"), [(rule, kind) for rule, kind, _ in EXACT])
@pytest.mark.parametrize("by", [-1, 1])
def test_missing_or_doubled_event_of_the_record_is_caught(rule: str, kind: str, by: int) -> None:
    doctored = record()
    next(row for row in doctored["rules"] if row["id"] == rule)["hits"][kind] += by
    name = f"`{rule}` {kind.replace('_', ' ')}, record and program"
    assert failures(facts(record=doctored)) == [name]


@pytest.mark.parametrize(
    ("rule", "hits", "name"),
    [
        ("soak.storm", {"let_through": 99}, "`soak.storm` let through, record and program"),
        ("soak.storm", {"let_through": 201}, "`soak.storm` let through, record and program"),
        ("soak.full", {"let_through": 152}, "`soak.full` seen, of connects that sleep"),
        ("soak.loopback-full", {"observed": -51}, "`soak.full` seen, of connects that sleep"),
    ],
)
def test_count_out_of_its_bounds_is_caught(rule: str, hits: dict[str, int], name: str) -> None:
    doctored = record()
    next(row for row in doctored["rules"] if row["id"] == rule)["hits"].update(hits)
    assert failures(facts(record=doctored)) == [name]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"own_accepts": 99}, "own connections made and accepted"),
        ({"unix_accepts": 99}, "unix sockets connected and accepted"),
        ({"taken": 99}, "descriptors passed and used"),
        ({"pair_read": 101}, "unix bytes sent and received"),
        ({"failed": 1}, "every call does as bare"),
        ({"execs": 0}, "every kind of load was there"),
        ({"survivors": [501, 502, 503, 504, 999]}, "survivors are listed"),
    ],
)
def test_what_the_program_saw_is_judged(changed: dict[str, Any], name: str) -> None:
    assert failures(facts(load=LOAD | changed)) == [name]


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("run", "complete"), False, "the run passes"),
        (("controls", 0, "verdict"), "capability-error", "the run passes"),
        (("lanes", "connect", "tier", "word"), "observed", "the run passes"),
        (("supervisor", "alive"), False, "every notification is answered"),
        (("supervisor", "answered"), 8, "every notification is answered"),
        (("supervisor", "lost"), 1, "every notification is answered"),
        (("faults",), [{"code": "workers", "count": 1}], "no fault"),
        (("survivors",), [{"pid": 501}], "survivors are listed"),
    ],
)
def test_what_the_record_says_is_judged(path: tuple[Any, ...], value: object, name: str) -> None:
    doctored: Any = record()
    at = doctored
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert failures(facts(record=doctored)) == [name]


def test_end_of_the_run_is_judged() -> None:
    assert failures(facts(exit_code=3)) == ["the run passes"]
    assert failures(facts(problems=["altered: its digest"])) == ["the record is evidence"]
    assert failures(facts(left=[501])) == ["survivors are ended"]


def test_no_samples_are_no_flat_ones() -> None:
    found = failures(facts(samples=[]))
    assert "enough samples" in found
    assert sum(name.endswith("flat") for name in found) == 2 * len(LIMITS)


def test_few_connects_asleep_or_a_load_at_rest_are_caught() -> None:
    awake = [one._replace(blocked=40) for one in samples()]
    assert failures(facts(samples=awake)) == ["50 connects asleep at a time"]
    resting = [one._replace(operations=min(one.operations, 1000)) for one in samples()]
    assert failures(facts(samples=resting)) == ["the load goes on all the time"]


def test_print_says_no_where_something_did_not_hold() -> None:
    checks = [Check("one", held=True, seen="fine"), Check("other", held=False, seen="3 and 4")]
    text = show(facts(), checks, "somewhere")
    assert text.startswith("A soak of 60 s: 1 of 2 did not hold.")
    assert "| other | NO | 3 and 4 |" in text
    assert "all of it held" in show(facts(), checks[:1], "somewhere")
