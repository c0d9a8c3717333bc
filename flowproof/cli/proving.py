"""The proof that goes with a compile: the artifact that says so, or a counterexample and nothing written."""

from __future__ import annotations

from flowproof.artifact.codec import dumps
from flowproof.values import replace
from flowproof.verify.found import Proof
from flowproof.verify.prove import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Artifact
    from flowproof.cli.console import Console
    from flowproof.ir.model import Policy

__all__ = ["is_verified", "proved"]


def proved(policy: Policy, artifact: Artifact, console: Console) -> Artifact | None:
    """Return *artifact* saying what was proved of it, or None where it does not mean *policy*.

    A difference is a bug of the compiler, which the console is told of; the exit code for it is 70.
    """
    found = verify(policy, dumps(artifact))
    if isinstance(found, Proof):
        return replace(artifact, verification=str(found))
    console.complain(
        f"this is a bug in flowproof: what was compiled for `{artifact.target}` does not mean"
        f" `{policy.control}`; nothing is written"
    )
    for line in str(found).splitlines():
        console.err(f"  {line}")
    console.err("  help: please report it with the policy; there is no answer to rely on")
    return None


def is_verified(artifact: Artifact) -> bool:
    """Tell whether *artifact* says that it was verified when it was compiled."""
    return artifact.verification.startswith("verified (")
