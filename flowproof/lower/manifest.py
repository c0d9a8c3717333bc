"""What every artifact says, whatever its target: rules, symbols, digests, the tool."""

from __future__ import annotations

import hashlib

from flowproof import __version__
from flowproof.artifact.model import Artifact, Origin, Rule, Symbol
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.serialize import digest
from flowproof.lower.tables import tables
from flowproof.resources import data_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.artifact.model import Difference, Fidelity, Program, Tables
    from flowproof.ir import model as ir
    from flowproof.ir.model import Policy

__all__ = ["artifact"]

UNVERIFIED = "not verified"
"""What an artifact says until a proof of it says more."""


def artifact(
    policy: Policy,
    target: str,
    *,
    bound: Policy,
    hosts: Mapping[str, tuple[str, ...]],
    fidelity: tuple[Fidelity, ...],
    lanes: tuple[str, ...],
    decisions: Tables | None = None,
    program: Program | None = None,
    filters: Mapping[str, object] | None = None,
    differences: tuple[Difference, ...] = (),
) -> Artifact:
    """Return the artifact of *policy*; *bound* is the policy that its tables and symbols are made of.

    *decisions* are the tables of *bound* where the caller has made them already.
    """
    return Artifact(
        target=target,
        control=policy.control,
        title=policy.title,
        rules=tuple(_rule(rule) for rule in policy.rules),
        lanes=lanes,
        fidelity=fidelity,
        tables=decisions or tables(bound),
        symbols=tuple(_symbols(bound)),
        program=program,
        filters=filters,
        hosts=hosts,
        verification=UNVERIFIED,
        digests=_digests(policy),
        tool=f"flowproof {__version__}",
        differences=differences,
    )


def _rule(rule: ir.Rule) -> Rule:
    origin = rule.origin
    place = Origin(origin.file, origin.line, origin.column, origin.pack) if origin else None
    return Rule(
        rule.id,
        rule.verb,
        rule.claim,
        rule.action,
        rule.kind,
        rule.sentence,
        rule.reason,
        place,
    )


def _symbols(policy: Policy) -> Iterator[Symbol]:
    for at, rule in enumerate(policy.rules):
        for role, found in (("target", rule.targets), ("except", rule.exceptions)):
            if not found.symbols:
                continue
            for symbol in sorted(
                set(found.symbols), key=lambda one: (one.kind, one.value, one.protocols, one.ports)
            ):
                ports = () if symbol.ports == ANY_PORT else symbol.ports
                yield Symbol(at, role, symbol.kind, symbol.value, symbol.protocols, ports)


def _digests(policy: Policy) -> dict[str, str]:
    with open(data_path("grammar", "control.lark"), "rb") as file:
        grammar = hashlib.sha256(file.read()).hexdigest()
    return {
        "ir": digest(policy),
        "grammar": f"sha256:{grammar}",
        **{
            f"file:{name}": f"sha256:{sha256.removeprefix('sha256:')}"
            for name, sha256 in policy.sources
        },
    }
