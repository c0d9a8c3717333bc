"""What sandboxes are told: settings of agents, packet filters, profiles, filters of system calls."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from host_lists import ends, host_entry
from public_lists import FAR, OTHER_NAME, Beyond, Destination, Part, Row, Silent, pack

__all__ = ["directives", "netfilter", "settings", "system_calls"]


def settings(entries: list[Row]) -> Iterator[Part]:
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
                yield Beyond(op, pack([f"{verb} {operation} {where}"]))
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
            return host_entry(value, None, [None])
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


def netfilter(entries: list[Row]) -> Iterator[Part]:
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
            yield Beyond(rule, pack([f"allow {verb} icmp to anything"]))
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
    inside, outside = ends(network)
    refused = [f"connect tcp {inside}:443", f"connect udp {inside}:443"]
    refused += [f"connect tcp {inside}:{port}" for port in spared]
    through = [f"connect tcp {outside}:443"]
    through += [f"connect udp {inside}:{port}" for port in spared]
    return Destination(rule, sentences, tuple(through), tuple(refused))


def directives(entries: list[Row]) -> Iterator[Destination]:
    for row in entries:
        yield Destination(row["directive"], (f"allow {row['directive']}",), (), ())


def system_calls(entries: list[Row]) -> Iterator[Destination]:
    """Filters of system calls, whatever their form: each entry as it stands behind the word `syscall`."""
    for row in entries:
        text = " ".join(str(value) for value in row.values() if value is not None)
        yield Destination(json.dumps(row), (f"allow syscall {text}",), (), ())
