"""``flowproof verify``: an artifact from elsewhere against the policy that it is said to be."""

from __future__ import annotations

import os

from flowproof.cli.answers import exit_data, json_text
from flowproof.cli.arguments import UsageError
from flowproof.cli.inputs import read
from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.verify.found import Counterexample

__all__ = ["run"]


def run(arguments: Arguments, console: Console) -> int:
    """Prove that the artifact means the policy: 0, or 1 with the first difference of each kind."""
    from flowproof.artifact.codec import ArtifactError, dumps, loads
    from flowproof.cli.misstated import misstated
    from flowproof.plain_files import read_plain
    from flowproof.verify.found import Proof
    from flowproof.verify.prove import verify

    path, policy_path = arguments.words
    if path.endswith((".flow.yaml", ".policy.yaml")):
        way = f"write `flowproof verify {policy_path} {path}`"
        raise UsageError(f"`{path}` is a policy, and the artifact comes first", way)
    if os.path.isdir(policy_path):
        return _end(arguments, console, ExitCode.USAGE, f"`{policy_path}` is a folder: name one")
    try:
        artifact = loads(read_plain(path))
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
    found = verify(policy, dumps(artifact), thorough=True)
    lines = list(misstated(policy, artifact))
    if isinstance(found, Proof) and not lines:
        bound = "; ".join(f"{name} as {', '.join(to)}" for name, to in artifact.hosts.items())
        told = f"`{path}` is {found}" + (f", with names bound by it: {bound}" if bound else "")
        return _end(arguments, console, ExitCode.OK, told)
    message = f"`{path}` is not what `{policy_path}` means"
    difference = None if isinstance(found, Proof) else found
    return _end(arguments, console, ExitCode.NEGATIVE, message, lines, difference)


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
