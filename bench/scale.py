"""Large policies: one rule with 10,000 addresses, and 10,000 rules with one.

The bound is absolute, so the processor time of the whole of `flowproof compile` is judged: start, document,
IR, one target, the proof that goes with it, and what is written; other work on the machine is not in it.
The stages that it consists of stand beside, each by itself.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from bench.flows import many_addresses, many_rules
from bench.place import CHECKOUT, Place
from bench.stages import STAGES
from bench.table import Row

__all__ = ["rows"]

COUNT = 10_000
ROUNDS = 3
MEMORY_MIB = 200


def _stages(place: Place, flow: str) -> dict[str, float]:
    """Return the median seconds of processor of each stage."""
    taken: list[dict[str, float]] = []
    for _ in range(ROUNDS):
        ran = subprocess.run(
            [sys.executable, "-m", "bench.stages", flow],
            cwd=CHECKOUT,
            env=place.environment,
            check=True,
            capture_output=True,
        )
        taken.append(json.loads(ran.stdout))
    return {name: statistics.median(one[name] for one in taken) for name in STAGES}


def rows(place: Place) -> list[Row]:
    """Return both rows: the whole of a compile for one target, with what `compile` verifies by default."""
    out = []
    for work, document, bound in (
        (f"one rule with {COUNT:,} addresses", many_addresses(COUNT), 1.0),
        (f"{COUNT:,} rules with one address", many_rules(COUNT), 3.0),
    ):
        flow = str(place.write("scale.flow.yaml", document))
        words = place.flowproof("compile", flow, "--target", "linux-x86_64", "-o", "scaled")
        runs = [place.run(words) for _ in range(ROUNDS)]
        whole = statistics.median(run.cpu for run in runs)
        memory = max(run.memory for run in runs) / 1024
        parts = ", ".join(f"{name} {taken:.2f}" for name, taken in _stages(place, flow).items())
        out.append(
            Row(
                f"{work}: `compile` for one target, its proof included",
                f"≤ {bound:g} s; {MEMORY_MIB} MB",
                f"{whole:.2f} s of processor ({parts}), {memory:.0f} MB",
                holds=whole <= bound and memory <= MEMORY_MIB,
            )
        )
    return out
