"""Flows of the tool that this language comes from, and the entries of its `allow_egress`."""

from __future__ import annotations

from host_lists import host_entry, network_entry
from public_lists import VARIABLE, Beyond, Destination, Part, Row, Translation

__all__ = ["flow", "grammar"]


def flow(entries: list[Row]) -> Row:
    """A flow of the tool that this language comes from; its steps stay as they are."""
    flow: Row = {"name": "list", "steps": []}
    for row in entries:
        if "step" in row:
            name, _, value = row["step"].partition(": ")
            plain = row["step"] if name == "assert" else name
            step: object = plain
            if name == "prompt":
                step = {"prompt": "go"}
            elif name != "assert" and (value or len(row) > 1):
                step = {name: value or {k: v for k, v in row.items() if k != "step"}}
            flow["steps"].append(step)
        else:
            flow |= {key: value for key, value in row.items() if value is not None}
    if "control" in flow:
        flow["control"] = {"id": flow["control"]["id"], "title": "a title"}
    return flow


def _egress(entries: list[str], **agent: object) -> Row:
    command = {"command": "true"} if not agent else {}
    return {"name": "list", "agent": {**command, **agent, "allow_egress": entries}}


def grammar(entries: list[Row]) -> Translation:
    """The entries of `allow_egress`, those that are mistakes included."""
    parts: list[Part] = []
    good = [row["ok"] for row in entries if "ok" in row]
    anywhere = {entry for entry in good if ":" not in entry}
    for row in entries:
        if "ok" in row:
            parts.append(_entry(row["ok"], anywhere))
            continue
        text = row["error"]
        if "url:" in text:
            wrong = _egress(["api.example.com"], url="https://agent.example")
        else:
            entry = text.removeprefix("duplicate ")
            wrong = _egress([entry] * (1 + text.startswith("duplicate")))
        parts.append(Beyond(text, wrong))
    return Translation(_egress(good), ".flow.yaml", tuple(parts))


def _entry(entry: str, anywhere: set[str]) -> Destination:
    host, _, port = entry.partition(":")
    if "/" in host:
        found = network_entry(host, (), "", [(int(port), int(port))])
        return Destination(entry, (), found.through, found.refused)
    name = VARIABLE[1] if host.startswith("${") else host
    taken: list[int | None] = [None] if host in anywhere else [int(port)]
    found = host_entry(name, int(port) if port else None, taken)
    return Destination(entry, (), found.through, found.refused)
