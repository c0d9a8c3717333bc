"""One entry: a policy and the bytes of an artifact in; a proof or a difference out."""

from __future__ import annotations

import json

from flowproof.addresses import parse_address
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region, union_all
from flowproof.values import replace
from flowproof.verify.files import compare_files
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.reading import Malformed, read_tables
from flowproof.verify.tables import compare_tables
from flowproof.verify.telling import ONCE_BOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from flowproof.ir.model import Destinations, Policy, Rule
    from flowproof.verify.reading import Read
    from flowproof.verify.tables import Compared

__all__ = ["tables_of", "verify"]


def verify(policy: Policy, data: bytes, *, thorough: bool = False) -> Proof | Counterexample:
    """Return the proof that the artifact with the bytes *data* means *policy*, or the first difference.

    The artifact is one that `artifact.codec.loads` takes; names that it was bound to by ``hosts`` are bound
    in the policy as well. Nothing that the compiler computed is taken over. *thorough* compares more attempts
    with names and variables bound to addresses, for an artifact from elsewhere.
    """
    artifact = json.loads(data)
    if artifact["control"] != policy.control or artifact["title"] != policy.title:
        has, wants = (artifact["control"], artifact["title"]), (policy.control, policy.title)
        return _listed("control and title", has, wants)
    bound = _bound(policy, artifact["hosts"])
    target = artifact["target"]
    lanes = ["connect"] if bound.actions & {"connect", "listen"} else []
    if target.startswith("linux-") and _observes_files(policy):
        lanes.append("files")
    if artifact["lanes"] != lanes:
        return _listed("lanes", artifact["lanes"], lanes)
    ways = 0
    if target.startswith("linux-"):
        from flowproof.verify.programs import compare_program  # noqa: PLC0415  Linux targets only
        from flowproof.verify.require import ARCH, required  # noqa: PLC0415  as above

        arch = target.removeprefix("linux-")
        if arch not in ARCH or artifact["program"] is None or artifact["filters"] is not None:
            return _listed("target", target, "a Linux target with a program and no filter set")
        ways, difference = compare_program(artifact["program"], required(bound, arch))
        if difference is not None:
            return difference
    elif target != "windows" or artifact["filters"] is None or artifact["program"] is not None:
        return _listed("target", target, "windows, with a filter set and no program")
    tables = tables_of(policy, artifact, thorough=thorough)
    if isinstance(tables, Counterexample):
        return tables
    read, compared, names = tables
    if artifact["filters"] is None:
        if artifact["differences"]:
            return _listed(
                "differences", artifact["differences"], "none: the tables are what decides"
            )
        return Proof(ways, compared.cells, compared.kinds, bound=names)
    from flowproof.verify.filters import compare_filters  # noqa: PLC0415  Windows only

    filtered = compare_filters(bound, artifact, read)
    if filtered.difference is not None:
        return filtered.difference
    return Proof(ways, compared.cells, compared.kinds, filtered.cells, filtered.kinds, names)


def tables_of(
    policy: Policy, artifact: dict[str, Any], *, thorough: bool = False
) -> tuple[Read, Compared, int] | Counterexample:
    """Return the tables of *artifact* (JSON), how far they were compared, and at how many attempts with
    symbols bound; or the first difference.
    """
    listed = _rules(policy, artifact["rules"])
    if listed is not None:
        return listed
    bound = _bound(policy, artifact["hosts"])
    symbols = _symbols(bound, artifact["symbols"])
    try:
        read = read_tables(artifact["tables"], artifact["rules"])
    except Malformed as malformed:
        return Counterexample(
            "any attempt", "no decision can be read", "one for each", None, None, str(malformed)
        )
    compared = compare_tables(bound, read)
    found = compared.difference
    if found is not None and not found.event.endswith(ONCE_BOUND):
        return found
    listed = symbols or found
    # where the lists differ, an attempt says more than they do
    shown = _compare_bound(bound, artifact, read, thorough=thorough or listed is not None)
    if isinstance(shown, Counterexample):
        return shown
    if listed is not None:
        return listed
    rows = artifact["tables"].get("files", [])
    if not artifact["target"].startswith("linux-"):
        return _listed("files", rows, []) if rows else (read, compared, shown)
    events, difference = compare_files(policy, rows)
    return difference or (read, replace(compared, cells=compared.cells + events), shown)


def _observes_files(policy: Policy) -> bool:
    return any(
        rule.action == "files" and rule.verb in ("observe", "expect no") for rule in policy.rules
    )


def _compare_bound(
    policy: Policy, artifact: dict[str, Any], read: Read, *, thorough: bool
) -> int | Counterexample:
    """Return how many attempts were compared with symbols bound, or the first difference."""
    if not artifact["symbols"] and not any(
        rule.targets.symbols or rule.exceptions.symbols for rule in policy.rules
    ):
        return 0
    if any(symbol["rule"] >= len(policy.rules) for symbol in artifact["symbols"]):
        return 0  # listed as a difference, and there is no rule to put in
    from flowproof.verify.samples import compare_samples  # noqa: PLC0415  most policies write addresses

    done, difference = compare_samples(
        policy, read, artifact["symbols"], artifact["rules"], thorough=thorough
    )
    return done if difference is None else difference


def _listed(name: str, has: object, wants: object) -> Counterexample:
    return Counterexample(
        f"what the artifact lists as {name}", str(has), str(wants), None, None, name
    )


def _rules(policy: Policy, listed: list[dict[str, Any]]) -> Counterexample | None:
    """Compare the rules that indices lead to: an index is worth what it names."""
    if len(listed) != len(policy.rules):
        return _listed("rules", f"{len(listed)} rules", f"{len(policy.rules)} rules")
    names = ("id", "verb", "claim", "action", "kind", "sentence", "reason")
    for at, (has, rule) in enumerate(zip(listed, policy.rules, strict=True)):
        for name in names:
            if has[name] != getattr(rule, name):
                return Counterexample(
                    f"rule {at}, its {name}",
                    str(has[name]),
                    str(getattr(rule, name)),
                    rule.id,
                    _place(rule),
                    f"rules[{at}].{name}",
                )
    return None


def _place(rule: Rule) -> str | None:
    origin = rule.origin
    return f"{origin.file}:{origin.line}:{origin.column}" if origin else None


def _symbols(policy: Policy, listed: list[dict[str, Any]]) -> Counterexample | None:
    wanted = {
        (
            at,
            role,
            symbol.kind,
            symbol.value,
            symbol.protocols,
            () if symbol.ports == ANY_PORT else symbol.ports,
        )
        for at, rule in enumerate(policy.rules)
        for role, found in (("target", rule.targets), ("except", rule.exceptions))
        for symbol in found.symbols
    }
    has = {
        (
            one["rule"],
            one["role"],
            one["kind"],
            one["value"],
            tuple(one["protocols"]),
            tuple((low, high) for low, high in one["ports"]),
        )
        for one in listed
    }
    for one in sorted(wanted ^ has):
        rule = policy.rules[one[0]]
        return Counterexample(
            f"a connect to {one[3]} once it is bound",
            f"{'' if one in has else 'not '}bound as {one[1]} with {one[4]} ports {one[5]}",
            f"{'' if one in wanted else 'not '}bound so",
            rule.id,
            _place(rule),
            "symbols",
        )
    return None


def _bound(policy: Policy, hosts: Mapping[str, list[str]]) -> Policy:
    """Return *policy* with the names of *hosts* as the addresses that the artifact gives for them."""
    if not hosts:
        return policy
    rules = (
        replace(
            rule, targets=_named(rule.targets, hosts), exceptions=_named(rule.exceptions, hosts)
        )
        for rule in policy.rules
    )
    return replace(policy, rules=tuple(rules))


def _named(destinations: Destinations, hosts: Mapping[str, list[str]]) -> Destinations:
    regions = [destinations.region]
    left = []
    for symbol in destinations.symbols:
        if symbol.kind != "name" or symbol.value not in hosts:
            left.append(symbol)
            continue
        for text in hosts[symbol.value]:
            parsed = parse_address(text)
            if parsed is not None:
                family, value = parsed
                regions.append(Region.of(((family, value, value),), symbol.protocols, symbol.ports))
    return replace(destinations, region=union_all(regions), symbols=tuple(left))
