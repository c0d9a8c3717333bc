"""``python -m bench peers``: the overhead of a run beside that of the nearest tools, in the same rounds.

Times are on the wall, inside the measured program: what a call waits for a supervisor counts. What is not
trapped waits for nobody, and is told by the time of its thread, which other work on the machine does not
inflate. 1 when a row of flowproof itself could not be measured, 0 otherwise; no bound is judged here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.peers.tools import Peers
from bench.place import Place
from bench.rounds import BARE, CONTROL, NOISE, ROUNDS, Rounds, measure
from bench.table import python_build

__all__ = ["Column", "Row", "cell", "main", "show"]


class Column(NamedTuple):
    """One work: its title, the workload and how often, what is read, and what a cell says."""

    title: str
    work: str
    times: int
    key: str
    added: bool


COLUMNS = (
    Column("pipe write and read, untrapped", "pipe", 60_000, "operation", added=False),
    Column("null call, untrapped, ns added", "null", 300_000, "operation", added=True),
    Column("`send` of 64 bytes, connected", "send", 20_000, "wall", added=False),
    Column("loopback connect, accept, close", "connect", 3_000, "wall", added=False),
    Column("the connect alone, median, µs added", "connect", 3_000, "median_connect", added=True),
)


class Row(NamedTuple):
    """One variant and its cells, column by column."""

    name: str
    cells: tuple[str, ...]


class Unable(Exception):  # noqa: N818  says which variant, not that something is wrong
    """A variant that could not run a workload, and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why


def measured(
    place: Place, peers: Peers, binary: Path, work: str, times: int
) -> tuple[dict[str, Rounds], dict[str, str]]:
    """Return the rounds of a workload by what is read, and which variants could not run it.

    A variant that fails in any round is left out, and the rounds begin anew without it.
    """
    output = place.folder / "peers.json"
    command = [str(binary), work, str(times), str(output)]
    variants = {name: wrap(command) for name, wrap in peers.wraps.items()}
    unable: dict[str, str] = {}
    while True:
        seen: dict[str, dict[str, list[float]]] = {}

        def timed(name: str, words: list[str]) -> Callable[[], float]:
            def once() -> float:
                output.unlink(missing_ok=True)
                try:
                    place.run(words)
                    found = json.loads(output.read_text(encoding="ascii"))
                except (RuntimeError, OSError, ValueError) as error:
                    raise Unable(name, str(error).replace(str(place.folder), "…")) from error
                for key, value in found.items():
                    seen.setdefault(key, {}).setdefault(name, []).append(float(value))  # noqa: B023
                return float(found["wall"])

            return once

        runs = {name: timed(name, words) for name, words in variants.items()}
        try:
            measure(timed(BARE, command), {CONTROL: timed(CONTROL, command), **runs})
        except Unable as failed:
            if failed.name not in variants:
                raise
            unable[failed.name] = failed.why
            del variants[failed.name]
            continue
        # the first round is for warming up, as `measure` has it
        return {key: Rounds({n: v[1:] for n, v in of.items()}) for key, of in seen.items()}, unable


def cell(rounds: Rounds, name: str, column: Column) -> str:
    """Return the median over rounds of a variant against bare, with its quartiles."""
    unit = 1e3 if column.key == "median_connect" else 1.0
    if name == BARE:
        return f"{rounds.median(BARE) / 1e3:.2f} µs"
    pairs = list(zip(rounds.taken[name], rounds.taken[BARE], strict=True))
    if column.added:
        values, sign, suffix = [(one - bare) / unit for one, bare in pairs], "+", ""
        digits = 1 if unit > 1 else 0
    else:
        values, sign, suffix, digits = [one / bare for one, bare in pairs], "", "x", 2
    low, middle, high = statistics.quantiles(values, n=4)
    spread = f"{low:{sign}.{digits}f} to {high:{sign}.{digits}f}"
    return f"{middle:{sign}.{digits}f}{suffix} ({spread})"


def table(place: Place, peers: Peers, binary: Path) -> tuple[list[Row], list[str]]:
    """Return the rows, and in words why a cell holds no number."""
    names = [BARE, CONTROL, *peers.wraps]
    cells: dict[str, list[str]] = {name: [] for name in names}
    notes = [f"{name}: {why}" for name, why in peers.absent.items()]
    works: dict[str, tuple[dict[str, Rounds], dict[str, str]]] = {}
    for column in COLUMNS:
        if column.work not in works:
            print(f"measuring {column.work} …", file=sys.stderr, flush=True)
            works[column.work] = measured(place, peers, binary, column.work, column.times)
            notes += [
                f"{n} cannot run {column.work}: {w}" for n, w in works[column.work][1].items()
            ]
        found, unable = works[column.work]
        for name in names:
            able = name not in unable
            cells[name].append(cell(found[column.key], name, column) if able else "does not run")
        control = found[column.key].control
        if abs(control - 1) > NOISE:
            notes.append(
                f"{column.title}: bare against bare is {control:.2f}: the machine was noisy"
            )
    absent = [Row(name, ("not installed",) * len(COLUMNS)) for name in peers.absent]
    return [*(Row(name, tuple(cells[name])) for name in names), *absent], notes


def show(rows: list[Row], notes: list[str], where: str) -> str:
    """Return the text."""
    head = ("", *(column.title for column in COLUMNS))
    lines = [head, tuple("---" for _ in head), *((row.name, *row.cells) for row in rows)]
    return "\n".join(
        [
            f"Overhead beside bare: medians of {ROUNDS} paired rounds in shuffled order, with quartiles.",
            "Inside the program: untrapped work by its thread's time, the rest by the clock on the wall.",
            "Bare in µs, the others against bare of their round.",
            where,
            "",
            *("| " + " | ".join(line) + " |" for line in lines),
            *(["", *notes] if notes else []),
        ]
    )


def main(words: list[str]) -> int:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m bench peers", description=__doc__).parse_args(words)
    place = Place()
    try:
        binary = place.built("workloads")
        if binary is None:
            print("not measured: this machine lacks `gcc`")
            return 3
        peers = Peers(place)
        try:
            rows, notes = table(place, peers, binary)
        finally:
            peers.close()
    finally:
        place.close()
    build = python_build().rpartition(", ")[0]  # without its path
    load = os.getloadavg()[0]
    host = f"Linux {platform.release()}, {os.cpu_count()} processors, load {load:.1f} at the end"
    print(show(rows, notes, f"{host}; {build}"))
    ours = next(row for row in rows if "this one" in row.name)
    return 1 if "does not run" in ours.cells else 0
