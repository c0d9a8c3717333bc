"""A policy → the artifact of a Linux target: program, decision tables, fidelity."""

from __future__ import annotations

from flowproof.lower.files import file_rows
from flowproof.lower.manifest import artifact
from flowproof.lower.seccomp.fidelity import fidelity
from flowproof.lower.seccomp.plan import plan
from flowproof.lower.seccomp.program import program
from flowproof.lower.tables import tables
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.artifact.model import Artifact
    from flowproof.ir.model import Policy

__all__ = ["compile_linux"]


def compile_linux(
    policy: Policy, target: str, *, bound: Policy, hosts: Mapping[str, tuple[str, ...]]
) -> Artifact:
    """Return the artifact of *policy* for *target*, ``linux-`` and an architecture.

    *bound* is the policy with names that *hosts* turned into addresses.
    """
    planned = plan(bound)
    decisions = replace(tables(bound), files=file_rows(bound))
    return artifact(
        policy,
        target,
        bound=bound,
        hosts=hosts,
        fidelity=fidelity(policy, planned),
        lanes=planned.lanes,
        decisions=decisions,
        program=program(planned, target.removeprefix("linux-")),
    )
