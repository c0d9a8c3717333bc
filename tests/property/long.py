"""The long run: ``python -m tests.property.long 2000 [first seed]`` from the checkout's root."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from comparison import Seen, compare, random_policy


def main(count: int, first: int) -> None:
    """Compare *count* policies; the seed of one that differs is named."""
    seen = Seen()
    for seed in range(first, first + count):
        rng = random.Random(seed)
        try:
            compare(random_policy(rng), seen, rng)
        except AssertionError:
            print(f"seed {seed}:", file=sys.stderr)
            raise
        if seen.policies % 250 == 0:
            print(seen, flush=True)
    print(f"agreed: {seen}")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 2000,
        int(sys.argv[2]) if len(sys.argv) > 2 else 0,
    )
