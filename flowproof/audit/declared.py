"""What a folder declares today: the controls of its flows and packs, with the digests of their meaning."""

from __future__ import annotations

from flowproof.ir.resolve import resolve_pack, resolve_suite
from flowproof.ir.serialize import digest
from flowproof.source.suite import load
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.diagnostics import Report
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
    """Return what the flows and packs below *path* declare; mistakes are in *report*."""
    suite = load(path, report)
    if suite is None:
        return Folder({}, {})
    flows = {}
    if suite.flows:
        flows = {
            resolved.policy.control: _declaration(resolved)
            for resolved in resolve_suite(suite, report)
        }
    packs = {}
    for loaded in suite.packs:
        if loaded.pack.name is None:
            continue  # it cannot be run alone, so no record speaks of it
        resolved = resolve_pack(loaded, report)
        if resolved is not None:
            packs[resolved.policy.control] = _declaration(resolved)
    return Folder(flows, packs)


def _declaration(resolved: Resolved) -> Declaration:
    policy, place = resolved.policy, resolved.place
    return Declaration(
        policy.control, policy.title, policy.description, place.file, place.line, digest(policy)
    )
