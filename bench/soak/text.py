"""What a soak prints: where it ran, what the load did, each check, and the course of what was held."""

from __future__ import annotations

from collections.abc import Sequence

from bench.soak.judge import Check, Facts
from bench.soak.samples import PROCESSES

__all__ = ["show"]

ROWS = 20
"""Lines of the course: every so many samples, the first and the last among them."""
LOAD = (
    ("connections", ("tcp_allowed", "tcp_loopback", "tcp_storm", "own_connects")),
    ("bytes over TCP", ("bytes_allowed", "bytes_loopback", "bytes_storm")),
    ("datagrams", ("udp_allowed", "udp_loopback")),
    ("bytes over a unix pair, by a send that sleeps", ("pair_sent",)),
    ("unix sockets by path and name", ("unix_connects",)),
    ("descriptors passed", ("passed",)),
    ("processes started, programs among them", ("forks", "execs")),
    ("threads started", ("threads",)),
    ("signals handled", ("signals",)),
    ("refused", ("refused_denied", "refused_probes", "refused_elsewhere", "refused_listens")),
    ("connects that sleep", ("full_calls",)),
    (
        "… ended by their time, a signal, a kill",
        ("full_timed_out", "full_interrupted", "full_killed"),
    ),
)


def show(facts: Facts, checks: list[Check], where: str) -> str:
    """Return the text."""
    failed = [check for check in checks if not check.held]
    verdict = "all of it held" if not failed else f"{len(failed)} of {len(checks)} did not hold"
    lines = [
        f"A soak of {facts.seconds:g} s: {verdict}.",
        where,
        "The run is without capabilities; root samples it from outside.",
        "",
        *_load(facts),
        "",
        *_checks(checks),
        "",
        *_course(facts),
    ]
    return "\n".join(lines)


def _load(facts: Facts) -> list[str]:
    rows = [(what, " + ".join(f"{facts.load[name]:,}" for name in names)) for what, names in LOAD]
    return _table(("load", "count"), rows)


def _checks(checks: list[Check]) -> list[str]:
    rows = [(c.name, "yes" if c.held else "NO", c.seen) for c in checks]
    return _table(("what has to hold", "holds", "seen"), rows)


def _course(facts: Facts) -> list[str]:
    every = max(1, len(facts.samples) // ROWS)
    measures = ("descriptors + pidfds", "threads", "KiB")
    head: tuple[str, ...] = ("second", "operations", "asleep")
    head += tuple(f"{process} {measure}" for process in PROCESSES for measure in measures)
    rows = []
    for one in facts.samples[::every]:
        cells = [f"{one.at:.0f}", f"{one.operations:,}", str(one.blocked)]
        for held in (one.supervisor, one.recorder):
            cells += [f"{held.descriptors} + {held.pidfds}", str(held.threads), f"{held.memory:,}"]
        rows.append(tuple(cells))
    return _table(head, rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]
