"""Observed file operations: 10,000 unlinks on tmpfs bare and under a run, timed inside the workload."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.flows import watched
from bench.place import Place
from bench.rounds import measure
from bench.table import Row

__all__ = ["rows"]

COUNT = 10_000
TMPFS = Path("/dev/shm")
BOUND = 10.0


def rows(place: Place) -> list[Row]:
    """Return the row of unlinks that are told, and beside it that of unlinks that are counted."""
    work = "10,000 observed unlinks on tmpfs"
    binary = place.built("unlinks")
    if binary is None or not TMPFS.is_dir():
        return [Row(work, "≤ 10x bare", "needs gcc and /dev/shm", holds=None)]
    folder = Path(tempfile.mkdtemp(prefix="flowproof-bench-", dir=TMPFS))
    try:
        return _rows(place, binary, folder)
    finally:
        shutil.rmtree(folder)


def _rows(place: Place, binary: Path, folder: Path) -> list[Row]:
    output = place.folder / "unlinks.json"
    command = [str(binary), str(folder), str(COUNT), str(output)]

    def under(verb: str) -> list[str]:
        flow = place.write(
            f"{verb.split(maxsplit=1)[0]}.flow.yaml", watched(command, verb, str(folder))
        )
        return place.flowproof("run", str(flow), "--record", str(place.folder / "records"))

    def timed(line: list[str], expect: int = 0) -> Callable[[], float]:
        def once() -> float:
            output.unlink(missing_ok=True)
            place.run(line, expect=expect)
            return float(json.loads(output.read_text(encoding="ascii"))["operation"])

        return once

    found = measure(
        timed(command),
        {"observe": timed(under("observe")), "expect no": timed(under("expect no"), expect=1)},
    )
    return [
        Row(
            f"10,000 observed unlinks on tmpfs, `{verb} delete`",
            "≤ 10x bare",
            f"{found.ratio(verb):.1f}x ({found.median('bare') / 1e3:.2f} us bare)",
            control=f"{found.control:.2f}",
            holds=found.judged(found.ratio(verb) <= BOUND),
        )
        for verb in ("observe", "expect no")
    ]
