"""The judge of a soak: from samples, counts, arrivals and the record to what held and what did not."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bench.soak.samples import MEASURES, PROCESSES, Sample, growth, steady
from bench.soak.world import Arrival

__all__ = ["BLOCKED", "LIMITS", "RULES", "SURVIVORS", "Check", "Facts", "judge"]

BLOCKED, SURVIVORS = 50, 5
"""As ``soak.h`` has them."""
LEAST_SAMPLES = 30
STALL = 15.0
"""Seconds without an operation of the whole load that nothing explains but a deadlock."""
LIMITS = {"descriptors": 16, "pidfds": 128, "threads": 16, "memory": 8192}
"""How much more a process may hold at the end than at the start; pidfds are a bounded cache, memory is in
KiB. A leak of one descriptor in ten thousand calls goes past its limit in a minute.
"""

RULES = {
    "soak.tcp": "allow connect tcp to 10.99.0.1:9000",
    "soak.storm": "allow connect tcp to 10.99.0.1:9001",
    "soak.full": "allow connect tcp to 10.99.0.1:9002",
    "soak.udp": "allow connect udp to 10.99.0.1:9100-9107",
    "soak.loopback-tcp": "observe connect tcp to 127.0.0.1:9000",
    "soak.loopback-full": "observe connect tcp to 127.0.0.1:9002",
    "soak.loopback-udp": "observe connect udp to 127.0.0.1:9100-9107",
    "soak.own": "observe connect tcp to 127.0.0.2",
    "soak.denied": "deny connect to 10.99.0.2",
    "soak.rest": "deny connect to anything else",
}
"""The policy that a soak runs under: a rule for each thing that is counted."""

EXACT = (
    ("soak.tcp", "let_through", "tcp_allowed"),
    ("soak.udp", "let_through", "named_allowed"),
    ("soak.loopback-tcp", "observed", "tcp_loopback"),
    ("soak.loopback-udp", "observed", "named_loopback"),
    ("soak.own", "observed", "own_connects"),
    ("soak.denied", "refused", "refused_denied"),
    ("soak.denied", "probes", "refused_probes"),
    ("soak.rest", "refused", "refused_elsewhere"),
    ("soak.implied.listen", "refused", "refused_listens"),
)
"""(rule, hits of the record, the load's counter) that are one number."""
IDLE = {"failed", "interrupted"}
"""Counters that may stay zero."""


class Check(NamedTuple):
    """One thing that has to hold, and what was seen of it."""

    name: str
    held: bool
    seen: str


class Facts(NamedTuple):
    """What a soak left: see `judge`. *load* is the program's own report, *left* the survivors still alive."""

    seconds: float
    samples: Sequence[Sample]
    load: Mapping[str, Any]
    arrivals: Sequence[Arrival]
    record: Mapping[str, Any]
    problems: Sequence[str]
    exit_code: int
    left: Sequence[int]


def judge(facts: Facts) -> list[Check]:
    """Return every check, held or not; a soak holds if all of them do."""
    return [
        *_ended(facts),
        *_counted(facts),
        *_refused(facts),
        *_recorded(facts),
        *_survived(facts),
        *_worked(facts),
        *_grew(facts),
    ]


def _ended(facts: Facts) -> Iterator[Check]:
    record = facts.record
    verdicts = [row["verdict"] for row in record["controls"]]
    tier = record["lanes"]["connect"]["tier"]["word"]
    seen = f"exit {facts.exit_code}, verdict {', '.join(verdicts)}, {tier}"
    held = facts.exit_code == 0 and verdicts == ["pass"] and tier == "enforced"
    yield Check("the run passes", held and record["run"]["complete"] is True, seen)
    problems = "; ".join(facts.problems) or "nothing missing, torn or altered"
    yield Check("the record is evidence", not facts.problems, problems)
    supervisor = record["supervisor"]
    received, answered, lost = (supervisor[x] for x in ("received", "answered", "lost"))
    held = supervisor["alive"] and received == answered and received > 0 and not lost
    seen = f"{received} received, {answered} answered, {lost} lost"
    yield Check("every notification is answered", held, seen)
    yield Check("no fault", not record["faults"], f"{record['faults'] or 'none'}")
    failed = facts.load["failed"]
    first = facts.load["first_failure"]
    yield Check("every call does as bare", failed == 0, f"{failed} did not {first}".strip())


def _total(arrivals: Sequence[Arrival], protocol: str, to: str) -> tuple[int, int]:
    found = [a for a in arrivals if a.protocol == protocol and a.to.startswith(to)]
    return sum(a.times for a in found), sum(a.bytes for a in found)


def _equal(name: str, one: int, other: int) -> Check:
    return Check(name, one == other, f"{one:,} and {other:,}")


def _counted(facts: Facts) -> Iterator[Check]:
    load = facts.load
    for protocol, name, to, suffix in (
        ("tcp", "10.99.0.1", "10.99.0.1:9000", "allowed"),
        ("tcp", "127.0.0.1", "127.0.0.1:9000", "loopback"),
        ("tcp", "10.99.0.1 under signals", "10.99.0.1:9001", "storm"),
        ("udp", "10.99.0.1", "10.99.0.1:91", "allowed"),
        ("udp", "127.0.0.1", "127.0.0.1:91", "loopback"),
    ):
        times, size = _total(facts.arrivals, protocol, to)
        made, sent = ("tcp_", "bytes_") if protocol == "tcp" else ("udp_", "udp_bytes_")
        what = "connections" if protocol == "tcp" else "datagrams"
        yield _equal(f"{what} made and taken, {name}", load[made + suffix], times)
        yield _equal(f"{protocol} bytes sent and received, {name}", load[sent + suffix], size)
    wrong = sum(a.wrong for a in facts.arrivals)
    yield Check("each byte in its place, each datagram once", wrong == 0, f"{wrong} were not")
    yield _equal("own connections made and accepted", load["own_connects"], load["own_accepts"])
    yield _equal("unix sockets connected and accepted", load["unix_connects"], load["unix_accepts"])
    yield _equal("descriptors passed and used", load["passed"], load["taken"])
    yield _equal("unix bytes sent and received", load["pair_sent"], load["pair_read"])


def _refused(facts: Facts) -> Iterator[Check]:
    reached = sum(a.times for a in facts.arrivals if a.to.startswith(("10.99.0.2", "10.99.0.3")))
    tried = sum(facts.load[x] for x in ("refused_denied", "refused_elsewhere"))
    yield Check("nothing arrives where it is refused", reached == 0, f"{reached} of {tried:,} did")


def _recorded(facts: Facts) -> Iterator[Check]:
    hits = {row["id"]: row["hits"] for row in facts.record["rules"]}
    load = facts.load
    for rule, kind, counter in EXACT:
        count = hits.get(rule, {}).get(kind, -1)
        yield _equal(f"`{rule}` {kind.replace('_', ' ')}, record and program", count, load[counter])
    # A connect that a signal withdraws begins anew by itself, and is seen again: never less than was made.
    storm, calls = hits["soak.storm"]["let_through"], load["storm_calls"]
    held = calls <= storm <= calls + load["signals"]
    yield Check("`soak.storm` let through, record and program", held, f"{storm:,} and {calls:,}")
    # One that is interrupted or killed before it was received is no attempt: between ended and begun.
    full = hits["soak.full"]["let_through"] + hits["soak.loopback-full"]["observed"]
    held = load["full_timed_out"] <= full <= load["full_calls"]
    seen = f"{full:,} of {load['full_calls']:,}"
    yield Check("`soak.full` seen, of connects that sleep", held, seen)


def _survived(facts: Facts) -> Iterator[Check]:
    listed = sorted(row["pid"] for row in facts.record["survivors"])
    daemons = sorted(facts.load["survivors"])
    held = listed == daemons and len(daemons) == SURVIVORS
    yield Check("survivors are listed", held, f"{len(listed)} of {len(daemons)}")
    yield Check("survivors are ended", not facts.left, f"{len(facts.left)} live on")


def _worked(facts: Facts) -> Iterator[Check]:
    found = steady(facts.samples, facts.seconds)
    yield Check("enough samples", len(found) >= LEAST_SAMPLES, f"{len(found)} of the steady state")
    idle = [
        name
        for name, value in facts.load.items()
        if isinstance(value, int) and value == 0 and name not in IDLE
    ]
    yield Check("every kind of load was there", not idle, ", ".join(idle) or "all of them")
    if not found:
        return
    asleep = statistics.median(one.blocked for one in found)
    seen = f"{asleep:g} by the median"
    yield Check(f"{BLOCKED} connects asleep at a time", asleep >= BLOCKED - 2, seen)
    stalled, moved, before = 0.0, found[0].at, found[0].operations
    for one in found:
        if one.operations > before:
            moved, before = one.at, one.operations
        stalled = max(stalled, one.at - moved)
    yield Check(
        "the load goes on all the time", stalled <= STALL, f"at rest {stalled:.1f} s at most"
    )


def _grew(facts: Facts) -> Iterator[Check]:
    found = steady(facts.samples, facts.seconds)
    for process in PROCESSES:
        for at, measure in enumerate(MEASURES):
            name = f"{process}: {measure} flat"
            if len(found) < LEAST_SAMPLES:
                yield Check(name, held=False, seen="cannot be told from so few samples")
                continue
            values = [int(getattr(one, process)[at]) for one in found]
            more, slope = growth([one.at for one in found], values)
            unit = " KiB" if measure == "memory" else ""
            seen = f"{more:+g}{unit} ({slope:+.1f} a minute), at most {max(values):,}{unit}"
            yield Check(name, more <= LIMITS[measure], seen)
