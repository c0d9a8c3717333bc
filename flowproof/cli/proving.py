"""The proof that goes with a compile: the artifact that says so, or a counterexample and nothing written."""

from __future__ import annotations

from flowproof.artifact.codec import dumps
from flowproof.artifact.restating import restated
from flowproof.values import Value, replace
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.prove import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Artifact
    from flowproof.cli.console import Console
    from flowproof.ir.model import Policy

__all__ = ["Proven", "finished", "is_verified", "proved", "with_cache"]


class Proven(Value):
    """An artifact that says what was proved of it, and its bytes."""

    artifact: Artifact
    data: bytes


def proved(policy: Policy, artifact: Artifact, console: Console) -> Proven | None:
    """Return *artifact* saying what was proved of it, or None where it does not mean *policy*.

    A difference is a bug of the compiler, which the console is told of; the exit code for it is 70.
    """
    found = finished(policy, artifact)
    if not isinstance(found, Counterexample):
        return found
    console.complain(
        f"this is a bug in flowproof: what was compiled for `{artifact.target}` does not mean"
        f" `{policy.control}`; nothing is written"
    )
    for line in str(found).splitlines():
        console.err(f"  {line}")
    console.err("  help: please report it with the policy; there is no answer to rely on")
    return None


def finished(policy: Policy, artifact: Artifact) -> Proven | Counterexample:
    """Return *artifact* with what was proved of it and what the kernel will cache, or the difference."""
    whole = with_cache(artifact)
    data = dumps(whole)
    found = verify(policy, data)
    if not isinstance(found, Proof):
        return found
    return Proven(replace(whole, verification=str(found)), restated(data, str(found)))


def with_cache(artifact: Artifact) -> Artifact:
    """Return *artifact* with the numbers that the kernel answers without running its program."""
    if artifact.program is None:
        return artifact
    from flowproof.verify.cache import cached

    program = artifact.program
    code = tuple((step.code, step.jt, step.jf, step.k) for step in program.instructions)
    return replace(artifact, program=replace(program, cached=cached(code, program.arch)))


def is_verified(artifact: Artifact) -> bool:
    """Tell whether *artifact* says that it was verified when it was compiled."""
    return artifact.verification.startswith("verified (")
