"""The canonical JSON form of a policy, and the digest that names it."""

from __future__ import annotations

from json.encoder import encode_basestring as _quoted

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
    """Return ``sha256:…`` over what the policy means: places, sources and wording are left out.

    It is that of the canonical bytes of `to_json` without those members, whose text is put together here
    rule by rule: most of ten thousand rules differ in a few words.
    """
    text = (
        f'{{"control":{_quoted(policy.control)},"description":{_text(policy.description)},'
        f'"rules":[{",".join([_rule_text(rule) for rule in policy.rules])}],'
        f'"schema":{_quoted(IR_SCHEMA)},"title":{_text(policy.title)}}}'
    )
    return canonical.digest(text.encode("utf-8"))


def _rule_text(rule: Rule) -> str:
    return (
        f'{{"action":"{rule.action}","claim":"{rule.claim}",'
        f'"excepted_places":{_text(_places(rule.excepted_places))},'
        f'"exceptions":{_destinations_text(rule.exceptions)},"id":{_quoted(rule.id)},'
        f'"kind":"{rule.kind}","meaning":{_text(rule.meaning)},"operations":{_text(rule.operations)},'
        f'"places":{_text(_places(rule.places))},"reason":{_text(rule.reason)},'
        f'"targets":{_destinations_text(rule.targets)},"tools":{_text(rule.tools)},'
        f'"verb":"{rule.verb}"}}'
    )


def _destinations_text(found: Destinations) -> str:
    if found.anything or found.otherwise or found.symbols or found.unix:
        return _text(_destinations(found))
    boxes = []
    for protocol, family, first, last, ports in found.region:
        begin = format_address(family, first)
        end = begin if last == first else format_address(family, last)
        listed = ",".join([f"[{low},{high}]" for low, high in ports])
        boxes.append(
            f'{{"first":"{begin}","last":"{end}","ports":[{listed}],"protocol":"{protocol}"}}'
        )
    return f'{{"addresses":[{",".join(boxes)}],"anything":[],"anything_else":[],"symbols":[],"unix":[]}}'


def _text(value: object) -> str:
    if value is None:
        return "null"
    return "[]" if value == () else canonical.canonical(value).decode("utf-8")


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
