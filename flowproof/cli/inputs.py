"""What a command is given to work on: a flow, a pack or a folder of flows, read and resolved."""

from __future__ import annotations

import os

from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report
    from flowproof.ir.resolve import Resolved

__all__ = ["Input", "read", "stem_of"]

_ENDINGS = (".flow.yaml", ".policy.yaml", ".flow.yml", ".policy.yml", ".yaml", ".yml")


class Input(Value):
    """A path and what was found there. *documents*: how many flows, or packs, it holds; those with errors
    are counted here and missing in *resolved*.
    """

    path: str
    folder: bool
    documents: int
    resolved: tuple[Resolved, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to judge: a folder without flows."""
        return self.folder and not self.documents


def read(path: str, report: Report) -> Input:
    """Return what *path* holds; mistakes are in *report*."""
    suite = load(path, report)
    folder = os.path.isdir(path)
    if suite is None:
        return Input(path, folder, 1, ())
    documents = len(suite.flows) or len(suite.packs)
    return Input(path, folder, documents, resolve_suite(suite, report))


def stem_of(path: str) -> str:
    """Return the file name of a document without what it ends with: `a/b.flow.yaml` is `b`."""
    name = os.path.basename(path)
    for ending in _ENDINGS:
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name
