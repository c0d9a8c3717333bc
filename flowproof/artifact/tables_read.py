"""The decision tables and symbols of an artifact, read back: indices lead somewhere, intervals ascend."""

from __future__ import annotations

import itertools

from flowproof.addresses import LAST, parse_address
from flowproof.artifact.files import read_file_rows
from flowproof.artifact.model import (
    PLANES,
    SPECIAL,
    Entry,
    Plane,
    PortTable,
    Symbol,
    Tables,
    UnixRow,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.reading import Node

__all__ = ["family_of", "read_address", "read_range", "read_symbol", "read_tables"]

_PORTS = 65536


def family_of(plane: str) -> int:
    """Return the address family of a plane: 4 or 6."""
    return int(plane[-1])


def read_tables(node: Node, rules: int) -> Tables:
    """Return decision tables whose entries name one of *rules* rules. Raises `ArtifactError`."""
    held = node.object((name for name in Tables.__fields__ if name != "files"), ("files",))
    entries = held["entries"].each(lambda entry: _read_entry(entry, rules))
    ports = held["ports"].each(lambda table: _read_ports(table, len(entries)))
    planes = {
        name: _read_plane(plane, family_of(name), len(ports))
        for name, plane in held["planes"].object(PLANES).items()
    }
    special = {
        name: entry.number(len(entries), "an entry")
        for name, entry in held["special"].object(SPECIAL).items()
    }
    unix = held["unix"].each(lambda row: _read_unix(row, len(entries)))
    files = read_file_rows(held["files"], rules) if "files" in held else ()
    return Tables(entries, ports, planes, special, unix, files)


def _read_entry(node: Node, rules: int) -> Entry:
    held = node.object((), Entry.__fields__)
    lists = {}
    for name, part in held.items():
        lists[name] = part.numbers(rules, "a rule")
        if not lists[name]:
            raise part.wrong("an empty list is left out")
        if len(set(lists[name])) != len(lists[name]):
            raise part.wrong("a rule stands twice")
    return Entry(**lists)


def _read_ports(node: Node, entries: int) -> PortTable:
    held = node.object(PortTable.__fields__)
    starts = held["starts"].numbers(_PORTS, "a port")
    table = PortTable(starts, held["entries"].numbers(entries, "an entry"))
    _intervals(node, table.starts, table.entries)
    return table


def _read_plane(node: Node, family: int, tables: int) -> Plane:
    held = node.object(Plane.__fields__)
    starts = tuple(_read_start(start, family) for start in held["starts"].items())
    plane = Plane(starts, held["cells"].numbers(tables, "a port table"))
    _intervals(node, plane.starts, plane.cells)
    return plane


def _intervals(node: Node, starts: tuple[int, ...], values: tuple[int, ...]) -> None:
    if not starts or starts[0] != 0 or any(a >= b for a, b in itertools.pairwise(starts)):
        raise node.wrong("`starts` ascend from 0")
    if len(starts) != len(values):
        raise node.wrong("every interval has one value")


def _read_start(node: Node, family: int) -> int:
    text = node.text()
    parsed = parse_address(text)
    if parsed is None or parsed[0] != family or not 0 <= parsed[1] <= LAST[family]:
        raise node.wrong(f"`{text}` is no address of IPv{family}")
    return parsed[1]


def _read_unix(node: Node, entries: int) -> UnixRow:
    held = node.object(UnixRow.__fields__)
    return UnixRow(
        held["path"].text(),
        held["outside"].number(entries, "an entry"),
        held["inside"].number(entries, "an entry"),
    )


def read_symbol(node: Node, rules: int) -> Symbol:
    """Return what a run binds for one of *rules* rules. Raises `ArtifactError`."""
    held = node.object(Symbol.__fields__)
    return Symbol(
        rule=held["rule"].number(rules, "a rule"),
        role=held["role"].word(("target", "except")),
        kind=held["kind"].word(("name", "wildcard", "variable")),
        value=held["value"].text(),
        protocols=held["protocols"].each(lambda word: word.word(("tcp", "udp"))),
        ports=held["ports"].each(read_range),
    )


def read_address(node: Node) -> str:
    """Return an address as it is written. Raises `ArtifactError`."""
    text = node.text()
    if parse_address(text) is None:
        raise node.wrong(f"`{text}` is no address")
    return text


def read_range(node: Node) -> tuple[int, int]:
    """Return two ports in order, or two numbers of calls. Raises `ArtifactError`."""
    ends = node.numbers(_PORTS, "a port")
    if len(ends) != 2 or ends[0] > ends[1]:
        raise node.wrong("two ports in order are expected")
    return ends[0], ends[1]
