"""Hosts as CI egress agents list them, and networks as cluster network policies do."""

from __future__ import annotations

import ipaddress
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from public_lists import FAR, OTHER_NAME, Destination, Row

__all__ = ["ends", "host_entry", "hosts", "network_entry", "networks"]


def hosts(entries: list[Row]) -> Iterator[Destination]:
    """Hosts with or without a port, as CI egress agents take them; a repeated one says it once."""
    ports: dict[str, set[int | None]] = {}
    for entry in entries:
        ports.setdefault(entry["host"], set()).add(entry.get("port"))
    seen: set[tuple[str, int | None]] = set()
    for entry in entries:
        host, port = entry["host"], entry.get("port")
        if (host, port) in seen:
            continue
        seen.add((host, port))
        yield host_entry(host, port, ports[host])


def host_entry(host: str, port: int | None, all_ports: Iterable[int | None]) -> Destination:
    written = f'"{host}"' if host.isalnum() else host  # a single label stands in quotes
    at = written if port is None else f"{written}:{port}"
    used = port or 443
    refused = [f"connect tcp {OTHER_NAME}:{used}", f"connect udp {OTHER_NAME}:{used}"]
    taken = set(all_ports)
    if None not in taken:
        beside = next(number for number in itertools.count(used + 1) if number not in taken)
        refused.append(f"connect tcp {host}:{beside}")
    through = tuple(f"connect {protocol} {host}:{used}" for protocol in ("tcp", "udp"))
    return Destination(at, (f"allow connect to {at}",), through, tuple(refused))


def networks(entries: list[Row]) -> Iterator[Destination]:
    """Networks and ports, as cluster network policies write them."""
    for entry in entries:
        to = entry.get("to", {})
        groups = _port_groups(entry.get("ports", ()))
        if "labels" in to:
            yield from _labels(entry, groups)
            continue
        names = [*to.get("fqdn", ()), *to.get("fqdn_pattern", ())]
        targets = names or [to.get("cidr", "anything")]
        parts = [
            network_entry(t, to.get("except", ()), *group) for t in targets for group in groups
        ]
        yield Destination(
            json.dumps(entry),
            tuple(s for part in parts for s in part.sentences),
            tuple(e for part in parts for e in part.through),
            tuple(e for part in parts for e in part.refused),
        )


def _labels(entry: Row, groups: list[tuple[str, list[tuple[Any, Any]]]]) -> Iterator[Destination]:
    label = entry["to"]["labels"]
    for protocol, ranges in groups:
        asked = [f" dns {row['pattern']}" for row in entry.get("dns", ())]
        sentences = [
            f"allow connect {protocol}to @{label}{_ports(ranges)}{more}" for more in ("", *asked)
        ]
        yield Destination(json.dumps(entry), tuple(sentences[:1]), (), ())
        for sentence in sentences[1:]:
            yield Destination(json.dumps(entry), (sentence,), (), ())


def _port_groups(rows: Iterable[Row]) -> list[tuple[str, list[tuple[Any, Any]]]]:
    groups: dict[str, list[tuple[Any, Any]]] = {}
    for row in rows:
        word = "" if row["protocol"] == "ANY" else row["protocol"].lower() + " "
        groups.setdefault(word, []).append((row["port"], row.get("end_port", row["port"])))
    return list(groups.items()) or [("", [])]


def _ports(ranges: list[tuple[Any, Any]]) -> str:
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges]
    if not texts:
        return ""
    return f":{texts[0]}" if len(texts) == 1 else ":{" + ", ".join(texts) + "}"


def network_entry(
    target: str, excepted: Iterable[str], protocol: str, ranges: list[tuple[Any, Any]]
) -> Destination:
    excepts = f" except {', '.join(excepted)}" if excepted else ""
    sentence = f"allow connect {protocol}to {target}{_ports(ranges)}{excepts}"
    by_name = target != "anything" and any(letter.isalpha() for letter in target)
    if by_name or any(isinstance(low, str) for low, _ in ranges):
        return Destination(target, (sentence,), (), ())  # nothing that an event could name
    word = protocol.strip() or "tcp"
    port = ranges[0][0] if ranges else 443
    inside, outside = ends(target)
    through = [f"connect {word} {inside}:{port}"]
    through += [f"connect {word} {inside}:{high}" for _, high in ranges]
    refused = [f"connect {word} {outside}:{port}"] if outside else []
    refused += [f"connect {word} {ends(each)[0]}:{port}" for each in excepted]
    taken = {number for low, high in ranges for number in range(low, high + 1)}
    if ranges and max(taken) < 65535:
        refused.append(f"connect {word} {inside}:{max(taken) + 1}")
    if protocol:
        other = "udp" if word == "tcp" else "tcp"
        refused.append(f"connect {other} {inside}:{port}")
    return Destination(target, (sentence,), tuple(through), tuple(refused))


def ends(target: str) -> tuple[str, str]:
    """Return an address inside *target* and the one right behind it, empty where there is none."""
    if target == "anything":
        return FAR, ""
    network = ipaddress.ip_network(target)
    last = int(network.broadcast_address)
    inside = FAR if network.prefixlen == 0 else str(network.broadcast_address)
    return inside, "[2001:db8::1]" if network.prefixlen == 0 else str(
        ipaddress.ip_address(last + 1)
    )
