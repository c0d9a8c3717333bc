"""What a folder declares today: the controls of its flows and packs, with the digests of their meaning."""

from __future__ import annotations

import os

from flowproof.diagnostics import Report
from flowproof.ir.resolve import resolve_suite
from flowproof.ir.serialize import digest
from flowproof.source.suite import load
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flowproof.ir.resolve import Resolved

__all__ = ["Declaration", "Folder", "declared"]


class Declaration(Value):
    """A control as written down now. *ir* is the digest of its meaning, *file* and *line* its place."""

    control: str
    title: str | None
    description: str | None
    file: str
    line: int
    ir: str


class Folder(Value):
    """The declarations of a folder by control id: of its *flows*, each of which wants a record, and of its
    *packs*, which want one only where they were run alone.
    """

    flows: Mapping[str, Declaration]
    packs: Mapping[str, Declaration]


def declared(path: str, report: Report) -> Folder:
    """Return what the flows and packs below *path* declare; mistakes in flows are in *report*.

    A pack that does not hold together declares nothing: no run of it can have left a record.
    """
    suite = load(path, report)
    flows = {} if suite is None else _declarations(resolve_suite(suite, report))
    packs: dict[str, Declaration] = {}
    for name in _packs_below(path):
        aside = Report()
        pack = load(name, aside)
        if pack is not None:
            packs |= _declarations(resolve_suite(pack, aside))
    return Folder(flows, packs)


def _packs_below(path: str) -> list[str]:
    """Return the pack files of a folder and its subfolders, hidden ones not, sorted by path."""
    found = []
    for folder, below, files in os.walk(path):
        below[:] = [name for name in below if not name.startswith(".")]
        found += [os.path.join(folder, name) for name in files if name.endswith(".policy.yaml")]
    return sorted(found)


def _declarations(resolved: Iterable[Resolved]) -> dict[str, Declaration]:
    return {found.policy.control: _declaration(found) for found in resolved}


def _declaration(resolved: Resolved) -> Declaration:
    policy, place = resolved.policy, resolved.place
    return Declaration(
        policy.control, policy.title, policy.description, place.file, place.line, digest(policy)
    )
