"""The long run of the proof: ``python -m tests.property.proofs 10000 [seed]`` from the checkout."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from comparison import random_policy

from flowproof.artifact import codec
from flowproof.lower.backend import TARGETS, compile_policy
from flowproof.verify.found import Proof
from flowproof.verify.prove import verify


def main(count: int, first: int) -> int:
    """Prove *count* random policies, each for one target in turn; return how many differ."""
    cells = kinds = differing = 0
    for seed in range(first, first + count):
        policy = random_policy(random.Random(seed))
        target = TARGETS[seed % len(TARGETS)]
        found = verify(policy, codec.dumps(compile_policy(policy, target)))
        if isinstance(found, Proof):
            cells += found.cells + found.filtered
            kinds += found.classes
            continue
        differing += 1
        print(f"seed {seed}, {target}:\n{found}", file=sys.stderr)
    print(f"{count} policies, {differing} with a difference; {cells} cells, {kinds} kinds of them")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 10_000,
            int(sys.argv[2]) if len(sys.argv) > 2 else 0,
        )
    )
