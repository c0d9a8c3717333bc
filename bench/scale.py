"""Large policies: one rule with 10,000 addresses, and 10,000 rules with one.

The bound is absolute and about the IR and one target, so the processor time of those stages (the parse of
the sentences included) is judged; other work on the machine is not in it. The whole process stands beside.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from bench.flows import many_addresses, many_rules
from bench.place import CHECKOUT, Place
from bench.table import Row

__all__ = ["rows"]

COUNT = 10_000
ROUNDS = 3
MEMORY_MIB = 200


def _stages(place: Place, flow: str) -> float:
    ran = subprocess.run(
        [sys.executable, "-m", "bench.stages", flow],
        cwd=CHECKOUT,
        env=place.environment,
        check=True,
        capture_output=True,
    )
    seconds = json.loads(ran.stdout)
    return float(seconds["ir"] + seconds["target"] + seconds["proof"])


def rows(place: Place) -> list[Row]:
    """Return both rows: IR, one target and what `compile` verifies by default."""
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
        seconds = statistics.median(_stages(place, flow) for _ in range(ROUNDS))
        out.append(
            Row(
                f"{work} (IR, one target, proof)",
                f"≤ {bound:g} s; {MEMORY_MIB} MB",
                f"{seconds:.2f} s of processor; whole process {whole:.2f} s, {memory:.0f} MB",
                holds=seconds <= bound and memory <= MEMORY_MIB,
            )
        )
    return out
