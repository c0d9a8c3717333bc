"""``flowproof packs``: the packs that ship with flowproof, to choose from, to read and to copy."""

from __future__ import annotations

import os

from flowproof.cli.arguments import UsageError
from flowproof.exit_codes import ExitCode
from flowproof.near import near_miss
from flowproof.resources import data, data_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console

__all__ = ["pack_names", "run"]

_ENDING = ".policy.yaml"


def pack_names() -> list[str]:
    """Return the names of the shipped packs, in order. A pack's file is named after it."""
    files = os.listdir(data_path("policies"))
    return sorted(name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))


def run(arguments: Arguments, console: Console) -> int:
    """List the packs with their titles, print one, or say where they lie."""
    names = pack_names()
    if not arguments.words:
        where = arguments.given("--path")
        console.out(data_path("policies") if where else _listed(names))
        return ExitCode.OK
    (name,) = arguments.words
    if name not in names:
        near = near_miss(name, names)
        known = ", ".join(f"`{each}`" for each in names)
        raise UsageError(
            f"no pack is named `{name}`", f"did you mean `{near}`?" if near else f"one of {known}"
        )
    parts = ("policies", name + _ENDING)
    console.out(data_path(*parts) if arguments.given("--path") else data(*parts))
    return ExitCode.OK


def _listed(names: list[str]) -> str:
    width = max(map(len, names))
    return "\n".join(f"{name:{width}}  {_title(name)}" for name in names)


def _title(name: str) -> str:
    from flowproof.diagnostics import DiagnosticsError, Report
    from flowproof.source.suite import load

    report = Report()
    suite = load(data_path("policies", name + _ENDING), report)
    if suite is None or report.errors:  # a shipped pack that does not load is a bug
        raise DiagnosticsError(report.errors)
    (loaded,) = suite.packs
    title = loaded.pack.title
    return title.value if title else ""
