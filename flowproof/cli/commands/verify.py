"""``flowproof verify``: an artifact from elsewhere against the policy that it is said to be."""

from __future__ import annotations

import os

from flowproof.cli.answers import exit_data, json_text
from flowproof.cli.inputs import read
from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.model import Artifact
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.ir.model import Policy
    from flowproof.verify.found import Counterexample

__all__ = ["run"]


def run(arguments: Arguments, console: Console) -> int:
    """Prove that the artifact means the policy: 0, or 1 with the first difference of each kind."""
    from flowproof.artifact.codec import ArtifactError, dumps, loads
    from flowproof.verify.found import Proof
    from flowproof.verify.prove import verify

    path, policy_path = arguments.words
    if os.path.isdir(policy_path):
        return _end(arguments, console, ExitCode.USAGE, f"`{policy_path}` is a folder: name one")
    try:
        with open(path, "rb") as file:
            artifact = loads(file.read())
    except OSError as failure:
        return _end(arguments, console, ExitCode.USAGE, f"cannot read `{path}`: {failure.strerror}")
    except ArtifactError as mistake:
        return _end(arguments, console, ExitCode.USAGE, f"`{path}` is no artifact: {mistake}")
    report = Report()
    given = read(policy_path, report)
    console.diagnose(report)
    if report.errors or len(given.resolved) != 1:
        code = ExitCode(DiagnosticsError(report.errors).exit) if report.errors else ExitCode.USAGE
        return _end(arguments, console, code, f"`{policy_path}` is no policy to prove against")
    policy = given.resolved[0].policy
    found = verify(policy, dumps(artifact))
    lines = list(_told(artifact, policy))
    if isinstance(found, Proof) and not lines:
        bound = "; ".join(f"{name} as {', '.join(to)}" for name, to in artifact.hosts.items())
        told = f"`{path}` is {found}" + (f", with names bound by it: {bound}" if bound else "")
        return _end(arguments, console, ExitCode.OK, told)
    message = f"`{path}` is not what `{policy_path}` means"
    difference = None if isinstance(found, Proof) else found
    return _end(arguments, console, ExitCode.NEGATIVE, message, lines, difference)


def _told(artifact: Artifact, policy: Policy) -> Iterator[str]:
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


def _end(
    arguments: Arguments,
    console: Console,
    code: ExitCode,
    message: str,
    lines: list[str] | tuple[str, ...] = (),
    difference: Counterexample | None = None,
) -> ExitCode:
    """Print the answer and return its code."""
    if arguments.json:
        held = None
        if difference is not None:
            held = {name: getattr(difference, name) for name in difference.__fields__}
        console.out(
            json_text(
                {
                    "difference": held,
                    "claims": list(lines),
                    "exit": exit_data(code, [message]),
                }
            )
        )
        return code
    if code is ExitCode.OK:
        console.out(f"{message}\n")
        return code
    console.complain(message)
    told = str(difference).splitlines() if difference is not None else []
    for line in (*told, *lines):
        console.err(f"  {line}")
    return code
