"""What a list's entries become: destinations with the events that show them, and what is none.

Names are bound to documentation addresses by `hosts_of`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flowproof.values import Value

__all__ = [
    "FAR",
    "LISTS",
    "OTHER_ADDRESS",
    "OTHER_NAME",
    "VARIABLE",
    "Beyond",
    "Destination",
    "Part",
    "Row",
    "Silent",
    "Translation",
    "bound_event",
    "hosts_of",
    "pack",
    "read_list",
    "read_table",
]

HERE = Path(__file__).parent
LISTS = sorted(path.stem for path in (HERE / "lists").glob("*.json"))

OTHER_NAME, OTHER_ADDRESS = "beside.flow.example", "203.0.113.250"
"""A name in no list, and the address that it stands for in events: nothing is bound to it."""
FAR = "198.51.100.200"
"""An address in no list (RFC 5737)."""
VARIABLE = ("SERVICE_HOST", "service.flow.example")
"""The one variable of the lists, and the name that a run finds in it."""

Row = dict[str, Any]


class Destination(Value):
    """An entry that says what may be reached, or what may not: its *sentences*, the events that it must let
    *through* and those, right beside, that it must have *refused*.
    """

    entry: str
    sentences: tuple[str, ...]
    through: tuple[str, ...]
    refused: tuple[str, ...]


class Beyond(Value):
    """An entry that is about something else than destinations: *document* puts it to the tool."""

    entry: str
    document: Row


class Silent(Value):
    """An entry that needs no sentence."""

    entry: str


Part = Destination | Beyond | Silent


class Translation(Value):
    """A list as a *document* (a pack, or a flow where *suffix* says so) and what became of each entry."""

    document: Row
    suffix: str
    parts: tuple[Part, ...]

    @property
    def destinations(self) -> list[Destination]:
        """The entries that are sentences."""
        return [part for part in self.parts if isinstance(part, Destination)]


def read_list(name: str) -> Row:
    """Return one list as it was published."""
    found: Row = json.loads((HERE / "lists" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def read_table() -> dict[str, Row]:
    """Return what the table says of each list."""
    return tomllib.loads((HERE / "expressed.toml").read_text(encoding="utf-8"))


def pack(sentences: Iterable[str]) -> Row:
    return {
        "policy": "list",
        "rules": {f"e{number:02}": text for number, text in enumerate(sentences, 1)},
    }


def hosts_of(translation: Translation) -> dict[str, str]:
    """Return an address of its own for each name in the events of *translation*."""
    names: dict[str, str] = {}
    for part in translation.destinations:
        for event in (*part.through, *part.refused):
            host = event.split()[-1].rpartition(":")[0]
            named = any(letter.isalpha() for letter in host) and not host.startswith(("[", "unix"))
            if named and host not in (OTHER_NAME, "localhost"):
                names.setdefault(host, f"203.0.113.{len(names) + 1}")
    assert len(names) < 250
    return names


def bound_event(event: str, hosts: dict[str, str]) -> str:
    """Return *event* with the address that its name is bound to, or one that nothing is bound to."""
    *words, endpoint = event.split()
    host, _, port = endpoint.rpartition(":")
    address = {**hosts, OTHER_NAME: OTHER_ADDRESS, "localhost": "127.0.0.1"}.get(host, host)
    return " ".join([*words, f"{address}:{port}"])
