"""Artifacts ↔ canonical JSON. ``schema/artifact.schema.json`` describes the form.

What a schema cannot say is checked here as well: indices that lead somewhere, intervals in order.
"""

from __future__ import annotations

import itertools
import json

from flowproof.addresses import LAST, format_address, parse_address
from flowproof.artifact.model import (
    PLANES,
    Artifact,
    Difference,
    Entry,
    Fidelity,
    FixedReply,
    Instruction,
    Origin,
    Plane,
    PortTable,
    Program,
    RefusedCall,
    RefusedOption,
    Rule,
    Symbol,
    Tables,
    TrappedCall,
    UnixRow,
)
from flowproof.artifact.reading import ArtifactError, Node
from flowproof.canonical import canonical
from flowproof.canonical import digest as digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from flowproof.values import Value

__all__ = ["SCHEMA", "ArtifactError", "digest", "dumps", "from_json", "loads", "to_json"]

SCHEMA = "https://flowproof.dev/schema/artifact/v1"
"""What the member ``schema`` says."""

_VERBS = ("allow", "observe", "expect no", "deny", "never")
_CLAIMS = ("none", "report", "behaviour", "containment", "containment+behaviour")
_ACTIONS = ("connect", "listen", "files", "execute", "call")
_KINDS = ("authored", "short-form", "default", "implied")
_CLASSES = ("exact", "observed", "over-blocks", "not-applicable", "over-permits", "unsupported")
_DIFFERENCES = ("over-blocks", "over-permits", "other-rule", "not-applicable", "unsupported")
_PLACES = (*PLANES, "unix", "binding", "counting", "meaning")
_SPECIAL = ("families", "foreign-abi", "unreadable", "unix")
_PORTS = 65536
_U32 = 1 << 32


def dumps(artifact: Artifact) -> bytes:
    """Return the canonical bytes of *artifact*."""
    return canonical(to_json(artifact))


def digest(artifact: Artifact) -> str:
    """Return ``sha256:…`` of the canonical bytes."""
    return digest_of(dumps(artifact))


def loads(data: bytes | str) -> Artifact:
    """Return the artifact that *data* holds. Raises `ArtifactError` for anything that is none."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(text, object_pairs_hook=_unique, parse_float=_no, parse_constant=_no)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ArtifactError("", f"no JSON at {place}") from error
    except UnicodeDecodeError as error:
        raise ArtifactError("", "no JSON: not UTF-8") from error
    except RecursionError as error:
        raise ArtifactError("", "no JSON that an artifact holds: it nests too deep") from error
    return from_json(value)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ArtifactError("", "a name stands twice in an object")
    return found


def _no(text: str) -> object:
    raise ArtifactError("", f"`{text}`: an artifact holds integers only")


# --- writing


def to_json(artifact: Artifact) -> dict[str, Any]:
    """Return *artifact* as JSON-shaped data."""
    return {
        "schema": SCHEMA,
        **{
            name: getattr(artifact, name)
            for name in ("target", "control", "title", "verification", "tool", "filters")
        },
        "lanes": list(artifact.lanes),
        "rules": [_rule(rule) for rule in artifact.rules],
        "fidelity": [_plain(row) for row in artifact.fidelity],
        "differences": [_plain(one) for one in artifact.differences],
        "tables": _tables(artifact.tables),
        "symbols": [_plain(symbol) for symbol in artifact.symbols],
        "program": _program(artifact.program) if artifact.program else None,
        "hosts": {name: list(found) for name, found in artifact.hosts.items()},
        "digests": dict(artifact.digests),
    }


def _plain(value: Value) -> dict[str, Any]:
    held = {}
    for name in value.__fields__:
        member = getattr(value, name)
        held[name] = _listed(member) if type(member) is tuple else member
    return held


def _listed(value: object) -> object:
    return [_listed(member) for member in value] if isinstance(value, tuple) else value


def _rule(rule: Rule) -> dict[str, Any]:
    held = _plain(rule)
    held["origin"] = _plain(rule.origin) if rule.origin else None
    return held


def _tables(tables: Tables) -> dict[str, Any]:
    return {
        "entries": [_entry(entry) for entry in tables.entries],
        "ports": [
            {"starts": list(table.starts), "entries": list(table.entries)} for table in tables.ports
        ],
        "planes": {
            name: {
                "starts": [format_address(_family(name), start) for start in plane.starts],
                "cells": list(plane.cells),
            }
            for name, plane in tables.planes.items()
        },
        "special": dict(tables.special),
        "unix": [_plain(row) for row in tables.unix],
    }


def _entry(entry: Entry) -> dict[str, list[int]]:
    return {name: list(held) for name in Entry.__fields__ if (held := getattr(entry, name))}


def _family(plane: str) -> int:
    return int(plane[-1])


def _program(program: Program) -> dict[str, Any]:
    return {
        "arch": program.arch,
        "instructions": [_plain(step) for step in program.instructions],
        "causes": {name: list(rules) for name, rules in program.causes.items()},
        "trapped": [_plain(call) for call in program.trapped],
        "fixed": [_plain(reply) for reply in program.fixed],
        "refused": [_plain(call) for call in program.refused],
        "options": [_plain(option) for option in program.options],
        "cached": _listed(program.cached),
    }


# --- reading


def from_json(value: object) -> Artifact:
    """Return the artifact that JSON-shaped data stands for. Raises `ArtifactError`."""
    root = Node(value).object(("schema", *Artifact.__fields__))
    root["schema"].word((SCHEMA,))
    rules = root["rules"].each(_read_rule)
    ids = [rule.id for rule in rules]
    if ids != sorted(set(ids)):
        raise root["rules"].wrong("rules are unique by id, and in order of id")
    count = len(rules)
    tables = _read_tables(root["tables"], count)
    filters = root["filters"]
    return Artifact(
        target=root["target"].text(),
        control=root["control"].text(),
        title=root["title"].maybe_text(),
        rules=rules,
        lanes=root["lanes"].each(Node.text),
        fidelity=root["fidelity"].each(_read_fidelity),
        tables=tables,
        symbols=root["symbols"].each(lambda node: _read_symbol(node, count)),
        program=None if root["program"].value is None else _read_program(root["program"], count),
        filters=None
        if filters.value is None
        else {n: m.value for n, m in filters.members().items()},
        hosts={name: node.each(_read_address) for name, node in root["hosts"].members().items()},
        verification=root["verification"].text(),
        digests={name: _read_digest(node) for name, node in root["digests"].members().items()},
        tool=root["tool"].text(),
        differences=root["differences"].each(lambda node: _read_difference(node, count)),
    )


def _read_rule(node: Node) -> Rule:
    held = node.object(Rule.__fields__)
    return Rule(
        id=held["id"].text(),
        verb=held["verb"].word(_VERBS),
        claim=held["claim"].word(_CLAIMS),
        action=held["action"].word(_ACTIONS),
        kind=held["kind"].word(_KINDS),
        sentence=held["sentence"].text(),
        reason=held["reason"].maybe_text(),
        origin=None if held["origin"].value is None else _read_origin(held["origin"]),
    )


def _read_origin(node: Node) -> Origin:
    held = node.object(Origin.__fields__)
    return Origin(
        held["file"].text(),
        held["line"].number(_U32),
        held["column"].number(_U32),
        held["pack"].maybe_text(),
    )


def _read_fidelity(node: Node) -> Fidelity:
    held = node.object(Fidelity.__fields__)
    return Fidelity(
        held["subject"].text(),
        _read_class(held["refusing"]),
        _read_class(held["counting"]),
        held["reason"].maybe_text(),
    )


def _read_difference(node: Node, rules: int) -> Difference:
    held = node.object(Difference.__fields__)
    return Difference(
        kind=held["kind"].word(_DIFFERENCES),
        subject=held["subject"].text(),
        where=held["where"].word(_PLACES),
        rules=held["rules"].numbers(rules, "a rule"),
        policy=held["policy"].text(),
        target=held["target"].text(),
        cells=held["cells"].each(Node.text),
    )


def _read_class(node: Node) -> str | None:
    return None if node.value is None else node.word(_CLASSES)


def _read_tables(node: Node, rules: int) -> Tables:
    held = node.object(Tables.__fields__)
    entries = held["entries"].each(lambda entry: _read_entry(entry, rules))
    ports = held["ports"].each(lambda table: _read_ports(table, len(entries)))
    planes = {
        name: _read_plane(plane, _family(name), len(ports))
        for name, plane in held["planes"].object(PLANES).items()
    }
    special = {
        name: entry.number(len(entries), "an entry")
        for name, entry in held["special"].object(_SPECIAL).items()
    }
    unix = held["unix"].each(lambda row: _read_unix(row, len(entries)))
    return Tables(entries, ports, planes, special, unix)


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


def _read_address(node: Node) -> str:
    text = node.text()
    if parse_address(text) is None:
        raise node.wrong(f"`{text}` is no address")
    return text


def _read_unix(node: Node, entries: int) -> UnixRow:
    held = node.object(UnixRow.__fields__)
    return UnixRow(
        held["path"].text(),
        held["outside"].number(entries, "an entry"),
        held["inside"].number(entries, "an entry"),
    )


def _read_symbol(node: Node, rules: int) -> Symbol:
    held = node.object(Symbol.__fields__)
    return Symbol(
        rule=held["rule"].number(rules, "a rule"),
        role=held["role"].word(("target", "except")),
        kind=held["kind"].word(("name", "wildcard", "variable")),
        value=held["value"].text(),
        protocols=held["protocols"].each(lambda word: word.word(("tcp", "udp"))),
        ports=held["ports"].each(_read_range),
    )


def _read_range(node: Node) -> tuple[int, int]:
    ends = node.numbers(_PORTS, "a port")
    if len(ends) != 2 or ends[0] > ends[1]:
        raise node.wrong("two ports in order are expected")
    return ends[0], ends[1]


def _read_program(node: Node, rules: int) -> Program:
    held = node.object(Program.__fields__)
    causes = {
        name: cause.numbers(rules, "a rule") for name, cause in held["causes"].members().items()
    }
    return Program(
        arch=held["arch"].text(),
        instructions=held["instructions"].each(lambda step: _read_instruction(step, causes)),
        trapped=held["trapped"].each(lambda call: TrappedCall(*_read_call(call, TrappedCall))),
        fixed=held["fixed"].each(_read_fixed),
        refused=held["refused"].each(lambda call: RefusedCall(*_read_call(call, RefusedCall))),
        options=held["options"].each(_read_option),
        cached=held["cached"].each(_read_range),
        causes=causes,
    )


def _read_instruction(node: Node, causes: Mapping[str, tuple[int, ...]]) -> Instruction:
    held = node.object(Instruction.__fields__)
    return Instruction(
        held["code"].number(1 << 16),
        held["jt"].number(256),
        held["jf"].number(256),
        held["k"].number(_U32),
        held["words"].text(),
        held["causes"].each(lambda cause: cause.word(causes)),
    )


def _read_call(node: Node, kind: type[TrappedCall | RefusedCall]) -> list[Any]:
    held = node.object(kind.__fields__)
    number = held["number"].number(_U32)
    return [number, *(held[name].text() for name in kind.__fields__[1:])]


def _read_option(node: Node) -> RefusedOption:
    held = node.object(RefusedOption.__fields__)
    return RefusedOption(
        held["number"].number(_U32),
        held["level"].number(_U32),
        held["option"].number(_U32),
        held["name"].text(),
        held["errno"].text(),
    )


def _read_fixed(node: Node) -> FixedReply:
    held = node.object(FixedReply.__fields__)
    number = held["number"]
    return FixedReply(
        held["event"].word(("foreign-abi", "socket", "socketpair")),
        None if number.value is None else number.number(_U32),
        None if held["errno"].value is None else held["errno"].text(),
        held["special"].word(_SPECIAL),
    )


def _read_digest(node: Node) -> str:
    text = node.text()
    if not text.startswith("sha256:") or len(text) != 7 + 64:
        raise node.wrong("`sha256:` and 64 hexadecimal digits are expected")
    return text
