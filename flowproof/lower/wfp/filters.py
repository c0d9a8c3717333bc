"""A policy → the filter set of Windows: symbolic, in order, with a key that follows from each filter.

One private sublayer in a dynamic session. Explicit denies weigh 15, permits 8, blocks 0: refusals win, and
no two filters of one weight can disagree.
"""

from __future__ import annotations

import hashlib

from flowproof.canonical import canonical
from flowproof.ir import ports as port_sets
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT, LAST_PORT
from flowproof.ir.regions import Region, union_all
from flowproof.lower.wfp import conditions as c
from flowproof.lower.wfp.families import FAMILIES, SEEN_LOOPBACK, SEEN_OFF_LOOPBACK, seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flowproof.artifact.model import Tables
    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.ports import PortSet
    from flowproof.lower.wfp.conditions import Condition

    Filter = dict[str, object]

__all__ = ["BLOCK", "DENY", "PERMIT", "filter_set", "listen_ports", "refused_listens", "unexcepted"]

DENY = 15
PERMIT = 8
BLOCK = 0

_SUBLAYER_WEIGHT = 0xFFFF  # asked first: a block is final then, whatever other products permit
_NAMESPACE = bytes.fromhex("5b1f2a8c6d0e5c3f9a747e1d20c4b6f8")  # of filter keys, ours
_BOTH = ("tcp", "udp")
_IMPLIED = "loopback"


def filter_set(policy: Policy, tables: Tables) -> dict[str, object]:
    """Return the filter set of *policy*, whose decision tables are *tables*; no filter: no session."""
    found = [*_connect(policy, tables), *_listen(policy), *_accept(policy, tables)]
    return {
        "session": {"dynamic": True, "name": f"flowproof {policy.control}"},
        "sublayer": {"key": "@run", "weight": _SUBLAYER_WEIGHT},
        "filters": found,
    }


def _filter(
    layer: str,
    action: str,
    weight: int,
    rules: Iterable[str],
    name: str,
    conditions: Iterable[Condition],
) -> Filter:
    made: Filter = {
        "name": name,
        "rules": list(rules),
        "layer": layer,
        "action": action,
        "weight": weight,
        "conditions": [c.USER, *conditions],
    }
    return {"key": _key(made), **made}


def _key(made: Filter) -> str:
    """Return a version 5 UUID (RFC 9562) over the filter's canonical text."""
    raw = bytearray(hashlib.sha1(_NAMESPACE + canonical(made), usedforsecurity=False).digest()[:16])
    raw[6] = raw[6] & 0x0F | 0x50
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


# --- connect


def _connect(policy: Policy, tables: Tables) -> Iterator[Filter]:
    rules = [rule for rule in policy.rules if rule.action == "connect" and rule.meaning is None]
    blocks = [
        made
        for rule in rules
        if rule.refuses
        for family in FAMILIES
        for made in _catch_all(rule, family)
    ]
    for rule in rules:
        if rule.refuses or rule.verb == "allow":
            weight, action = (DENY, "block") if rule.refuses else (PERMIT, "permit")
            for family in FAMILIES:
                yield from _named(rule, family, action, weight)
    if blocks:
        for family in FAMILIES:
            yield _filter(
                f"ALE_AUTH_CONNECT_V{family}",
                "permit",
                PERMIT,
                (),
                _IMPLIED,
                (
                    *c.protocols(_BOTH),
                    *c.addresses(
                        "IP_REMOTE_ADDRESS", family, c.networks(family, SEEN_LOOPBACK[family])
                    ),
                ),
            )
    yield from blocks
    if policy.connect_denies:
        entry = tables.entries[tables.special["families"]]
        refusing = (*entry.refuse, *entry.otherwise)[:1]
        for family in FAMILIES:
            yield _filter(
                f"ALE_AUTH_CONNECT_V{family}",
                "block",
                BLOCK,
                [policy.rules[at].id for at in refusing],
                "other protocols",
                c.other_protocols(),
            )


def _named(rule: Rule, family: int, action: str, weight: int) -> Iterator[Filter]:
    layer = f"ALE_AUTH_CONNECT_V{family}"
    for protocols, ports, intervals in _grouped(rule.named, family):
        for networks in c.chunks(c.networks(family, intervals)):
            yield _filter(
                layer,
                action,
                weight,
                (rule.id,),
                rule.id,
                (
                    *c.protocols(protocols),
                    *c.addresses("IP_REMOTE_ADDRESS", family, networks),
                    *c.ports("IP_REMOTE_PORT", ports),
                ),
            )
    for symbol in rule.targets.symbols:
        if symbol.kind != "wildcard":
            yield _filter(
                layer,
                action,
                weight,
                (rule.id,),
                rule.id,
                (
                    *c.protocols(symbol.protocols),
                    c.symbol("IP_REMOTE_ADDRESS", symbol.kind, symbol.value),
                    *c.ports("IP_REMOTE_PORT", symbol.ports),
                ),
            )


def _catch_all(rule: Rule, family: int) -> Iterator[Filter]:
    """Yield the blocks of ``anything else``: what an allow takes out of it has a permit that outweighs
    them. Where it is every address off loopback, no address is asked for: loopback has its permit.
    """
    layer = f"ALE_AUTH_CONNECT_V{family}"
    for protocols, ports, intervals in _grouped(rule.otherwise, family):
        everywhere = intervals == SEEN_OFF_LOOPBACK[family]
        parts = [[]] if everywhere else list(c.chunks(c.networks(family, intervals)))
        for networks in parts:
            yield _filter(
                layer,
                "block",
                BLOCK,
                (rule.id,),
                rule.id,
                (
                    *c.protocols(protocols),
                    *c.addresses("IP_REMOTE_ADDRESS", family, networks),
                    *c.ports("IP_REMOTE_PORT", ports),
                ),
            )


def _grouped(
    region: Region, family: int
) -> Iterator[tuple[tuple[str, ...], PortSet, list[tuple[int, int]]]]:
    """Yield (protocols, ports, intervals) that a layer sees of *region*: intervals are merged only
    where they have one port set, or the filter would be a cross product; protocols where all is alike.
    """
    groups: dict[PortSet, dict[str, list[tuple[int, int]]]] = {}
    for protocol in _BOTH:
        for first, last, ports in seen(region, protocol, family):
            groups.setdefault(ports, {}).setdefault(protocol, []).append((first, last))
    for ports in sorted(groups):
        held = groups[ports]
        if held.get("tcp") == held.get("udp"):
            yield _BOTH, ports, held["tcp"]
            continue
        for protocol in _BOTH:
            if protocol in held:
                yield (protocol,), ports, held[protocol]


# --- listen


def listen_ports(region: Region) -> PortSet | None:
    """Return the ports of a set of listens that is every address off loopback at each of them, or None
    where it is not: then it is a set by address.
    """
    ports = port_sets.union(
        *(held for family in FAMILIES for _, _, held in region.boxes("tcp", family))
    )
    return ports if region == Region.of(OFF_LOOPBACK, ("tcp",), ports) else None


def unexcepted(policy: Policy) -> Region:
    """Return where the implied refusal of a listen stands: off loopback, where no refusal excepts it."""
    excepted = union_all(
        rule.exceptions.region for rule in policy.rules if rule.action == "listen" and rule.refuses
    )
    return Region.of(OFF_LOOPBACK, ("tcp",)) - excepted


def refused_listens(policy: Policy) -> PortSet:
    """Return the ports at which the implied refusal of a listen stands anywhere off loopback."""
    region = unexcepted(policy)
    return port_sets.union(
        *(held for family in FAMILIES for _, _, held in region.boxes("tcp", family))
    )


def _listen(policy: Policy) -> Iterator[Filter]:
    """Yield the filters of `listen` rules by port. A rule by address is not carried (`fidelity`)."""
    blocks: list[Filter] = []
    for rule in policy.rules:
        if rule.meaning == "listen":
            ports = refused_listens(policy)
            if ports:  # a filter that names no port is about every one
                blocks += _listen_each("block", BLOCK, rule.id, ports)
        if rule.action != "listen" or rule.meaning is not None:
            continue
        named, otherwise = listen_ports(rule.named), listen_ports(rule.otherwise)
        if rule.verb == "allow" and named:
            yield from _listen_each("permit", PERMIT, rule.id, named)
        if rule.refuses and named:
            yield from _listen_denied(rule.id, named)
        if rule.refuses and otherwise:
            blocks += _listen_each("block", BLOCK, rule.id, otherwise)
    if blocks:
        for family in FAMILIES:
            loopback = c.networks(family, SEEN_LOOPBACK[family])
            yield _filter(
                f"ALE_AUTH_LISTEN_V{family}",
                "permit",
                PERMIT,
                (),
                _IMPLIED,
                c.addresses("IP_LOCAL_ADDRESS", family, loopback),
            )
    yield from blocks


def _listen_each(action: str, weight: int, rule: str, ports: PortSet) -> Iterator[Filter]:
    for family in FAMILIES:
        yield _filter(
            f"ALE_AUTH_LISTEN_V{family}",
            action,
            weight,
            (rule,),
            rule,
            c.ports("IP_LOCAL_PORT", ports),
        )


def _listen_denied(rule: str, ports: PortSet) -> Iterator[Filter]:
    """Yield the denies of a named refusal, which no permit outweighs: they leave loopback out themselves.

    A listen on every address is one at address 0, or one without an address: *ALE Layers* says the latter
    of a bind, and no page says it of a listen. Nor does one say that the flag of such a bind is set there.
    """
    for family in FAMILIES:
        layer = f"ALE_AUTH_LISTEN_V{family}"
        wanted = c.ports("IP_LOCAL_PORT", ports)
        for networks in c.chunks(c.networks(family, SEEN_OFF_LOOPBACK[family])):
            local = c.addresses("IP_LOCAL_ADDRESS", family, networks)
            yield _filter(layer, "block", DENY, (rule,), rule, (*local, *wanted))
        unaddressed = (c.unknown("IP_LOCAL_ADDRESS"), *wanted)
        yield _filter(layer, "block", DENY, (rule,), f"{rule}, no address", unaddressed)


# --- receive and accept


def _accept(policy: Policy, tables: Tables) -> Iterator[Filter]:
    """Yield the inbound side: what may not be listened on is not accepted either, and where a `connect`
    rule denies, no datagram of a stranger either: the platform lets replies to one out without asking.
    """
    refused, by = _refused_everywhere(policy, tables)
    if not refused and not policy.connect_denies:
        return
    for family in FAMILIES:
        layer = f"ALE_AUTH_RECV_ACCEPT_V{family}"
        loopback = c.addresses(
            "IP_REMOTE_ADDRESS", family, c.networks(family, SEEN_LOOPBACK[family])
        )
        yield _filter(layer, "permit", PERMIT, (), _IMPLIED, loopback)
        if not policy.connect_denies:
            wanted = (*c.protocols(("tcp",)), *c.ports("IP_LOCAL_PORT", refused))
            yield _filter(layer, "block", BLOCK, by, "accept", wanted)
            continue
        accepted = port_sets.subtract(ANY_PORT, refused)
        if accepted:
            wanted = (*c.protocols(("tcp",)), *c.ports("IP_LOCAL_PORT", accepted))
            yield _filter(layer, "permit", PERMIT, (), "accept", wanted)
        yield _filter(layer, "block", BLOCK, by, "inbound", ())


def _refused_everywhere(policy: Policy, tables: Tables) -> tuple[PortSet, list[str]]:
    """Return the ports at which a listen on every address is refused, and the rules that refuse."""
    ports: list[tuple[int, int]] = []
    by: set[str] = set()
    table = tables.ports[tables.planes["listen-any6"].cells[0]]
    ends = (*table.starts[1:], LAST_PORT + 1)
    for low, end, at in zip(table.starts, ends, table.entries, strict=True):
        entry = tables.entries[at]
        refusing = entry.refuse or (() if entry.allow else entry.otherwise)
        if refusing:
            ports.append((low, end - 1))
            by.add(policy.rules[refusing[0]].id)
    return port_sets.normal(ports), sorted(by)
