"""One sentence → one rule: targets, exceptions, and what may not be written."""

from __future__ import annotations

from flowproof.ir import ports as port_sets
from flowproof.ir.model import Destinations, Rule
from flowproof.ir.place_rules import origin_of, place_rule
from flowproof.ir.targets import destinations, raw_region, raw_union
from flowproof.syntax import tree
from flowproof.syntax.render import render
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report
    from flowproof.ir.model import Scope
    from flowproof.ir.ports import PortSet
    from flowproof.ir.sets import Part, Sets

__all__ = ["rule_of"]


def rule_of(
    rule_id: str,
    sentence: tree.Sentence,
    sets: Sets,
    report: Report,
    *,
    pack: str | None = None,
    kind: str = "authored",
) -> Rule | None:
    """Return the rule that *sentence* means, or None with every error of it in *report*."""
    action = sentence.action
    if not isinstance(action, (tree.Connect, tree.Listen)):
        return place_rule(rule_id, sentence, report, pack=pack, kind=kind)
    before = report.failures
    name = "connect" if isinstance(action, tree.Connect) else "listen"
    protocols = action.protocols if isinstance(action, tree.Connect) else ()
    parts = sets.expand(action.destinations)
    except_parts = sets.expand(action.exceptions) if action.exceptions else []
    if parts is None or except_parts is None:
        return None
    _check_hosts(parts + except_parts, name, protocols, report)
    if sentence.verb == "allow":
        _refuse_otherwise(parts, report)
    if report.failures > before:
        return None
    targets = destinations(parts, sentence.verb, name, protocols)
    exceptions = destinations(except_parts, "deny", name, protocols)
    if except_parts:  # by text: an exception as wide as loopback takes that out as well
        exceptions = replace(exceptions, region=raw_union(except_parts, name, protocols))
        _check_exceptions(parts, except_parts, name, protocols, targets, report)
    if report.failures > before:
        return None
    rule = Rule(
        id=rule_id,
        verb=sentence.verb,
        action=name,
        targets=targets,
        exceptions=exceptions,
        kind=kind,
        sentence=render(sentence),
        reason=sentence.reason,
        origin=origin_of(sentence.span, pack),
    )
    if except_parts and not _leaves_something(rule):
        report.error(
            "FP511",
            "`except` leaves nothing of the rule",
            except_parts[0].span,
            "narrow the exception, or take the rule out",
        )
        return None
    return rule


def _check_hosts(
    parts: list[Part], action: str, protocols: tuple[str, ...], report: Report
) -> None:
    for part in parts:
        host = part.host
        if isinstance(host, tree.Unix):
            _check_unix(host.path, part, action, protocols, report)
        elif isinstance(host, (tree.Name, tree.Wildcard)) and action == "listen":
            report.error(
                "FP518",
                f"`listen` takes addresses, and `{host.name}` is a name",
                part.span,
                "write the address to listen on, a CIDR or a class",
            )


def _check_unix(
    path: str, part: Part, action: str, protocols: tuple[str, ...], report: Report
) -> None:
    if action == "listen":
        report.error(
            "FP518",
            f"`listen` takes addresses, and `unix:{path}` is a path",
            part.span,
            "listening on a unix socket is never refused; take it out",
        )
    elif protocols:
        report.error(
            "FP518",
            f"`unix:{path}` takes no protocol",
            part.span,
            "write a rule of its own for the path, without a protocol",
        )
    elif part.ports != port_sets.ANY_PORT:
        report.error("FP518", f"`unix:{path}` takes no port", part.span, "take the port out")


def _refuse_otherwise(parts: list[Part], report: Report) -> None:
    for part in parts:
        if isinstance(part.host, tree.Anything) and part.host.otherwise:
            report.error(
                "FP513",
                "`anything else` is what no `allow` names: `allow` cannot name it",
                part.host.span,
                "write `anything`, or use another verb",
            )


def _check_exceptions(
    parts: list[Part],
    except_parts: list[Part],
    action: str,
    protocols: tuple[str, ...],
    targets: Destinations,
    report: Report,
) -> None:
    """Report every exception that does not lie inside the targets, by text."""
    scopes = targets.anything + targets.otherwise
    wide = [_anything(part) for part in parts if isinstance(part.host, tree.Anything)]
    raw = raw_union(parts + wide, action, protocols)
    for part in except_parts:
        if not _lies_inside(part, parts, scopes, raw.covers(raw_region(part, action, protocols))):
            text = part.span.text
            names = isinstance(part.host, tree.Name | tree.Wildcard | tree.Variable)
            report.error(
                "FP512" if names else "FP510",
                f"`{text}` is not inside what the rule is about",
                part.span,
                "a name may be excepted from `anything` or from itself"
                if names
                else "an exception takes something out of the targets; write one that lies inside",
            )


def _anything(part: Part) -> Part:
    return replace(part, host=tree.Anything(False, part.host.span))


def _lies_inside(part: Part, parts: list[Part], scopes: tuple[Scope, ...], covered: bool) -> bool:
    match part.host:
        case tree.AddressClass(word, _) if word in ("loopback", "metadata"):
            return True
        case tree.Unix(path, _):
            return any(scope.bare for scope in scopes) or any(
                isinstance(other.host, tree.Unix) and other.host.path == path for other in parts
            )
        case tree.Name() | tree.Wildcard() | tree.Variable():
            within = [scope.ports for scope in scopes] + [
                other.ports for other in parts if _same_symbol(other.host, part.host)
            ]
            return any(not port_sets.subtract(part.ports, ports) for ports in within)
        case tree.Anything(otherwise=True):
            return False
        case _:
            return covered


def _same_symbol(left: tree.Host, right: tree.Host) -> bool:
    symbols = (tree.Name, tree.Wildcard, tree.Variable)
    return (
        isinstance(left, symbols)
        and isinstance(right, symbols)
        and (type(left), left.name) == (type(right), right.name)
    )


def _leaves_something(rule: Rule) -> bool:
    targets, exceptions = rule.targets, rule.exceptions
    if rule.named or rule.otherwise:
        return True
    if rule.verb != "allow" and (targets.bare_anything or targets.bare_otherwise):
        return True
    if set(targets.unix) - set(exceptions.unix):
        return True
    for symbol in targets.symbols:
        left: PortSet = symbol.ports
        for other in exceptions.symbols:
            if (other.kind, other.value) == (symbol.kind, symbol.value):
                left = port_sets.subtract(left, other.ports)
        if left:
            return True
    return False
