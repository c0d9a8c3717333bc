"""The rows that the measurements fill, and their print."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig

__all__ = ["Row", "python_build", "show"]


class Row:
    """One line of the table: the work, its bound, what was measured, the control, and whether it holds.

    *holds* is None where nothing was measured (*measured* then says why), or where the control says that
    the machine was too noisy to tell.
    """

    def __init__(
        self, work: str, bound: str, measured: str, *, control: str = "", holds: bool | None
    ) -> None:
        self.work, self.bound, self.measured = work, bound, measured
        self.control, self.holds = control, holds


def python_build() -> str:
    """Return what the ratios depend on most: version, path, and how the build was configured.

    A profile-guided build is up to 0.2 better. Distributions may profile in their packaging, which the
    configure arguments do not show; the path tells whose build it is.
    """
    options = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    asked = "with" if "--enable-optimizations" in options else "without"
    build = f"configured {asked} --enable-optimizations"
    where = os.path.realpath(sys.executable)
    return f"Python {platform.python_version()} on {platform.machine()}, {build}, {where}"


def show(rows: list[Row]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| work | bound | measured | bare against bare | holds |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        held = {True: "yes", False: "NO", None: "not told"}[row.holds]
        lines.append(f"| {row.work} | {row.bound} | {row.measured} | {row.control} | {held} |")
    return "\n".join(lines)
