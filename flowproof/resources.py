"""The data that ships with flowproof: grammar, schemas, packs and diagnostic pages."""

from __future__ import annotations

import os

__all__ = ["data", "data_path"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def data_path(*parts: str) -> str:
    """Return the path of a shipped data file, e.g. ``data_path("grammar", "control.lark")``.

    In a wheel it lies under ``flowproof/_data``, in a checkout beside the package. Never the working
    folder: a repository that is being checked could supply its own grammar or packs there.
    """
    packaged = os.path.join(_PACKAGE, "_data")
    if os.path.isdir(packaged):
        return os.path.join(packaged, *parts)
    checkout = os.path.dirname(_PACKAGE)
    if os.path.isfile(os.path.join(checkout, "pyproject.toml")):
        return os.path.join(checkout, *parts)
    raise FileNotFoundError("flowproof is installed without its grammar, schemas and packs")


def data(*parts: str) -> str:
    """Return the text of a shipped data file."""
    with open(data_path(*parts), encoding="utf-8", newline="") as file:
        return file.read()
