"""The proof that goes with a compile: the artifact that says so, or a counterexample and nothing written."""

from __future__ import annotations

from flowproof.artifact.codec import dumps
from flowproof.artifact.restating import restated
from flowproof.diagnostics import DiagnosticsError
from flowproof.values import Value, replace
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.prove import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.model import Artifact
    from flowproof.cli.console import Console
    from flowproof.ir.model import Policy

__all__ = ["Proven", "finished", "is_verified", "misstated", "proved", "with_cache"]


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


def misstated(policy: Policy, artifact: Artifact) -> Iterator[str]:
    """Yield what the artifact says of itself that is not so: digests, fidelity, hosts."""
    from flowproof.lower.backend import TARGETS, compile_policy

    if artifact.target not in TARGETS:
        yield f"target: there is no `{artifact.target}`"
        return
    try:
        own = compile_policy(policy, artifact.target, hosts=artifact.hosts or None)
    except DiagnosticsError as refused:
        yield from (f"hosts: {error.message}" for error in refused.diagnostics)
        return
    for name in sorted({*artifact.hosts} - {*own.hosts}):
        yield f"hosts: `{name}` is bound, and the policy does not name it"
    # a file may be named by another path where it was compiled: its content is what counts
    named = ("ir", "grammar")
    for name in named:
        if artifact.digests.get(name) != own.digests[name]:
            yield f"digests.{name}: {artifact.digests.get(name)}, and it is {own.digests[name]}"
    has, wants = (
        sorted(digest for name, digest in one.digests.items() if name not in named)
        for one in (artifact, own)
    )
    if has != wants:
        yield f"digests of files: {', '.join(has) or 'none'}, and they are {', '.join(wants)}"
    for row, other in zip(artifact.fidelity, own.fidelity, strict=False):
        if (row.subject, row.refusing, row.counting) != (
            other.subject,
            other.refusing,
            other.counting,
        ):
            yield (
                f"fidelity of {row.subject}: refusing {row.refusing}, counting {row.counting}; it is"
                f" {other.subject}: refusing {other.refusing}, counting {other.counting}"
            )
            break
    if len(artifact.fidelity) != len(own.fidelity):
        yield f"fidelity: {len(artifact.fidelity)} rows, and there are {len(own.fidelity)}"
    yield from _differences(artifact, own)


def _differences(artifact: Artifact, own: Artifact) -> Iterator[str]:
    """Yield the first difference that *artifact* leaves out, and the first that it adds."""
    for held, other, what in (
        (own.differences, artifact.differences, "is left out"),
        (artifact.differences, own.differences, "is none"),
    ):
        left = [one for one in held if one not in other]
        if left or len(set(held)) < len(held):
            one = (left or list(held))[0]
            yield (
                f"differences: {one.subject} {one.kind}, {one.where} {one.cells[0]}"
                f" ({one.policy}; {one.target}) {what if left else 'stands twice'}"
            )
