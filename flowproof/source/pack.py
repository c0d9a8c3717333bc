"""The pack document: ``*.policy.yaml`` from nodes to `Pack`."""

from __future__ import annotations

import os

from flowproof.source import keys, shapes
from flowproof.source.documents import Pack, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Source
    from flowproof.source.nodes import Mapping, Scalar, Sequence

__all__ = ["SUFFIX", "read_pack"]

SUFFIX = ".policy.yaml"


def read_pack(
    source: Source, root: Scalar | Sequence | Mapping, path: str, sha256: str, report: Report
) -> Pack | None:
    """Return the pack of a document, or None where nothing of it can be used.

    A pack without ``policy:`` is read: whether its file name serves is decided where it is used.
    """
    found = keys.fields(root, keys.PACK, "a pack", source.span(0), report)
    if found is None:
        return None
    name, title, description = (
        shapes.string(found[key][1], f"`{key}`", report) if key in found else None
        for key in ("policy", "title", "description")
    )
    if name is not None:
        name = shapes.identifier(name, "a pack", report)
    return Pack(
        source,
        path,
        name,
        slug(os.path.basename(path).removesuffix(SUFFIX)),
        title,
        description,
        shapes.strings(found["uses"][1], "`uses`", report) if "uses" in found else (),
        shapes.sets(found["sets"][1], report) if "sets" in found else (),
        shapes.rules(found["rules"][1], report) if "rules" in found else (),
        sha256,
    )
