"""What the processes of a run hold at one moment, read from /proc; as root, for they are not dumpable."""

from __future__ import annotations

import os
import statistics
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.soak.world import counter_names

__all__ = ["MEASURES", "PROCESSES", "WARM", "Held", "Sample", "growth", "sample", "steady"]

WARM = 0.2
"""The share of a soak in which caches fill and threads start: growth is judged behind it."""
PROCESSES = ("supervisor", "recorder")
_HEAD = struct.Struct("=Q56s")  # struct page: until, asleep; then the counters


class Held(NamedTuple):
    """What one process holds: descriptors without cached pidfds, those, threads, KiB of memory."""

    descriptors: int
    pidfds: int
    threads: int
    memory: int


MEASURES = Held._fields


class Sample(NamedTuple):
    """One moment: seconds since the start, connects asleep, operations of the load so far, what is held."""

    at: float
    blocked: int
    operations: int
    supervisor: Held
    recorder: Held


def _held(pid: int) -> Held:
    folder = f"/proc/{pid}/fd"
    others = pidfds = 0
    for number in os.listdir(folder):
        try:
            cached = os.readlink(f"{folder}/{number}") == "anon_inode:[pidfd]"
        except FileNotFoundError:  # closed since
            continue
        pidfds += cached
        others += not cached
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return Held(others, pidfds, int(status["Threads"]), int(status["VmRSS"].split()[0]))


def sample(at: float, recorder: int, page: Path) -> Sample | None:
    """Return what is held now; None while the run starts or ends."""
    try:
        text = Path(f"/proc/{recorder}/task/{recorder}/children").read_text(encoding="ascii")
        (supervisor,) = map(int, text.split())
        data = page.read_bytes()
        _until, asleep = _HEAD.unpack_from(data)
        place = _HEAD.size + 8 * counter_names().index("operations")
        (operations,) = struct.unpack_from("=Q", data, place)
        return Sample(at, sum(asleep), operations, _held(supervisor), _held(recorder))
    except (OSError, ValueError, KeyError, struct.error):
        return None


def steady(samples: Sequence[Sample], seconds: float) -> list[Sample]:
    """Return the samples of the load at work: behind its warming up, before its end."""
    return [one for one in samples if WARM * seconds <= one.at <= seconds]


def growth(seconds: Sequence[float], values: Sequence[int]) -> tuple[float, float]:
    """Return how much more the last third of *values* is than the first, by medians; and that per minute.

    A leak lifts all of the last third; a burst does not move a median.
    """
    third = len(values) // 3
    more = statistics.median(values[-third:]) - statistics.median(values[:third])
    apart = statistics.median(seconds[-third:]) - statistics.median(seconds[:third])
    return more, more / apart * 60
