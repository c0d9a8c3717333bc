"""The table of peers: what a cell says, and that a tool that does not run makes no number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers import command
from bench.peers.command import COLUMNS, Row, cell, measured, show, table
from bench.peers.tools import requirements
from bench.rounds import BARE, CONTROL, ROUNDS, Rounds

RATIO, ADDED = COLUMNS[0], COLUMNS[4]


class Bench:
    """A place that runs nothing: words of a command → what it would have measured, or an error."""

    def __init__(self, folder: Path, taken: Callable[[str, int], float]) -> None:
        self.folder = folder
        self._taken = taken
        self._runs: dict[str, int] = {}

    def run(self, words: list[str]) -> None:
        name = words[0] if words[0] in {"quick", "broken"} else BARE
        self._runs[name] = self._runs.get(name, 0) + 1
        value = self._taken(name, self._runs[name])
        found = {"operation": value, "wall": value, "median_connect": value}
        (self.folder / "peers.json").write_text(json.dumps(found), encoding="ascii")


class Offered:
    def __init__(self, *names: str, absent: dict[str, str] | None = None) -> None:
        self.wraps = {name: self._wrap(name) for name in names}
        self.absent = absent or {}

    @staticmethod
    def _wrap(name: str) -> Callable[[list[str]], list[str]]:
        return lambda words: [name, *words]


def taken(name: str, turn: int) -> float:
    if name == "broken" and turn == 4:
        raise RuntimeError("it ended with 1")
    return 3000.0 if name == "quick" else 1000.0


def test_cell_is_the_median_against_bare_of_the_same_round() -> None:
    rounds = Rounds(
        {BARE: [1000.0, 2000.0, 1000.0], CONTROL: [1.0] * 3, "x": [2000.0, 6000.0, 1000.0]}
    )
    assert cell(rounds, "x", RATIO) == "2.00x (1.00 to 3.00)"
    assert cell(rounds, "x", ADDED) == "+1.0 (+0.0 to +4.0)"
    assert cell(rounds, BARE, RATIO) == "1.00 µs"


def test_tool_that_fails_in_any_round_is_left_out_and_named(tmp_path: Path) -> None:
    place, peers = Bench(tmp_path, taken), Offered("quick", "broken")
    found, unable = measured(place, peers, tmp_path / "w", "pipe", 1)  # type: ignore[arg-type]  # stand-ins
    assert unable == {"broken": "it ended with 1"}
    assert found["wall"].ratio("quick") == 3.0
    assert "broken" not in found["wall"].taken
    assert [len(found["wall"].taken[name]) for name in (BARE, CONTROL, "quick")] == [ROUNDS] * 3


def test_bare_that_fails_is_no_row(tmp_path: Path) -> None:
    def broken(_name: str, _turn: int) -> float:
        raise RuntimeError("nothing runs here")

    with pytest.raises(command.Unable):
        measured(Bench(tmp_path, broken), Offered(), tmp_path / "w", "pipe", 1)  # type: ignore[arg-type]  # stand-ins


def test_what_does_not_run_or_is_not_installed_makes_no_number(tmp_path: Path) -> None:
    place, peers = (
        Bench(tmp_path, taken),
        Offered("quick", "broken", absent={"other 1.0": "no wheel"}),
    )
    rows, notes = table(place, peers, tmp_path / "w")  # type: ignore[arg-type]  # stand-ins
    cells = {row.name: row.cells for row in rows}
    assert cells["broken"][0] == "does not run"
    assert cells["other 1.0"] == ("not installed",) * len(COLUMNS)
    assert "other 1.0: no wheel" in notes
    assert "broken cannot run pipe: it ended with 1" in notes
    text = show([Row("quick", cells["quick"])], notes, "somewhere")
    assert "| quick | 3.00x (3.00 to 3.00) |" in text
    assert text.endswith("\n".join(notes))


def test_noisy_control_is_said(tmp_path: Path) -> None:
    turns = iter(range(10_000))

    def noisy(_name: str, _turn: int) -> float:
        return 1000.0 * (1 + next(turns) % 3)

    _, notes = table(Bench(tmp_path, noisy), Offered(), tmp_path / "w")  # type: ignore[arg-type]  # stand-ins
    assert any("the machine was noisy" in note for note in notes), notes


def test_peers_are_pinned() -> None:
    assert requirements() == {"flowproof": "0.23.28", "sandlock": "0.9.0"}
