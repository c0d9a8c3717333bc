"""The reference meaning of file attempts."""

from __future__ import annotations

from flowproof.ir.model import OPERATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.ir.events import FileAttempt
    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.places import Places

    Inside = Callable[[str], bool]

__all__ = ["file_asserting", "handle_file"]


def handle_file(policy: Policy, event: FileAttempt) -> tuple[str, str | None]:
    """Return (handling, handling rule) of a file attempt.

    It is let through only if each operation that it amounts to is, and is refused by the first that is
    not, in the order of `OPERATIONS`; let through, the rule is that of its own operation.
    """
    own: str | None = None
    for operation, parts in _amounts_to(event):
        for part in parts:
            refused, by = _handle(policy, operation, part)
            if refused:
                return "refused", by
            if operation == event.operation:
                own = by
    return "let-through", own


def file_asserting(policy: Policy, event: FileAttempt) -> tuple[str, ...]:
    """Return the ids of the rules that count a file attempt, whichever rule handled it."""
    return tuple(
        rule.id
        for rule in policy.rules
        if rule.action == "files"
        and rule.asserts
        and any(
            _matches(policy, rule, operation, part)
            for operation, parts in _amounts_to(event)
            if operation in rule.operations
            for part in parts
        )
    )


Part = tuple[str, str, str | None]
"""(how, path, other path): how is ``at`` (one path), ``either`` (both ends of a rename) or ``leaves`` (a
rename out: a delete for whoever holds the source and not the destination)."""


def _amounts_to(event: FileAttempt) -> list[tuple[str, list[Part]]]:
    """Return the operations that *event* amounts to, in order, each with what it touches."""
    found: dict[str, list[Part]] = {}
    if event.operation == "rename":
        assert event.destination is not None
        ends: Part = ("either", event.path, event.destination)
        found["delete"] = [("leaves", event.path, event.destination)]
        if event.replaces:
            found["delete"].insert(0, ("at", event.destination, None))
        found["rename"] = [ends]
        found["write"] = [ends]
    else:
        found[event.operation] = [("at", event.path, None)]
        found["write"] = [("at", event.path, None)]
    return [(operation, found[operation]) for operation in OPERATIONS if operation in found]


def _handle(policy: Policy, operation: str, part: Part) -> tuple[bool, str | None]:
    rules = [rule for rule in policy.rules if operation in rule.operations]
    refused = [
        rule
        for rule in rules
        if rule.refuses and _named(rule) and _matches(policy, rule, operation, part)
    ]
    if refused:
        return True, _first(refused)
    allowed = [
        rule for rule in rules if rule.verb == "allow" and _matches(policy, rule, operation, part)
    ]
    if allowed:
        return False, _first(allowed)
    catching = [
        rule
        for rule in rules
        if rule.refuses
        and not _named(rule)
        and rule.kind != "default"
        and _matches(policy, rule, operation, part)
    ]
    if catching:
        return True, _first(catching)
    default = next((rule for rule in rules if rule.kind == "default"), None)
    # a move that no `allow` holds both ends of is refused, be each of them in one; but a move within what
    # the allows leave over is no delete
    if default is not None and (part[0] != "leaves" or _matches(policy, default, operation, part)):
        return True, default.id
    return False, None


def _first(rules: list[Rule]) -> str:
    return min(rules, key=lambda rule: (rule.verb != "never", rule.id)).id


def _named(rule: Rule) -> bool:
    return rule.places is not None and not rule.places.otherwise


def _matches(policy: Policy, rule: Rule, operation: str, part: Part) -> bool:
    how, path, other = part
    inside = _inside(policy, rule, operation)
    if how == "at":
        return inside(path)
    assert other is not None
    if how == "leaves":
        return inside(path) and not inside(other)
    if rule.verb == "allow":
        return inside(path) and inside(other)
    return inside(path) or inside(other)


def _inside(policy: Policy, rule: Rule, operation: str) -> Inside:
    """Return whether a path is in the targets of *rule*: exceptions out, allows out for a complement."""
    places = rule.places
    assert places is not None
    if not places.otherwise:
        return lambda path: places.holds(path) and not _held(rule.excepted_places, path)
    allows = [
        allow for allow in policy.rules if allow.verb == "allow" and operation in allow.operations
    ]

    def otherwise(path: str) -> bool:
        return not _held(rule.excepted_places, path) and not any(
            _held(allow.places, path) and not _held(allow.excepted_places, path) for allow in allows
        )

    return otherwise


def _held(places: Places | None, path: str) -> bool:
    return places is not None and places.holds(path)
