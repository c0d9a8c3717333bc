"""A policy → the artifact of Windows: filter set, decision tables that judge net events, fidelity."""

from __future__ import annotations

from flowproof.lower.manifest import artifact
from flowproof.lower.tables import tables
from flowproof.lower.wfp.differences import differences
from flowproof.lower.wfp.fidelity import fidelity
from flowproof.lower.wfp.filters import filter_set
from flowproof.lower.wfp.validate import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.artifact.model import Artifact
    from flowproof.ir.model import Policy

__all__ = ["compile_windows"]


def compile_windows(
    policy: Policy, target: str, *, bound: Policy, hosts: Mapping[str, tuple[str, ...]]
) -> Artifact:
    """Return the artifact of *policy*; *bound* is the policy with names that *hosts* made addresses."""
    decisions = tables(bound)
    filters = filter_set(bound, decisions)
    validate(filters)
    rows = fidelity(policy)
    return artifact(
        policy,
        target,
        bound=bound,
        hosts=hosts,
        fidelity=rows,
        lanes=("connect",) if policy.actions & {"connect", "listen"} else (),
        decisions=decisions,
        filters=filters,
        differences=differences(bound, decisions, rows),
    )
