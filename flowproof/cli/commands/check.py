"""``flowproof check``: every mistake of every file at once, and what is valid but should be said."""

from __future__ import annotations

from flowproof.cli.answers import because_of, exit_data, json_text
from flowproof.cli.carriage import note_uncarried
from flowproof.cli.inputs import read
from flowproof.cli.lint import lint
from flowproof.cli.rendering import as_data
from flowproof.diagnostics import Report, Severity
from flowproof.exit_codes import ExitCode, worst
from flowproof.lower.backend import compile_policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.cli.inputs import Input
    from flowproof.diagnostics import Diagnostic

__all__ = ["run"]

_PLATFORMS = ("linux-x86_64", "windows")
"""One target per platform: the architectures of one platform carry the same."""


def run(arguments: Arguments, console: Console) -> int:
    """Check every path and print what was found."""
    report = Report()
    inputs = [read(path, report) for path in arguments.words]
    for given in inputs:
        for resolved in given.resolved:
            lint(resolved, report)
            artifacts = [compile_policy(resolved.policy, target) for target in _PLATFORMS]
            note_uncarried(artifacts, resolved.policy, report)
    diagnostics = tuple(report)
    empty = [given.path for given in inputs if given.empty]
    code = _exit(diagnostics, empty)
    because = because_of(diagnostics) + [f"no flow in `{path}`" for path in empty]
    if arguments.json:
        console.out(
            json_text(
                {
                    "schema": "flowproof/diagnostics/v1",
                    "controls": _controls(inputs),
                    "diagnostics": [as_data(diagnostic) for diagnostic in diagnostics],
                    "exit": exit_data(code, because),
                }
            )
        )
        return code
    console.diagnose(diagnostics, answer=True)
    for path in empty:
        console.complain(
            f"no flow in `{path}`", "a flow is a file `*.flow.yaml`; a pack is named by itself"
        )
    console.out(_summary(inputs, diagnostics))
    return code


def _exit(diagnostics: tuple[Diagnostic, ...], empty: list[str]) -> ExitCode:
    codes = [ExitCode(d.exit) for d in diagnostics if d.severity is Severity.ERROR]
    codes += [ExitCode.NEGATIVE for d in diagnostics if d.severity is Severity.WARNING]
    codes += [ExitCode.EVIDENCE] if empty else []
    return worst(codes)


def _controls(inputs: list[Input]) -> list[dict[str, object]]:
    return [
        {
            "id": resolved.policy.control,
            "title": resolved.policy.title,
            "file": resolved.file,
            "rules": [rule.id for rule in resolved.policy.rules],
        }
        for given in inputs
        for resolved in given.resolved
    ]


def _summary(inputs: list[Input], diagnostics: tuple[Diagnostic, ...]) -> str:
    parts = [_count(sum(given.documents for given in inputs), "document")]
    for severity in Severity:
        number = sum(d.severity is severity for d in diagnostics)
        if number:
            parts.append(_count(number, severity.value))
    if len(parts) == 1 and not any(given.empty for given in inputs):
        parts.append("nothing objectionable")
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
