"""The bounds that the language page and the decisions tell are the ones that are in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowproof.ir.regions import LIMIT as RANGES
from flowproof.ir.sets import DEPTH as SETS
from flowproof.ir.sets import LIMIT as MEMBERS
from flowproof.source.compose import LENGTH, NODES
from flowproof.source.suite import DEPTH as PACKS

DOCS = Path(__file__).parents[2] / "docs"
BOUNDS = {
    f"{NODES:,} values": "a document's values",
    f"{MEMBERS:,} members": "members of sets",
    "64 deep": "sets and packs that name each other",
    "a million characters": "a value's length",
    "a million ranges": "networks with different ports",
    "4 MiB": "a file",
}


def test_the_words_are_the_numbers() -> None:
    assert (PACKS, SETS) == (64, 64)
    assert (LENGTH, RANGES) == (1_000_000, 1_000_000)


@pytest.mark.parametrize(
    "page", ["policy-language.md", "decisions/0002-readings-of-the-language-page.md"]
)
def test_each_bound_is_told(page: str) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    missing = [what for words, what in BOUNDS.items() if words not in text]
    assert missing == []
