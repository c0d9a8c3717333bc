"""The decision tables of a serialised artifact, read by a reader of the verifier's own.

It works on the JSON and decides by what `artifact.model.Entry` says of the lists, so that a mistake in the
codec or in the decision of an entry is not shared.
"""

from __future__ import annotations

from flowproof.addresses import parse_address
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["NOBODY", "PLANES", "Line", "Malformed", "Outcome", "Read", "decide", "read_tables"]

PLANES = ("tcp4", "tcp6", "udp4", "udp6", "listen4", "listen6", "listen-any4", "listen-any6")
SPECIAL = ("families", "foreign-abi", "unreadable", "unix")
NOBODY: frozenset[int] = frozenset()
LISTS = ("refuse", "allow", "otherwise", "watch", "watch_otherwise", "excepted", "leave")


class Malformed(Exception):  # noqa: N818  a finding about the artifact
    """Tables that do not say what becomes of every attempt; the message names the part."""


class Line(Value):
    """A line cut into intervals: *starts* ascend from 0, with an index for each interval."""

    starts: Sequence[int]
    values: Sequence[int]


class Outcome(Value):
    """What an entry does: *refused*, *by* which rule, and who counts or observes it."""

    refused: bool
    by: int | None
    asserting: frozenset[int]
    observing: frozenset[int]


class Read(Value):
    """The tables as read: *outcomes* go with *entries*, one for one."""

    entries: Sequence[Mapping[str, Sequence[int]]]
    outcomes: Sequence[Outcome]
    ports: Sequence[Line]
    planes: Mapping[str, Line]
    special: Mapping[str, int]
    unix: Mapping[str, tuple[int, int]]


def read_tables(tables: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> Read:
    """Return the tables that *tables* (JSON) are, about *rules* (JSON). Raises `Malformed`."""
    entries = [_lists(entry, len(rules), at) for at, entry in enumerate(tables["entries"])]
    ports = [
        _line(f"ports[{at}]", table["starts"], table["entries"], len(entries), 65536)
        for at, table in enumerate(tables["ports"])
    ]
    planes = {}
    for name in PLANES:
        if name not in tables["planes"]:
            raise Malformed(f"plane {name} is missing")
        plane = tables["planes"][name]
        starts = [_address(name, text) for text in plane["starts"]]
        planes[name] = _line(f"plane {name}", starts, plane["cells"], len(ports), 1 << 128)
    special = {}
    for name in SPECIAL:
        at = tables["special"].get(name)
        if not isinstance(at, int) or not 0 <= at < len(entries):
            raise Malformed(f"special {name} leads nowhere")
        special[name] = at
    unix: dict[str, tuple[int, int]] = {}
    for row in tables["unix"]:
        pair = (row["outside"], row["inside"])
        if row["path"] in unix or not all(0 <= at < len(entries) for at in pair):
            raise Malformed(f"unix row {row['path']} stands twice or leads nowhere")
        unix[row["path"]] = pair
    return Read(entries, [decide(e, rules) for e in entries], ports, planes, special, unix)


def _lists(entry: Mapping[str, list[int]], rules: int, at: int) -> Mapping[str, list[int]]:
    for name, held in entry.items():
        if name not in LISTS or len(set(held)) != len(held):
            raise Malformed(f"entry {at}: list {name} is unknown or holds a rule twice")
        if held and not 0 <= min(held) <= max(held) < rules:
            raise Malformed(f"entry {at}: list {name} names no rule")
    return entry


def _line(name: str, starts: list[int], values: list[int], count: int, end: int) -> Line:
    if not starts or starts[0] != 0 or len(starts) != len(values) or starts[-1] >= end:
        raise Malformed(f"{name}: not every interval has one value")
    if starts != sorted(set(starts)):
        raise Malformed(f"{name}: starts do not ascend")
    if not 0 <= min(values) <= max(values) < count:
        raise Malformed(f"{name}: an interval leads nowhere")
    return Line(starts, values)


def _address(plane: str, text: str) -> int:
    parsed = parse_address(text)
    if parsed is None or parsed[0] != int(plane[-1]):
        raise Malformed(f"plane {plane}: {text} is no address of it")
    return parsed[1]


def decide(entry: Mapping[str, Sequence[int]], rules: Sequence[Mapping[str, Any]]) -> Outcome:
    """Return what the lists of an entry amount to, about *rules* (JSON)."""
    refused, by = _handling(entry, rules)
    watching = set(entry.get("watch", ()))
    if not entry.get("allow"):
        watching.update(entry.get("watch_otherwise", ()))
    if not watching:
        return Outcome(refused, by, NOBODY, NOBODY)
    observing = frozenset([at for at in watching if rules[at]["verb"] == "observe"])
    return Outcome(refused, by, frozenset(watching) - observing, observing)


def _handling(
    entry: Mapping[str, Sequence[int]], rules: Sequence[Mapping[str, Any]]
) -> tuple[bool, int | None]:
    for at in entry.get("refuse", ()):
        return True, at
    for at in entry.get("allow", ()):
        return False, at
    otherwise = entry.get("otherwise", ())
    for at in otherwise:
        if rules[at]["kind"] in ("authored", "short-form"):
            return True, at
    for at in entry.get("leave", ()):
        return False, at
    for at in otherwise:
        return True, at
    return False, None
