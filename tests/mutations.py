"""Every small mutation of an artifact's JSON: of each instruction, each entry of a table, each filter."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from flowproof.addresses import LAST, format_address, parse_address

JSON = dict[str, Any]
Mutant = tuple[str, JSON]  # the kind of the mutation, the artifact

# Every code that the kernel takes in a seccomp filter (kernel/seccomp.c, seccomp_check_filter)
CODES = (
    *(0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0C, 0x14, 0x15, 0x16, 0x1C, 0x1D, 0x20),
    *(0x24, 0x25, 0x2C, 0x2D, 0x34, 0x35, 0x3C, 0x3D, 0x44, 0x45, 0x4C, 0x4D, 0x54, 0x5C, 0x60),
    *(0x61, 0x64, 0x6C, 0x74, 0x7C, 0x80, 0x81, 0x84, 0x87, 0xA4, 0xAC),
)


def program_mutants(program: JSON) -> Iterator[Mutant]:
    """Yield *program* (JSON) with one instruction changed or dropped."""
    steps = program["instructions"]
    for at, step in enumerate(steps):
        for kind, changes in _changed(step):
            changed = list(steps)
            changed[at] = {**step, **changes}
            yield kind, {**program, "instructions": changed}
        yield "instruction dropped", {**program, "instructions": steps[:at] + steps[at + 1 :]}


def _changed(step: JSON) -> Iterator[tuple[str, JSON]]:
    k, jt, jf = step["k"], step["jt"], step["jf"]
    for moved in (k + 1, k - 1):
        if 0 <= moved < 1 << 32:
            yield "constant by one", {"k": moved}
    for bit in range(32):
        if abs((k ^ 1 << bit) - k) != 1:  # those are the constant by one
            yield "bit flipped", {"k": k ^ 1 << bit}
    if jt != jf:
        yield "jumps swapped", {"jt": jf, "jf": jt}
    for name, jump in (("jt", jt), ("jf", jf)):
        for moved in (jump + 1, jump - 1):
            if 0 <= moved < 256 and step["code"] & 7 == 5:
                yield "jump by one", {name: moved}
    for code in CODES:
        if code != step["code"]:
            yield "opcode changed", {"code": code}


def table_mutants(artifact: JSON) -> Iterator[Mutant]:
    """Yield *artifact* (JSON) with one thing of its tables, symbols or rules changed."""
    tables = artifact["tables"]
    rules = len(artifact["rules"])

    def with_tables(name: str, value: object) -> JSON:
        return {**artifact, "tables": {**tables, name: value}}

    def with_item(name: str, at: int, item: object) -> JSON:
        return with_tables(name, [*tables[name][:at], item, *tables[name][at + 1 :]])

    for at, entry in enumerate(tables["entries"]):
        for kind, changed in _entry(entry, rules):
            yield kind, with_item("entries", at, changed)
    for at, table in enumerate(tables["ports"]):
        for kind, changed in _line(table, "entries", len(tables["entries"])):
            yield f"port table: {kind}", with_item("ports", at, changed)
    for name, plane in tables["planes"].items():
        numbers = {**plane, "starts": [parse_address(text)[1] for text in plane["starts"]]}  # type: ignore[index]  # addresses of an artifact
        family = int(name[-1])
        for kind, changed in _line(numbers, "cells", len(tables["ports"])):
            if all(0 <= start <= LAST[family] for start in changed["starts"]):
                starts = [format_address(family, start) for start in changed["starts"]]
                held = {**tables["planes"], name: {**changed, "starts": starts}}
                yield f"plane: {kind}", with_tables("planes", held)
    for name, at in tables["special"].items():
        for other in range(len(tables["entries"])):
            if other != at:
                yield "special entry", with_tables("special", {**tables["special"], name: other})
    for at, row in enumerate(tables["unix"]):
        yield (
            "unix row dropped",
            with_tables("unix", tables["unix"][:at] + tables["unix"][at + 1 :]),
        )
        yield "unix path", with_item("unix", at, {**row, "path": row["path"] + "x"})
        for side in ("outside", "inside"):
            for other in range(len(tables["entries"])):
                if other != row[side]:
                    yield "unix entry", with_item("unix", at, {**row, side: other})
    rows = tables.get("files", [])
    for at, row in enumerate(rows):
        yield "file row dropped", with_tables("files", rows[:at] + rows[at + 1 :])
        for kind, changed in _file_row(row, rules):
            yield f"file row: {kind}", with_item("files", at, changed)
    for at, symbol in enumerate(artifact["symbols"]):
        others = artifact["symbols"][:at] + artifact["symbols"][at + 1 :]
        yield "symbol dropped", {**artifact, "symbols": others}
        for name, value in (
            ("rule", (symbol["rule"] + 1) % max(rules, 2)),
            ("role", "except" if symbol["role"] == "target" else "target"),
            ("value", symbol["value"] + "x"),
            ("ports", [[1, 1]]),
            ("protocols", ["tcp"] if symbol["protocols"] != ["tcp"] else ["udp"]),
        ):
            yield "symbol changed", {**artifact, "symbols": [*others, {**symbol, name: value}]}
    for at, rule in enumerate(artifact["rules"]):
        verb = "allow" if rule["verb"] != "allow" else "deny"
        listed = [*artifact["rules"][:at], {**rule, "verb": verb}, *artifact["rules"][at + 1 :]]
        yield "rule's verb", {**artifact, "rules": listed}


def _entry(entry: JSON, rules: int) -> Iterator[tuple[str, JSON]]:
    lists = ("refuse", "allow", "otherwise", "watch", "watch_otherwise", "excepted", "leave")
    for name in lists:
        held = entry.get(name, [])
        for at in range(len(held)):
            yield "entry: rule dropped", _kept({**entry, name: held[:at] + held[at + 1 :]})
        for rule in range(rules):
            if rule not in held:
                yield "entry: rule put first", {**entry, name: [rule, *held]}
                if held:
                    yield "entry: rule put last", {**entry, name: [*held, rule]}
        if len(held) > 1:
            yield "entry: order turned", {**entry, name: held[::-1]}


def _file_row(row: JSON, rules: int) -> Iterator[tuple[str, JSON]]:
    for other in range(rules):
        if other != row["rule"]:
            yield "rule changed", {**row, "rule": other}
    for operation in ("delete", "rename", "truncate", "write"):
        held = row["operations"]
        changed = (
            [one for one in held if one != operation] if operation in held else [*held, operation]
        )
        yield "operation changed", {**row, "operations": changed}
    yield "otherwise turned", {**row, "otherwise": not row["otherwise"]}
    for name in ("inside", "excepted"):
        part = row[name]
        if part is None:
            yield "exception put in", {**row, name: {"kind": "under", "paths": ["/srv/x"]}}
            continue
        if name == "excepted":
            yield "exception dropped", {**row, name: None}
        for kind in ("under", "at", "anywhere"):
            if kind != part["kind"]:
                paths = [] if kind == "anywhere" else part["paths"] or ["/srv"]
                yield "kind changed", {**row, name: {"kind": kind, "paths": paths}}
        for at, path in enumerate(part["paths"]):
            rest = (part["paths"][:at], part["paths"][at + 1 :])
            others = (
                path + "x",
                path[:-1],
                path + "/x",
                path.replace("*", ""),
                path.replace("**", "*"),
            )
            for changed in others:
                if changed != path:
                    paths = [*rest[0], changed, *rest[1]]
                    yield "path changed", {**row, name: {**part, "paths": paths}}
            if len(part["paths"]) > 1:
                yield "path dropped", {**row, name: {**part, "paths": [*rest[0], *rest[1]]}}


def _kept(entry: JSON) -> JSON:
    return {name: held for name, held in entry.items() if held}


def _line(line: JSON, values: str, count: int) -> Iterator[tuple[str, JSON]]:
    starts, held = line["starts"], line[values]
    for at in range(len(starts)):
        for moved in (starts[at] - 1, starts[at] + 1):
            yield "start by one", {**line, "starts": [*starts[:at], moved, *starts[at + 1 :]]}
        if at:
            yield (
                "interval dropped",
                {"starts": starts[:at] + starts[at + 1 :], values: held[:at] + held[at + 1 :]},
            )
        for other in range(count):
            if other != held[at]:
                yield "value changed", {**line, values: [*held[:at], other, *held[at + 1 :]]}


def filter_mutants(artifact: JSON) -> Iterator[Mutant]:
    """Yield *artifact* (JSON, for Windows) with one thing of its filter set changed."""
    filters = artifact["filters"]["filters"]

    def with_filters(changed: list[JSON]) -> JSON:
        return {**artifact, "filters": {**artifact["filters"], "filters": changed}}

    for at, one in enumerate(filters):
        rest = (filters[:at], filters[at + 1 :])
        yield "filter dropped", with_filters([*rest[0], *rest[1]])
        yield "filter twice", with_filters([*filters, one])
        for kind, added in _added(one):
            yield kind, with_filters([*filters, added])
        for kind, changed in _filter(one):
            yield kind, with_filters([*rest[0], changed, *rest[1]])
    for part, name, value in (
        ("session", "dynamic", False),
        ("sublayer", "weight", 1),
        ("sublayer", "key", "@other"),
        ("sublayer", "flags", 1),
    ):
        changed = copy.deepcopy(artifact)
        changed["filters"][part][name] = value
        yield f"{part} changed", changed


def _added(one: JSON) -> Iterator[Mutant]:
    """Yield a permit beside filter *one* that outweighs it, for what it matches under one condition more."""
    family = one["layer"][-1]
    key = {**one, "key": one["key"][::-1].replace("-5", "-4"), "action": "permit", "weight": 15}
    for field, match, kind, value in (
        (
            "IP_LOCAL_ADDRESS",
            "EQUAL",
            f"V{family}_ADDR_MASK",
            "0.0.0.0/0" if family == "4" else "::/0",
        ),
        ("IP_LOCAL_PORT", "RANGE", "RANGE", [1, 65535]),
        ("IP_REMOTE_PORT", "RANGE", "RANGE", [1, 65535]),
        ("IP_PROTOCOL", "EQUAL", "UINT8", 47),
        ("FLAGS", "FLAGS_ANY_SET", "UINT32", 1),
    ):
        condition = {"field": field, "match": match, "type": kind, "value": value}
        user = one["conditions"][0]
        yield "permit added", {**key, "rules": [], "conditions": [user, condition]}


def _filter(one: JSON) -> Iterator[tuple[str, JSON]]:
    yield "action turned", {**one, "action": "block" if one["action"] == "permit" else "permit"}
    for moved in (one["weight"] - 1, one["weight"] + 1):
        yield "weight by one", {**one, "weight": moved}
    family = one["layer"][-1]
    yield "layer's family", {**one, "layer": one["layer"][:-1] + ("6" if family == "4" else "4")}
    for layer in ("CONNECT", "LISTEN", "RECV_ACCEPT"):
        if (other := f"ALE_AUTH_{layer}_V{family}") != one["layer"]:
            yield "layer changed", {**one, "layer": other}
    yield "flag set", {**one, "flags": ["CLEAR_ACTION_RIGHT"]}
    yield "name emptied", {**one, "name": ""}
    conditions = one["conditions"]
    for at, condition in enumerate(conditions):
        rest = (conditions[:at], conditions[at + 1 :])
        yield "condition dropped", {**one, "conditions": [*rest[0], *rest[1]]}
        yield "condition put first", {**one, "conditions": [condition, *rest[0], *rest[1]]}
        for name, other in (("match", "NOT_EQUAL"), ("type", "UINT32"), ("field", "FLAGS")):
            if condition[name] != other:
                listed = [*rest[0], {**condition, name: other}, *rest[1]]
                yield f"{name} changed", {**one, "conditions": listed}
        for value in _values(condition):
            changed = {**condition, "value": value}
            yield "value changed", {**one, "conditions": [*rest[0], changed, *rest[1]]}
    for at in range(len(one["rules"])):
        yield "rule dropped", {**one, "rules": one["rules"][:at] + one["rules"][at + 1 :]}


def _values(condition: JSON) -> Iterator[object]:
    value = condition["value"]
    if isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, list):
        low, high = value
        yield from ([low + 1, high], [low - 1, high], [low, high + 1], [low, high - 1])
    elif condition["type"].endswith("ADDR_MASK"):
        base, _, prefix = value.partition("/")
        for other in (int(prefix) - 1, int(prefix) + 1):
            yield f"{base}/{other}"
        family, address = parse_address(base)  # type: ignore[misc]  # an address of an artifact
        width = 32 if family == 4 else 128
        flipped = address ^ (1 << (width - max(int(prefix), 1)))
        yield f"{format_address(family, flipped)}/{prefix}"
    elif isinstance(value, str):
        yield value + "x"
