"""Artifacts ↔ canonical JSON. ``schema/artifact.schema.json`` describes the form.

What a schema cannot say is checked here as well: indices that lead somewhere, intervals in order.
"""

from __future__ import annotations

import json

from flowproof.addresses import format_address
from flowproof.artifact.files import file_rows_to_json
from flowproof.artifact.model import (
    PLANES,
    Artifact,
    Difference,
    Entry,
    Fidelity,
    Origin,
    Program,
    Rule,
    Tables,
)
from flowproof.artifact.program_read import read_program
from flowproof.artifact.reading import ArtifactError, Node
from flowproof.artifact.tables_read import family_of, read_address, read_symbol, read_tables
from flowproof.canonical import canonical
from flowproof.canonical import digest as digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        if "\\ud" in text or "\\uD" in text:  # half of a character: no UTF-8, and so no artifact
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ArtifactError:
        raise
    except UnicodeEncodeError as error:
        raise ArtifactError("", "half of a character is no text") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ArtifactError("", f"no JSON at {place}") from error
    except UnicodeDecodeError as error:
        raise ArtifactError("", "no JSON: not UTF-8") from error
    except RecursionError as error:
        raise ArtifactError("", "no JSON that an artifact holds: it nests too deep") from error
    except ValueError as error:  # a number of 5,000 digits
        raise ArtifactError("", f"no JSON: {error}") from error
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
                "starts": [format_address(family_of(name), start) for start in plane.starts],
                "cells": list(plane.cells),
            }
            for name, plane in tables.planes.items()
        },
        "special": dict(tables.special),
        "unix": [_plain(row) for row in tables.unix],
        **({"files": file_rows_to_json(tables.files)} if tables.files else {}),
    }


def _entry(entry: Entry) -> dict[str, list[int]]:
    return {name: list(held) for name in Entry.__fields__ if (held := getattr(entry, name))}


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
    tables = read_tables(root["tables"], count)
    filters = root["filters"]
    return Artifact(
        target=root["target"].text(),
        control=root["control"].text(),
        title=root["title"].maybe_text(),
        rules=rules,
        lanes=root["lanes"].each(Node.text),
        fidelity=root["fidelity"].each(_read_fidelity),
        tables=tables,
        symbols=root["symbols"].each(lambda node: read_symbol(node, count)),
        program=None if root["program"].value is None else read_program(root["program"], count),
        filters=None
        if filters.value is None
        else {n: m.value for n, m in filters.members().items()},
        hosts={name: node.each(read_address) for name, node in root["hosts"].members().items()},
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
    if not held["cells"].items():
        raise held["cells"].wrong("a difference is somewhere")
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


def _read_digest(node: Node) -> str:
    text = node.text()
    if not text.startswith("sha256:") or len(text) != 7 + 64:
        raise node.wrong("`sha256:` and 64 hexadecimal digits are expected")
    return text
