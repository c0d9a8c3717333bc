"""The rules that the compiler adds: the default of an action, and what a fixed meaning refuses."""

from __future__ import annotations

from flowproof.ir.model import OPERATIONS, Destinations, Rule, Scope
from flowproof.ir.places import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.ir.model import Policy

__all__ = ["defaults", "implied"]


def defaults(policy: Policy) -> list[Rule]:
    """Return the default of each action that some ``allow`` names: what is not allowed is refused."""
    allows = [rule for rule in policy.rules if rule.verb == "allow"]
    allowed = {rule.action for rule in allows}
    return (
        [
            Rule(
                id=f"{policy.control}.default.{action}",
                verb="deny",
                action=action,
                targets=Destinations(otherwise=(Scope(()),)),
                exceptions=Destinations(),
                kind="default",
                sentence=f"deny {action} {'to' if action == 'connect' else 'on'} anything else",
            )
            for action in ("connect", "listen")
            if action in allowed
        ]
        + [
            Rule(
                id=f"{policy.control}.default.{word}",
                verb="deny",
                action=action,
                targets=Destinations(),
                exceptions=Destinations(),
                kind="default",
                sentence=f"deny {word} anywhere else",
                operations=operations,
                places=Places("anywhere", (), otherwise=True),
            )
            for word, action, operations in (
                *((operation, "files", (operation,)) for operation in OPERATIONS),
                ("execute", "execute", ()),
            )
            if any(
                rule.action == action and (not operations or operations[0] in rule.operations)
                for rule in allows
            )
        ]
        + [
            Rule(
                id=f"{policy.control}.default.call",
                verb="deny",
                action="call",
                targets=Destinations(),
                exceptions=Destinations(),
                kind="default",
                sentence="deny call *",
                tools=("*",),
            )
            for _ in allowed & {"call"}
        ]
    )


_IMPLIED = {
    "families": "deny connect to sockets of other families, types and protocols",
    "foreign-abi": "deny calls by a foreign ABI",
    "io-uring": "deny io_uring",
    "unix": "deny connect to unix sockets outside the run",
    "listen": "deny listen off loopback",
    "unreadable": "deny connect to addresses of no known kind",
}


def implied(policy: Policy) -> list[Rule]:
    """Return the rules of the fixed meanings that refuse where no rule of the author's does."""
    if not policy.actions & {"connect", "listen", "files"}:
        return []  # no lane is trapped
    connect = [rule for rule in policy.rules if rule.action == "connect" and rule.refuses]
    caught = any(rule.targets.bare_otherwise or rule.targets.bare_anything for rule in connect)
    meanings = []
    if not caught:
        meanings += ["foreign-abi", "io-uring"]
        if policy.connect_denies:
            meanings += ["families", "unix"]
        if "connect" in policy.actions:
            meanings.append("unreadable")
    if policy.connect_denies and not any(
        rule.action == "listen" and rule.kind == "default" for rule in policy.rules
    ):
        meanings.append("listen")
    return [
        Rule(
            id=f"{policy.control}.implied.{meaning}",
            verb="deny",
            action="listen" if meaning == "listen" else "connect",
            targets=Destinations(),
            exceptions=Destinations(),
            kind="implied",
            sentence=_IMPLIED[meaning],
            meaning=meaning,
        )
        for meaning in meanings
    ]
