"""A flow or a pack, formatted, with the proof that it means what it meant."""

from __future__ import annotations

from flowproof.diagnostics import Report, Source
from flowproof.fmt.order import reordered
from flowproof.fmt.sentences import rewritten
from flowproof.ir.resolve import resolve_flow, resolve_pack
from flowproof.ir.serialize import digest
from flowproof.source import keys
from flowproof.source.documents import Text
from flowproof.source.flow import read_flow
from flowproof.source.nodes import Mapping
from flowproof.source.pack import read_pack
from flowproof.source.suite import LoadedFlow, LoadedPack
from flowproof.source.yaml_nodes import load
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.source.documents import Control, Pack

    Loaded = LoadedFlow | LoadedPack

__all__ = ["MeaningMovedError", "formatted", "meaning_of"]

_ORDERS: tuple[tuple[str | None, dict[str, bool]], ...] = (
    ("agent", keys.AGENT),
    ("control", keys.CONTROL),
)
_BOM = b"\xef\xbb\xbf"


class MeaningMovedError(Exception):
    """The formatted file would not mean what the file means: a bug of the formatter."""


def meaning_of(loaded: Loaded, report: Report) -> str | None:
    """Return the digest of what a document means, or None with its errors in *report*."""
    if isinstance(loaded, LoadedFlow):
        resolved = resolve_flow(loaded, report)
    else:
        resolved = resolve_pack(_named(loaded), report)
    return None if resolved is None else digest(resolved.policy)


def formatted(loaded: Loaded, data: bytes, before: str) -> bytes:
    """Return *data*, the bytes of a document without errors, in the form that flowproof writes.

    *before* is the digest of its meaning. Raises `MeaningMovedError` where the result would have
    another one, or another command, environment or prompt.
    """
    path = loaded.flow.path if isinstance(loaded, LoadedFlow) else loaded.pack.path
    mark = _BOM if data.startswith(_BOM) else b""
    text = rewritten(*_nodes(data, path))
    for name, order in _ORDERS:
        text = _in_order(text, path, name, order)
    is_flow = isinstance(loaded, LoadedFlow)
    text = _in_order(text, path, None, keys.FLOW if is_flow else keys.PACK)
    result = mark + text.encode("utf-8")
    if result != data:
        _prove(loaded, result, path, before)
    return result


def _nodes(data: bytes, path: str) -> tuple[Source, Mapping]:
    report = Report()
    found = load(data, path, report)
    if found is None or report.errors or not isinstance(found[1], Mapping):
        raise MeaningMovedError(f"`{path}` no longer reads as YAML: {report.errors}")
    return found[0], found[1]


def _in_order(text: str, path: str, name: str | None, order: dict[str, bool]) -> str:
    """Return *text* with the keys of its root, or of the mapping under *name*, in *order*."""
    source, root = _nodes(text.encode("utf-8"), path)
    node = root
    if name is not None:
        found = next((value for key, value in root.entries if key.text.value == name), None)
        if not isinstance(found, Mapping):
            return text
        node = found
    return reordered(source, node, tuple(order))


def _prove(loaded: Loaded, data: bytes, path: str, before: str) -> None:
    report = Report()
    source, root = _nodes(data, path)
    after: Loaded | None = None
    if isinstance(loaded, LoadedFlow):
        flow = read_flow(source, root, path, "", report)
        after = None if flow is None else LoadedFlow(flow, loaded.packs)
    else:
        pack = read_pack(source, root, path, "", report)
        after = None if pack is None else LoadedPack(pack, loaded.packs)
    if after is None or meaning_of(after, report) != before or report.errors:
        raise MeaningMovedError(f"formatting would change what `{path}` means: {report.errors}")
    if _outline(after) != _outline(loaded):
        raise MeaningMovedError(f"formatting would change more of `{path}` than its sentences")


def _outline(loaded: Loaded) -> tuple[object, ...]:
    """Return everything that a document says beside what its sentences mean."""
    if isinstance(loaded, LoadedPack):
        pack = loaded.pack
        return (_value(pack.name), *_shared(pack))
    flow = loaded.flow
    agent = flow.agent
    return (
        flow.name.value,
        agent and (agent.command, agent.cwd, agent.env, agent.timeout, agent.expect_exit),
        flow.control and (flow.control.id.value, *_shared(flow.control)),
        tuple((step.kind, _value(step.text)) for step in flow.steps),
    )


def _shared(holder: Control | Pack) -> tuple[object, ...]:
    return (
        _value(holder.title),
        _value(holder.description),
        tuple(text.value for text in holder.uses),
        tuple(name.value for name, _ in holder.sets),
        tuple(rule_id.value for rule_id, _ in holder.rules),
    )


def _value(text: Text | None) -> str | None:
    return None if text is None else text.value


def _named(loaded: LoadedPack) -> LoadedPack:
    """Return a pack that can stand alone: one that flows use need not have a name of its own."""
    pack = loaded.pack
    if pack.name is not None:
        return loaded
    name = Text(pack.slug, pack.source.span(0), (0,) * (len(pack.slug) + 1))
    return LoadedPack(replace(pack, name=name), loaded.packs)
