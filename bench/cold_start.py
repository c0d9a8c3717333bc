"""Cold start, whole process: ``compile`` of a 12-rule flow and ``--version``, against ``python -c pass``."""

from __future__ import annotations

import sys

from bench.flows import twelve
from bench.place import Place
from bench.rounds import measure
from bench.table import Row

__all__ = ["rows"]

ROUNDS = 15
SCRIPT = "import re, sys\nfrom flowproof.cli.main import main\nsys.exit(main())\n"
"""What pip writes as a console script, its import of `re` included."""


def rows(place: Place) -> list[Row]:
    """Return both rows, each by ``python -m`` and through a console script."""
    flow = place.write("twelve.flow.yaml", twelve())
    script = place.folder / "flowproof-script.py"
    script.write_text(SCRIPT, encoding="ascii")
    through = [sys.executable, str(script)]
    compiling = ("compile", str(flow), "--target", "linux-x86_64")

    def timed(words: list[str]) -> float:
        return place.run(words).wall

    found = measure(
        lambda: timed([sys.executable, "-c", "pass"]),
        {
            "compile": lambda: timed(place.flowproof(*compiling)),
            "compile, script": lambda: timed([*through, *compiling]),
            "version": lambda: timed(place.flowproof("--version")),
            "version, script": lambda: timed([*through, "--version"]),
        },
        rounds=ROUNDS,
    )
    out = []
    for name, work, bound in (
        ("compile", "cold `flowproof compile` of a 12-rule flow, whole process", 10.0),
        ("version", "`flowproof --version`", 3.0),
    ):
        direct, wrapped = found.ratio(name), found.ratio(f"{name}, script")
        out.append(
            Row(
                work,
                f"≤ {bound:g}x `python -c pass`",
                f"{direct:.2f}x by `-m`, {wrapped:.2f}x as a script ({found.median(name) * 1e3:.0f} ms)",
                control=f"{found.control:.2f}",
                holds=found.judged(max(direct, wrapped) <= bound),
            )
        )
    return out
