"""``python -m bench [NAME…]``: print the table; 1 when a bound is missed, 3 when a row was not measured."""

from __future__ import annotations

import importlib
import sys

from bench.place import Place
from bench.table import Row, python_build, show

MEASUREMENTS = (
    "containment",
    "path",
    "unlinks",
    "program_size",
    "cold_start",
    "scale",
    "decision",
)
"""Module by module, in the table's order; each has ``rows(place)``."""

LATER = (Row("exact diff of two 1,000-rule policies", "≤ 250 ms", "no `diff` yet", holds=None),)


def main() -> int:
    """Measure what the command line names, or everything."""
    wanted = sys.argv[1:] or list(MEASUREMENTS)
    unknown = sorted(set(wanted) - set(MEASUREMENTS))
    if unknown:
        print(f"no such measurement: {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
        return 2
    found: list[Row] = []
    place = Place()
    try:
        for name in wanted:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            found += importlib.import_module(f"bench.{name}").rows(place)
    finally:
        place.close()
    if not sys.argv[1:]:
        found += LATER
    print(
        f"{python_build()}; medians of paired rounds; ratios of this run only compare with each other\n"
    )
    print(show(found))
    if any(row.holds is False for row in found):
        return 1
    return 3 if any(row.holds is None for row in found if row not in LATER) else 0


if __name__ == "__main__":
    sys.exit(main())
