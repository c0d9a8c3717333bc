"""``flowproof schema``: the JSON Schemas that flowproof ships, for editors and programs."""

from __future__ import annotations

from flowproof.cli.arguments import UsageError
from flowproof.exit_codes import ExitCode
from flowproof.near import near_miss
from flowproof.resources import data, data_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console

__all__ = ["SCHEMAS", "run"]

SCHEMAS = {
    "flow": "flow.schema.json",
    "policy": "policy.schema.json",
    "ir": "ir.schema.json",
    "artifact": "artifact.schema.json",
    "record": "run-record.schema.json",
    "event": "lane-event.schema.json",
    "report": "report.schema.json",
    "diagnostics": "diagnostics.schema.json",
}
"""Each shipped schema by the name that the command line gives it."""


def run(arguments: Arguments, console: Console) -> int:
    """Print a schema, or where its file lies."""
    (name,) = arguments.words
    if name not in SCHEMAS:
        near = near_miss(name, SCHEMAS)
        listed = ", ".join(f"`{each}`" for each in SCHEMAS)
        raise UsageError(
            f"no schema is named `{name}`",
            f"did you mean `{near}`?" if near else f"one of {listed}",
        )
    parts = ("schema", SCHEMAS[name])
    console.out(data_path(*parts) if arguments.given("--path") else data(*parts))
    return ExitCode.OK
