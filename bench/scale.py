"""Large policies, whole process: one rule with 10,000 addresses, and 10,000 rules with one.

The bound is absolute, so time of the processor is what is judged: other work on the machine is not in it.
"""

from __future__ import annotations

import statistics

from bench.flows import many_addresses, many_rules
from bench.place import Place
from bench.table import Row

__all__ = ["rows"]

COUNT = 10_000
ROUNDS = 3
MEMORY_MIB = 200


def rows(place: Place) -> list[Row]:
    """Return both rows: IR, one target and what `compile` verifies by default."""
    out = []
    for work, document, bound in (
        (f"one rule with {COUNT:,} addresses", many_addresses(COUNT), 1.0),
        (f"{COUNT:,} rules with one address", many_rules(COUNT), 3.0),
    ):
        flow = place.write("scale.flow.yaml", document)
        words = place.flowproof("compile", str(flow), "--target", "linux-x86_64", "-o", "scaled")
        runs = [place.run(words) for _ in range(ROUNDS)]
        seconds = statistics.median(run.cpu for run in runs)
        wall = statistics.median(run.wall for run in runs)
        memory = max(run.memory for run in runs) / 1024
        out.append(
            Row(
                work,
                f"≤ {bound:g} s; {MEMORY_MIB} MB",
                f"{seconds:.2f} s of processor ({wall:.2f} on the wall), {memory:.0f} MB, whole process",
                holds=seconds <= bound and memory <= MEMORY_MIB,
            )
        )
    return out
