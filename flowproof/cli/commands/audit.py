"""``flowproof audit``: the control map of a folder, judged anew from its records."""

from __future__ import annotations

import os

from flowproof.audit.report import audit
from flowproof.cli.answers import because_of, exit_data, json_text
from flowproof.cli.arguments import UsageError
from flowproof.cli.console import printable
from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console

__all__ = ["run"]


def run(arguments: Arguments, console: Console) -> int:
    """Audit one folder."""
    (path,) = arguments.words
    if not os.path.isdir(path):
        raise UsageError(
            f"`{path}` is no folder", "name the folder of the flows, or the one given to `--record`"
        )
    report = Report()
    found = audit(path, arguments.get("--run"), report)
    if report.errors:
        return _refuse(report, arguments, console)
    if arguments.json:
        from flowproof.audit.formats.as_json import report_data

        console.out(json_text(report_data(found)))
    else:
        from flowproof.audit.formats.as_text import report_text

        console.out(report_text(found, printable))
    return found.exit.code


def _refuse(report: Report, arguments: Arguments, console: Console) -> int:
    """Flows that do not hold: whether their records are still about them cannot be told."""
    code = ExitCode(DiagnosticsError(report.errors).exit)
    console.diagnose(report.errors)
    if arguments.json:
        from flowproof.cli.rendering import as_data

        diagnostics = [as_data(diagnostic) for diagnostic in report.errors]
        because = because_of(report.errors)
        console.out(json_text({"diagnostics": diagnostics, "exit": exit_data(code, because)}))
    return code
