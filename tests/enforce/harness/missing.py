"""What a machine lacks for a test: a skip that prints why, and a failure under CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["missing", "under_ci"]


def under_ci() -> bool:
    """Say whether this is CI, where a missing capability is a failure and never a skip."""
    return os.environ.get("CI", "") not in ("", "0", "false")


def missing(capability: str) -> NoReturn:
    """End the test: this machine lacks *capability*."""
    if under_ci():
        pytest.fail(f"missing capability under CI: {capability}", pytrace=False)
    pytest.skip(f"missing capability: {capability}")
