"""Public destination lists → documents of the language, each entry with the events that show it.

Every entry of a list becomes exactly one of: a `Destination` (its sentences, what it must let through and
what it must not), a `Beyond` (a document of its own that the tool must refuse), or a `Silent` (nothing to
say). Names are bound to documentation addresses by `hosts_of`.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from flowproof.values import Value

__all__ = [
    "LISTS",
    "OTHER_ADDRESS",
    "TABLE",
    "VARIABLE",
    "Beyond",
    "Destination",
    "Silent",
    "Translation",
    "bound_event",
    "hosts_of",
    "read_list",
    "read_table",
    "translate",
]

HERE = Path(__file__).parent
LISTS = sorted(path.stem for path in (HERE / "lists").glob("*.json"))
TABLE = HERE / "expressed.toml"

OTHER_NAME, OTHER_ADDRESS = "beside.flow.example", "203.0.113.250"
"""A name in no list, and the address that it stands for in events: nothing is bound to it."""
FAR = "198.51.100.200"  # RFC 5737, and in no list
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


class Translation(Value):
    """A list as a *document* (a pack, or a flow where *suffix* says so) and what became of each entry."""

    document: Row
    suffix: str
    parts: tuple[Destination | Beyond | Silent, ...]

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
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def translate(given: Row) -> Translation:
    """Return what *given* says in the language."""
    kind = str(given["kind"])
    if kind == "flowproof-flow":
        return Translation(_flow(given["entries"]), ".flow.yaml", ())
    if kind == "flowproof-grammar":
        return _grammar(given["entries"])
    parts = list(_reader(kind)(given["entries"]))
    parts += [
        Beyond("command", _pack([f"deny execute {words}"]))
        for words in given.get("command_rules", {}).get("deny", ())
    ]
    sentences = [s for part in parts if isinstance(part, Destination) for s in part.sentences]
    if kind.startswith(("ci-", "k8s-")):
        sentences.append("deny connect to anything else")
    return Translation(_pack(sentences), ".policy.yaml", tuple(parts))


def _reader(kind: str) -> Callable[[list[Row]], Iterator[Destination | Beyond | Silent]]:
    if kind.startswith("ci-"):
        return _hosts
    return {
        "k8s-egress": _networks,
        "agent-sandbox-settings": _settings,
        "firejail-netfilter": _netfilter,
        "firejail-profile": _directives,
    }.get(kind, _system_calls)


def _pack(sentences: Iterable[str]) -> Row:
    return {
        "policy": "list",
        "rules": {f"e{number:02}": text for number, text in enumerate(sentences, 1)},
    }


def _hosts(entries: list[Row]) -> Iterator[Destination]:
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
        yield _host(host, port, ports[host])


def _host(host: str, port: int | None, all_ports: Iterable[int | None]) -> Destination:
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


def _networks(entries: list[Row]) -> Iterator[Destination]:
    """Networks and ports, as cluster network policies write them."""
    for entry in entries:
        to = entry.get("to", {})
        groups = _port_groups(entry.get("ports", ()))
        if "labels" in to:
            yield from _labels(entry, groups)
            continue
        names = [*to.get("fqdn", ()), *to.get("fqdn_pattern", ())]
        targets = names or [to.get("cidr", "anything")]
        parts = [_network(t, to.get("except", ()), *group) for t in targets for group in groups]
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


def _network(
    target: str, excepted: Iterable[str], protocol: str, ranges: list[tuple[Any, Any]]
) -> Destination:
    excepts = f" except {', '.join(excepted)}" if excepted else ""
    sentence = f"allow connect {protocol}to {target}{_ports(ranges)}{excepts}"
    by_name = target != "anything" and any(letter.isalpha() for letter in target)
    if by_name or any(isinstance(low, str) for low, _ in ranges):
        return Destination(target, (sentence,), (), ())  # nothing that an event could name
    word = protocol.strip() or "tcp"
    port = ranges[0][0] if ranges else 443
    inside, outside = _ends(target)
    through = [f"connect {word} {inside}:{port}"]
    through += [f"connect {word} {inside}:{high}" for _, high in ranges]
    refused = [f"connect {word} {outside}:{port}"] if outside else []
    refused += [f"connect {word} {_ends(each)[0]}:{port}" for each in excepted]
    taken = {number for low, high in ranges for number in range(low, high + 1)}
    if ranges and max(taken) < 65535:
        refused.append(f"connect {word} {inside}:{max(taken) + 1}")
    if protocol:
        other = "udp" if word == "tcp" else "tcp"
        refused.append(f"connect {other} {inside}:{port}")
    return Destination(target, (sentence,), tuple(through), tuple(refused))


def _ends(target: str) -> tuple[str, str]:
    """Return an address inside *target* and the one right behind it, empty where there is none."""
    if target == "anything":
        return FAR, ""
    network = ipaddress.ip_network(target)
    last = int(network.broadcast_address)
    inside = FAR if network.prefixlen == 0 else str(network.broadcast_address)
    return inside, "[2001:db8::1]" if network.prefixlen == 0 else str(
        ipaddress.ip_address(last + 1)
    )


def _settings(entries: list[Row]) -> Iterator[Destination | Beyond | Silent]:
    """The settings of sandboxes for coding agents: an operation and a value each."""
    domains = [row["value"] for row in entries if row["op"] == "allowedDomains"]
    for row in entries:
        op, value = row["op"], row["value"]
        if op.startswith("fs."):
            verb = "allow" if "allow" in op else "deny"
            operation = "read" if op.endswith("Read") else "write"
            if value is None:
                yield Silent(op)
            else:
                where = f"at {value}" if "*" in value else f"under {value}"
                yield Beyond(op, _pack([f"{verb} {operation} {where}"]))
        elif op == "allowedDomains" and value is None:
            out = f"connect tcp {OTHER_NAME}:443"
            yield Destination(
                op,
                ("deny connect to anything else",),
                ("connect tcp 127.0.0.1:8080",),
                (out, f"connect udp {FAR}:53"),
            )
        elif value is None:
            yield Silent(op)
        else:
            yield _setting(op, value)
    if any(domains):
        yield Destination("else", ("deny connect to anything else",), (), ())


def _setting(op: str, value: str | bool) -> Destination:
    if isinstance(value, bool):
        return _switch(op, on=value)
    match op:
        case "allowedDomains" if value in ("localhost", "127.0.0.1"):
            through = (f"connect tcp {value}:443",)
            return Destination(value, (f"allow connect to {value}",), through, ())
        case "allowedDomains":
            return _host(value, None, [None])
        case "deniedDomains":
            refused = (f"connect tcp {value.removeprefix('*.')}:443",)
            return Destination(value, (f"deny connect to {value}",), (), refused)
        case "allowUnixSockets":
            through = (f"connect unix:{value}",)
            return Destination(value, (f"allow connect to unix:{value}",), through, ())
        case _:
            raise ValueError(f"no such setting: {op}")


def _switch(op: str, *, on: bool) -> Destination:
    if op == "allowAllUnixSockets":
        return Destination(op, ("allow connect to unix:*",), (), ())
    local, off = "listen tcp 127.0.0.1:8080", f"listen tcp {FAR}:8080"
    if on:
        return Destination(op, ("allow listen on loopback",), (local,), (off,))
    beside = ("connect tcp 127.0.0.1:8080",)
    return Destination(op, ("deny listen on loopback",), beside, (local, off))


def _netfilter(entries: list[Row]) -> Iterator[Destination | Beyond | Silent]:
    """The rules of a packet filter, first match first: what is dropped behind an accepted port spares it."""
    spared: list[str] = []
    drops = any(row["rule"].startswith(":OUTPUT DROP") for row in entries)
    for row in entries:
        rule = row["rule"]
        words = rule.split()
        after = dict(itertools.pairwise(words))
        if rule.startswith(":INPUT DROP"):
            off = (f"listen tcp {FAR}:8080",)
            here = ("listen tcp 127.0.0.1:8080",)
            yield Destination(rule, ("deny listen on anything else",), here, off)
        elif rule.startswith(":OUTPUT DROP"):
            both = (f"connect tcp {FAR}:443", f"connect udp {FAR}:54")
            here = ("connect tcp 127.0.0.1:8080",)
            yield Destination(rule, ("deny connect to anything else",), here, both)
        elif "-p icmp" in rule:
            verb = "listen" if words[1] == "INPUT" else "connect"
            yield Beyond(rule, _pack([f"allow {verb} icmp to anything"]))
        elif words[0] != "-A" or "-i" in words or _reply(words, after):
            yield Silent(rule)
        elif words[1] == "INPUT":
            port = after["--dport"]
            sentence = f"allow listen on anything:{port}"
            beside = f"listen tcp 0.0.0.0:{int(port) + 1}"
            yield Destination(rule, (sentence,), (f"listen tcp 0.0.0.0:{port}",), (beside,))
        elif after["-j"] == "ACCEPT":
            protocol, port = after["-p"], after["--dport"]
            spared.append(port)
            beyond = (
                f"10.1.2.3:{int(port) + 1}"  # dropped by a later rule where all else is accepted
            )
            sentences = (f"allow connect {protocol} to anything:{port}",) if drops else ()
            through = (f"connect {protocol} 10.1.2.3:{port}",)
            yield Destination(rule, sentences, through, (f"connect {protocol} {beyond}",))
        else:
            yield _drop(rule, after["-d"], spared)


def _reply(words: list[str], after: dict[str, str]) -> bool:
    """Tell whether a rule is about what comes back on a connection that was judged when it was made."""
    return "--sport" in words or after.get("--state") == "RELATED,ESTABLISHED"


def _drop(rule: str, network: str, spared: list[str]) -> Destination:
    excepts = ", ".join(f"{network}:{port}" for port in spared)
    sentences = (
        f"deny connect tcp to {network}",
        f"deny connect udp to {network}" + (f" except {excepts}" if excepts else ""),
    )
    inside, outside = _ends(network)
    refused = [f"connect tcp {inside}:443", f"connect udp {inside}:443"]
    refused += [f"connect tcp {inside}:{port}" for port in spared]
    through = [f"connect tcp {outside}:443"]
    through += [f"connect udp {inside}:{port}" for port in spared]
    return Destination(rule, sentences, tuple(through), tuple(refused))


def _directives(entries: list[Row]) -> Iterator[Destination]:
    for row in entries:
        yield Destination(row["directive"], (f"allow {row['directive']}",), (), ())


def _system_calls(entries: list[Row]) -> Iterator[Destination]:
    """Filters of system calls, whatever their form: each entry as it stands behind the word `syscall`."""
    for row in entries:
        text = " ".join(str(value) for value in row.values() if value is not None)
        yield Destination(json.dumps(row), (f"allow syscall {text}",), (), ())


def _flow(entries: list[Row]) -> Row:
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


def _grammar(entries: list[Row]) -> Translation:
    """The entries of `allow_egress`, those that are mistakes included."""
    parts: list[Destination | Beyond | Silent] = []
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
        found = _network(host, (), "", [(int(port), int(port))])
        return Destination(entry, (), found.through, found.refused)
    name = VARIABLE[1] if host.startswith("${") else host
    taken: list[int | None] = [None] if host in anywhere else [int(port)]
    found = _host(name, int(port) if port else None, taken)
    return Destination(entry, (), found.through, found.refused)


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
