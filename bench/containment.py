"""Runtime rows: the same C workload bare and under a run, measured from inside the workload."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.flows import contained
from bench.place import Place
from bench.rounds import Rounds, measure
from bench.table import Row

__all__ = ["rows", "workload"]

UNDER, FLOOR = "contained", "floor"
ONE = "a filter of one instruction"
NODDING = "a supervisor in C that only lets go on"
"""What the mechanism costs by itself: nothing of ours can cost less on this machine."""
TIMES = {"null": 400_000, "pipe": 100_000, "send": 50_000, "connect": 4_000}


def workload(
    place: Place,
    words: list[str],
    *,
    also: str = "10.99.0.1",
    enter: list[str] | None = None,
    beside: Mapping[str, list[str]] | None = None,
) -> tuple[Rounds, Rounds]:
    """Return the rounds of a workload: nanoseconds per operation, and of the median connect.

    *words* hold ``OUTPUT`` where the output file goes; *enter* are words that go in front of both;
    *beside* are further commands to run bare, by name.
    """
    output = place.folder / "workload.json"

    def filled(line: list[str]) -> list[str]:
        return [str(output) if word == "OUTPUT" else word for word in line]

    command = filled(words)
    flow = place.write("workload.flow.yaml", contained(command, also=also))
    under = place.flowproof("run", str(flow), "--record", str(place.folder / "records"))
    medians: dict[str, list[float]] = {}

    def timed(name: str, line: list[str]) -> Callable[[], float]:
        def once() -> float:
            output.unlink(missing_ok=True)
            place.run([*(enter or []), *line])
            seen = json.loads(output.read_text(encoding="ascii"))
            medians.setdefault(name, []).append(float(seen["median_connect"]))
            return float(seen["operation"])

        return once

    more = {name: timed(name, filled(line)) for name, line in (beside or {}).items()}
    found = measure(timed("bare", command), {UNDER: timed(UNDER, under), **more})
    rounds = len(found.taken["bare"])
    # bare and its control share a list, in pairs; which of a pair came first does not matter here
    bare, held = medians["bare"], medians[UNDER]
    pairs = Rounds(
        {
            "bare": bare[2::2][:rounds],
            "bare again": bare[3::2][:rounds],
            UNDER: held[1:][:rounds],
            **{name: medians[name][1:][:rounds] for name in more},
        }
    )
    return found, pairs


def _measured(place: Place, binary: Path, name: str) -> tuple[Rounds, Rounds]:
    """Return the rounds of a workload, with what the mechanism costs it by itself beside."""
    words = [str(TIMES[name]), "OUTPUT"]
    floor = [str(binary), f"{name}-floor", *words]
    return workload(place, [str(binary), name, *words], beside={FLOOR: floor})


def _ratio(place: Place, binary: Path, name: str, work: str, bound: float) -> Row:
    found, _ = _measured(place, binary, name)
    ratio, bare = found.ratio(UNDER), found.median("bare") / 1e3
    return Row(
        work,
        f"≤ {bound:g}x bare",
        f"{ratio:.2f}x ({bare:.2f} us bare; {found.ratio(FLOOR):.2f}x by {ONE})",
        control=f"{found.control:.2f}",
        holds=found.judged(ratio <= bound),
    )


def rows(place: Place) -> list[Row]:
    """Return the rows of untrapped work, of sends and of connects."""
    binary = place.built("workloads")
    if binary is None:
        return [Row("runtime overhead", "", "needs gcc", holds=None)]
    null, _ = _measured(place, binary, "null")
    connect, latency = _measured(place, binary, "connect")
    added, ratio = latency.added(UNDER) / 1e3, connect.ratio(UNDER)
    return [
        _ratio(
            place, binary, "pipe", "untrapped work under the filter (pipe write and read)", 1.15
        ),
        Row(
            "untrapped null call (getppid)",
            "≤ 50 ns added",
            f"{null.added(UNDER):.0f} ns added ({null.median('bare'):.0f} ns bare;"
            f" {null.added(FLOOR):.0f} ns by {ONE})",
            control=f"{null.added('bare again'):+.0f} ns",
            holds=null.judged(null.added(UNDER) <= 50),
        ),
        _ratio(place, binary, "send", "`send` of 64 bytes on a connected socket", 1.15),
        Row(
            "loopback connect and close, a child that accepts its own connections",
            "≤ 2.0x bare",
            f"{ratio:.2f}x ({connect.median('bare') / 1e3:.1f} us bare;"
            f" {connect.ratio(FLOOR):.2f}x by {NODDING})",
            control=f"{connect.control:.2f}",
            holds=connect.judged(ratio <= 2.0),
        ),
        Row(
            "the same, median latency of the connect alone",
            "≤ 30 us added",
            f"{added:.1f} us added ({latency.median('bare') / 1e3:.1f} us bare;"
            f" {latency.added(FLOOR) / 1e3:.1f} us by {NODDING})",
            control=f"{latency.added('bare again') / 1e3:+.1f} us",
            holds=latency.judged(added <= 30),
        ),
    ]
