"""The canonical JSON form of a policy, and the digest that names it."""

from __future__ import annotations

from flowproof import canonical
from flowproof.addresses import format_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.ir.model import Destinations, Origin, Policy, Rule, Scope, Symbol
    from flowproof.ir.places import Places
    from flowproof.ir.ports import PortSet
    from flowproof.ir.regions import Region

__all__ = ["IR_SCHEMA", "digest", "to_json"]

IR_SCHEMA = "https://flowproof.dev/schema/ir/v1"


def digest(policy: Policy) -> str:
    """Return ``sha256:…`` over what the policy means: places, sources and wording are left out."""
    document = to_json(policy)
    del document["sources"]
    rules = document["rules"]
    assert isinstance(rules, list)
    for rule in rules:
        del rule["origin"], rule["sentence"]
    return canonical.digest(canonical.canonical(document))


def to_json(policy: Policy) -> dict[str, object]:
    """Return the policy as ``schema/ir.schema.json`` describes it."""
    return {
        "schema": IR_SCHEMA,
        "control": policy.control,
        "title": policy.title,
        "description": policy.description,
        "rules": [_rule(rule) for rule in policy.rules],
        "sources": [{"file": file, "sha256": sha256} for file, sha256 in policy.sources],
    }


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "verb": rule.verb,
        "claim": rule.claim,
        "action": rule.action,
        "kind": rule.kind,
        "meaning": rule.meaning,
        "targets": _destinations(rule.targets),
        "exceptions": _destinations(rule.exceptions),
        "operations": list(rule.operations),
        "places": _places(rule.places),
        "excepted_places": _places(rule.excepted_places),
        "tools": list(rule.tools),
        "reason": rule.reason,
        "sentence": rule.sentence,
        "origin": _origin(rule.origin),
    }


def _origin(origin: Origin | None) -> dict[str, object] | None:
    if origin is None:
        return None
    return {
        "file": origin.file,
        "line": origin.line,
        "column": origin.column,
        "pack": origin.pack,
    }


def _destinations(found: Destinations) -> dict[str, object]:
    if not found:
        return {**_NOTHING}
    return {
        "addresses": _region(found.region),
        "anything": [_scope(scope) for scope in found.anything],
        "anything_else": [_scope(scope) for scope in found.otherwise],
        "symbols": [_symbol(symbol) for symbol in found.symbols],
        "unix": list(found.unix),
    }


_NOTHING: dict[str, object] = {
    name: [] for name in ("addresses", "anything", "anything_else", "symbols", "unix")
}


def _places(places: Places | None) -> dict[str, object] | None:
    if places is None:
        return None
    return {"kind": places.kind, "paths": list(places.paths), "else": places.otherwise}


def _region(region: Region) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for protocol, family, first, last, ports in region:
        begin = format_address(family, first)
        end = begin if last == first else format_address(family, last)
        found.append({"protocol": protocol, "first": begin, "last": end, "ports": _ports(ports)})
    return found


def _ports(ports: PortSet) -> list[list[int]]:
    return [[low, high] for low, high in ports]


def _scope(scope: Scope) -> dict[str, object]:
    return {"protocols": list(scope.protocols), "ports": _ports(scope.ports)}


def _symbol(symbol: Symbol) -> dict[str, object]:
    return {
        "kind": symbol.kind,
        "value": symbol.value,
        "protocols": list(symbol.protocols),
        "ports": _ports(symbol.ports),
    }
