"""What a machine lacks for a test: a skip that prints why, and a failure under CI."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import NoReturn

import pytest

__all__ = ["PATH", "installed", "installed_module", "missing", "under_ci"]

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
"""Where the programs of the tests lie, for every user alike."""


def under_ci() -> bool:
    """Say whether this is CI, where a missing capability is a failure and never a skip."""
    return os.environ.get("CI", "") not in ("", "0", "false")


def missing(capability: str) -> NoReturn:
    """End the test: this machine lacks *capability*."""
    if under_ci():
        pytest.fail(f"missing capability under CI: {capability}", pytrace=False)
    pytest.skip(f"missing capability: {capability}")


def installed(program: str) -> str:
    """Return the path of *program*; end the test where it is not installed."""
    return shutil.which(program, path=PATH) or missing(f"`{program}`")


def installed_module(module: str) -> None:
    """End the test where the system's Python does not know *module*."""
    ran = subprocess.run(
        ["/usr/bin/python3", "-c", f"import {module}"], capture_output=True, check=False
    )
    if ran.returncode != 0:
        missing(f"the module `{module}` for /usr/bin/python3")
