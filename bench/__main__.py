"""``python -m bench [NAME…]``: print the table; 1 when a bound is missed, 3 when a row was not measured.

``python -m bench soak`` and ``python -m bench peers`` are commands of their own, with what they print.
"""

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

COMMANDS = {"soak": "bench.soak.command", "peers": "bench.peers.command"}
"""Word by module; each has ``main(words)``."""

LATER = (Row("exact diff of two 1,000-rule policies", "≤ 250 ms", "no `diff` yet", holds=None),)


def main() -> int:
    """Measure what the command line names, or everything."""
    if sys.argv[1:] and sys.argv[1] in COMMANDS:
        return int(importlib.import_module(COMMANDS[sys.argv[1]]).main(sys.argv[2:]))
    wanted = sys.argv[1:] or list(MEASUREMENTS)
    unknown = sorted(set(wanted) - set(MEASUREMENTS))
    if unknown:
        known = ", ".join((*MEASUREMENTS, *COMMANDS))
        print(f"no such measurement: {', '.join(unknown)}; there are {known}")
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
