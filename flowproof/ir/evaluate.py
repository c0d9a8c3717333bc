"""The reference meaning: an event in; handling, handling rule and asserting rules out.

Written to follow the page of the language step by step, and slow enough to be believed. Every backend
is judged against it, so nothing of it is shared with a backend.
"""

from __future__ import annotations

from flowproof.addresses import LAST, LOOPBACK
from flowproof.ir.events import Connect, ConnectName, Family, FileAttempt, Foreign, Listen, Unix
from flowproof.ir.files import file_asserting, handle_file
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.regions import Region, union_all
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.ir.events import Event, NetworkEvent
    from flowproof.ir.model import Policy, Rule

__all__ = ["Evaluation", "evaluate"]


class Evaluation(Value):
    """What becomes of an attempt. *handling* is let-through or refused; *by* the rule that handled it, or
    None for an exemption or a default that lets through; *asserting* the rules that count it, by id.
    """

    handling: str
    by: str | None
    asserting: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """``fail`` where a rule counts the attempt, else ``none``."""
        return "fail" if self.asserting else "none"


def evaluate(policy: Policy, event: Event) -> Evaluation:
    """Return what *policy* says of *event*."""
    if isinstance(event, FileAttempt):
        return Evaluation(*handle_file(policy, event), file_asserting(policy, event))
    action = "listen" if isinstance(event, Listen) else "connect"
    rules = [rule for rule in policy.rules if rule.action == action and rule.meaning is None]
    handling, by = _handle(policy, rules, event)
    if isinstance(event, Connect | ConnectName) and event.probe:
        return Evaluation(handling, by, ())
    asserting = (
        rule.id
        for rule in rules
        if rule.asserts and (_named(rule, event) or _otherwise(policy, rule, event))
    )
    return Evaluation(handling, by, tuple(sorted(asserting)))


def _handle(policy: Policy, rules: list[Rule], event: NetworkEvent) -> tuple[str, str | None]:
    refused = [rule for rule in rules if rule.refuses and _named(rule, event)]
    if refused:
        return "refused", _first(refused)
    allowed = [rule for rule in rules if rule.verb == "allow" and _named(rule, event)]
    if allowed:
        return "let-through", _first(allowed)
    if _exempt(event):
        return "let-through", None
    catching = [
        rule
        for rule in rules
        if rule.refuses and rule.kind != "default" and _otherwise(policy, rule, event)
    ]
    if catching:
        return "refused", _first(catching)
    if isinstance(event, Unix):
        leaving = [rule for rule in rules if rule.refuses and event.path in rule.exceptions.unix]
        if leaving:
            return "let-through", _first(leaving)
    default = [rule for rule in rules if rule.kind == "default"]
    if default:
        return "refused", default[0].id
    implied = _implied(policy, rules, event)
    return ("refused", implied) if implied else ("let-through", None)


def _first(rules: list[Rule]) -> str:
    """Return the rule that handles where several match: never before deny, then the smaller id."""
    return min(rules, key=lambda rule: (rule.verb != "never", rule.id)).id


def _exempt(event: NetworkEvent) -> bool:
    match event:
        case Connect() | Listen():
            return any(
                family == event.family and first <= event.address <= last
                for family, first, last in LOOPBACK
            )
        case Unix():
            return event.inside
        case _:
            return False


def _named(rule: Rule, event: NetworkEvent) -> bool:
    """Tell whether a named target of *rule* matches and no exception takes it out."""
    match event:
        case Connect():
            return rule.named.contains(event.protocol, event.family, event.address, event.port)
        case ConnectName():
            matches = any(
                symbol.names(event.name, event.protocol, event.port)
                for symbol in rule.targets.symbols
            ) or any(scope.holds(event.protocol, event.port) for scope in rule.targets.anything)
            return matches and not _excepts_name(rule, event)
        case Unix():
            if event.path in rule.exceptions.unix:
                return False
            if (
                rule.verb == "allow"
            ):  # an inside socket needs no leave: it is let through by no rule
                return event.path in rule.targets.unix and not event.inside
            return event.path in rule.targets.unix or (
                rule.targets.bare_anything and not event.inside
            )
        case Family() | Foreign():
            return rule.targets.bare_anything and rule.verb != "allow"
        case Listen():
            if rule.verb == "allow":
                return rule.named.covers(_listened(event))
            return rule.named.touches(_touched(event))


def _otherwise(policy: Policy, rule: Rule, event: NetworkEvent) -> bool:
    """Tell whether ``anything else`` of *rule* matches: in its scope, out of every allow."""
    if not rule.targets.otherwise or _exempt(event):
        return False
    allows = [r for r in policy.rules if r.action == rule.action and r.verb == "allow"]
    match event:
        case Connect():
            return rule.otherwise.contains(
                event.protocol, event.family, event.address, event.port
            ) and not any(_named(allow, event) for allow in allows)
        case ConnectName():
            return (
                any(scope.holds(event.protocol, event.port) for scope in rule.targets.otherwise)
                and not _excepts_name(rule, event)
                and not any(_named(allow, event) for allow in allows)
            )
        case Unix():
            return (
                rule.targets.bare_otherwise
                and event.path not in rule.exceptions.unix
                and not any(_named(allow, event) for allow in allows)
            )
        case Family() | Foreign():
            return rule.targets.bare_otherwise
        case Listen():
            left = rule.otherwise - union_all(allow.named for allow in allows)
            return left.touches(_listened(event))


def _excepts_name(rule: Rule, event: ConnectName) -> bool:
    return any(
        symbol.names(event.name, event.protocol, event.port) for symbol in rule.exceptions.symbols
    ) or any(scope.holds(event.protocol, event.port) for scope in rule.exceptions.anything)


def _listened(event: Listen) -> Region:
    """Return what would be listened on: one address, or every one off loopback of the family (``::``:
    of both families).
    """
    port = ((event.port, event.port),)
    if event.address:
        return Region.of(((event.family, event.address, event.address),), ("tcp",), port)
    families = (4,) if event.family == 4 else (4, 6)
    return Region.of((part for part in OFF_LOOPBACK if part[0] in families), ("tcp",), port)


def _touched(event: Listen) -> Region:
    """Return all that a listen takes up: for ``0.0.0.0`` and ``::`` that is loopback as well, so that a
    refusal of a loopback listen holds for them.
    """
    if event.address:
        return _listened(event)
    port = ((event.port, event.port),)
    families = (4,) if event.family == 4 else (4, 6)
    return Region.of(((family, 0, LAST[family]) for family in families), ("tcp",), port)


def _implied(policy: Policy, rules: list[Rule], event: NetworkEvent) -> str | None:
    """Return the implied rule that refuses *event*, where no author's rule and no default does."""
    if isinstance(event, Listen):
        excepted = union_all(rule.exceptions.region for rule in rules if rule.refuses)
        if not policy.connect_denies or excepted.covers(_listened(event)):
            return None
        return _meaning(policy, "listen")
    match event:
        case Unix() if policy.connect_denies:
            return _meaning(policy, "unix")
        case Family() if policy.connect_denies:
            return _meaning(policy, "families")
        case Foreign():
            return _meaning(policy, "foreign-abi")
        case _:
            return None


def _meaning(policy: Policy, meaning: str) -> str | None:
    return next((rule.id for rule in policy.rules if rule.meaning == meaning), None)
