"""An artifact that is given to be run: read, and proved where the policy is given with it.

The runner imports no compiler stage, and an artifact may say anything of itself. So a proof is known of only
where it is made here; what an artifact claims is handed on as its claim, and no rule passes by it.
"""

from __future__ import annotations

from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Artifact
    from flowproof.cli.console import Console

__all__ = ["Refused", "Taken", "take"]


class Taken(Value):
    """An artifact to run: *proven* where it was proved here; *told* says that, or how to prove it."""

    artifact: Artifact
    proven: bool
    told: str


class Refused(Value):
    """Why there is nothing to run, with the exit code for it; *lines* have the details."""

    message: str
    code: ExitCode
    lines: tuple[str, ...] = ()


def take(
    path: str, policy: str | None, console: Console, *, target: str | None, unverified: bool
) -> Taken | Refused:
    """Return the artifact at *path*, for *target*, proved against the file *policy* where there is one.

    Without a policy an artifact that says `not verified` of itself is taken if *unverified* ones are.
    """
    from flowproof.artifact.codec import ArtifactError, loads
    from flowproof.cli.proving import is_verified
    from flowproof.plain_files import read_plain

    try:
        artifact = loads(read_plain(path))
    except OSError as failure:
        return Refused(f"cannot read `{path}`: {failure.strerror}", ExitCode.USAGE)
    except ArtifactError as mistake:
        return Refused(f"`{path}` is no artifact: {mistake}", ExitCode.USAGE)
    if artifact.target != target:
        message = f"PLATFORM: `{path}` is for {artifact.target}, and this is {target}"
        return Refused(message, ExitCode.CAPABILITY)
    if policy is not None:
        return _prove(path, artifact, policy, console)
    if is_verified(artifact):
        told = (
            f"that `{path}` was verified is what it says of itself: `--policy FILE` proves it first"
        )
        return Taken(artifact, False, told)
    if unverified:
        return Taken(artifact, False, f"`{path}` says `{artifact.verification}` of itself")
    message = (
        f"`{path}` says `{artifact.verification}`: compile it with its proof, prove it here with"
        " `--policy FILE`, or run it with `--allow-unverified`"
    )
    return Refused(message, ExitCode.CAPABILITY)


def _prove(path: str, artifact: Artifact, policy: str, console: Console) -> Taken | Refused:
    from flowproof.artifact.codec import dumps
    from flowproof.cli.inputs import read
    from flowproof.cli.misstated import misstated
    from flowproof.verify.found import Counterexample
    from flowproof.verify.prove import verify

    report = Report()
    given = read(policy, report)
    console.diagnose(report)
    if report.errors or len(given.resolved) != 1:
        code = ExitCode(DiagnosticsError(report.errors).exit) if report.errors else ExitCode.USAGE
        return Refused(f"`{policy}` is no policy to prove against", code)
    meant = given.resolved[0].policy
    found = verify(meant, dumps(artifact), thorough=True)
    lines = list(misstated(meant, artifact))
    if isinstance(found, Counterexample):
        lines = [*str(found).splitlines(), *lines]
    if lines:
        message = f"`{path}` is not what `{policy}` means, and is not run"
        return Refused(message, ExitCode.NEGATIVE, tuple(lines))
    bound = "; ".join(f"{name} as {', '.join(to)}" for name, to in artifact.hosts.items())
    told = f"`{path}` means `{policy}`" + (f", with names bound by it: {bound}" if bound else "")
    return Taken(artifact, True, told)
