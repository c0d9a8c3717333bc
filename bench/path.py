"""A connect over a path of 1 ms: two network namespaces and a delay line (`delay.c`); needs root."""

from __future__ import annotations

import subprocess

from bench.containment import UNDER, workload
from bench.place import Place
from bench.table import Row

__all__ = ["rows"]

WORK = "connect over a path of 1 ms, median latency of the connect"
NEAR, FAR, PORT = "10.98.0.1", "10.98.0.2", "9000"
TIMES = 200
BOUND = 1.1


def rows(place: Place) -> list[Row]:
    """Return the row, or why this machine cannot measure it."""
    line, binary = place.built("delay"), place.built("workloads")
    if line is None or binary is None:
        return [Row(WORK, f"≤ {BOUND:g}x bare", "needs gcc", holds=None)]
    with subprocess.Popen(
        [str(line), NEAR, FAR, PORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        assert served.stderr is not None
        try:
            if served.stdout.readline().strip() != "ready":
                why = served.stderr.read().strip()
                return [Row(WORK, f"≤ {BOUND:g}x bare", f"needs root and TUN ({why})", holds=None)]
            _, latency = workload(
                place,
                [str(binary), "path", str(TIMES), "OUTPUT", FAR, PORT],
                also=FAR,
                enter=["nsenter", f"--target={served.pid}", "--net", "--"],
            )
        finally:
            served.kill()
    ratio = latency.ratio(UNDER)
    return [
        Row(
            WORK,
            f"≤ {BOUND:g}x bare",
            f"{ratio:.3f}x ({latency.median('bare') / 1e3:.0f} us bare)",
            control=f"{latency.control:.3f}",
            holds=latency.judged(ratio <= BOUND),
        )
    ]
