"""What a filter set carries of a policy on Windows, rule by rule and meaning by meaning."""

from __future__ import annotations

from flowproof.artifact.model import Fidelity
from flowproof.lower.fidelity import (
    FidelityClass,
    Finding,
    action_findings,
    row,
    symbol_findings,
)
from flowproof.lower.wfp.filters import listen_ports, unexcepted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.regions import Region

__all__ = ["fidelity"]

_EXACT = FidelityClass.EXACT.value
_OVER_BLOCKS = FidelityClass.OVER_BLOCKS.value
_NOT_APPLICABLE = FidelityClass.NOT_APPLICABLE.value


def fidelity(policy: Policy) -> tuple[Fidelity, ...]:
    """Return a row for each rule, in order, and one for each fixed meaning that is in force."""
    return (*(_rule(rule, policy) for rule in policy.rules), *_meanings(policy))


def _rule(rule: Rule, policy: Policy) -> Fidelity:
    if rule.meaning is not None and rule.meaning != "listen":
        return _implied(rule)
    return row(rule, _findings(rule, policy))


def _findings(rule: Rule, policy: Policy) -> Iterator[Finding]:
    yield from action_findings(rule)
    yield from symbol_findings(rule)
    yield from _unix(rule)
    if rule.action == "listen":
        yield from _listen(rule, policy)
    for symbol in rule.exceptions.symbols:
        yield Finding(
            FidelityClass.UNSUPPORTED,
            f"`{symbol.value}` cannot be taken out of a Windows filter before it is bound: except"
            " addresses",
        )
    if rule.targets.symbols and rule.exceptions.region:
        yield Finding(
            FidelityClass.UNSUPPORTED,
            "addresses cannot be taken out of a name or variable before it is bound: write the"
            " exception in a rule of its own",
        )


def _unix(rule: Rule) -> Iterator[Finding]:
    if not rule.targets.unix and not rule.exceptions.unix:
        return
    targets = rule.targets
    alone = not (targets.region or targets.anything or targets.otherwise or targets.symbols)
    yield Finding(
        FidelityClass.NOT_APPLICABLE if alone else FidelityClass.EXACT,
        "a unix socket is nothing that a Windows filter sees",
    )


def _listen(rule: Rule, policy: Policy) -> Iterator[Finding]:
    if rule.meaning == "listen":
        if listen_ports(unexcepted(policy)) is None:
            yield Finding(
                FidelityClass.OVER_BLOCKS,
                "a listen is refused by port, so that an address excepted elsewhere is refused too",
            )
        return
    if _by_address(rule.named) or _by_address(rule.otherwise):
        yield Finding(
            FidelityClass.UNSUPPORTED,
            "a listen by address is not carried on Windows: write it by port, `listen on"
            " anything:8080`",
        )


def _by_address(region: Region) -> bool:
    return bool(region) and listen_ports(region) is None


def _implied(rule: Rule) -> Fidelity:
    held = {fixed.subject: fixed for fixed in _fixed()}
    found = held[f"meaning:{rule.meaning}"]
    return Fidelity(rule.id, found.refusing, None, found.reason)


def _fixed() -> Iterator[Fidelity]:
    """Yield what becomes of the meanings that are not about addresses."""
    yield Fidelity(
        "meaning:families",
        _NOT_APPLICABLE,
        _NOT_APPLICABLE,
        "raw sockets are refused by the identity being unprivileged, protocols other"
        " than TCP and UDP by the filter set; families outside of IP are nothing that it sees",
    )
    yield Fidelity(
        "meaning:foreign-abi",
        _NOT_APPLICABLE,
        _NOT_APPLICABLE,
        "programs of every ABI pass the same filters",
    )
    yield Fidelity("meaning:io-uring", _NOT_APPLICABLE, None, "Windows has no io_uring")
    yield Fidelity(
        "meaning:unix",
        _NOT_APPLICABLE,
        _NOT_APPLICABLE,
        "a unix socket is nothing that a Windows filter sees",
    )
    yield Fidelity(
        "meaning:unreadable",
        _NOT_APPLICABLE,
        _NOT_APPLICABLE,
        "the platform classifies by the address that it uses itself",
    )


def _meanings(policy: Policy) -> Iterator[Fidelity]:
    actions = policy.actions & {"connect", "listen"}
    if not actions:
        return
    fixed = {found.subject: found for found in _fixed()}
    yield fixed["meaning:foreign-abi"]
    yield fixed["meaning:io-uring"]
    yield Fidelity(
        "meaning:loopback", _EXACT, _EXACT, "told by address, never by the loopback flag"
    )
    if "connect" in actions:
        yield Fidelity("meaning:metadata", _EXACT, _EXACT, None)
        yield fixed["meaning:unix"]
        yield fixed["meaning:unreadable"]
        yield Fidelity(
            "meaning:udp-connect",
            _NOT_APPLICABLE,
            _NOT_APPLICABLE,
            "a datagram socket is classified when it sends, so that a connect by"
            " itself is neither refused nor counted",
        )
    if policy.connect_denies:
        yield fixed["meaning:families"]
        yield Fidelity(
            "meaning:inbound",
            _OVER_BLOCKS,
            None,
            "datagrams from strangers are refused off loopback: a reply to one would leave unasked",
        )
    if policy.connect_denies or "listen" in actions:
        yield Fidelity("meaning:listen", _EXACT, _EXACT, "by port")
