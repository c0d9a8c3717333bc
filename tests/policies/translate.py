"""Public destination lists → documents of the language, each entry with the events that show it.

Every entry becomes exactly one of: a `Destination` (its sentences, what it must let through and what it
must not), a `Beyond` (a document of its own that the tool must refuse), or a `Silent` (nothing to say).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flow_lists import flow, grammar
from host_lists import hosts, networks
from public_lists import Beyond, Destination, Part, Row, Translation, pack
from sandbox_lists import directives, netfilter, settings, system_calls

__all__ = ["translate"]


def translate(given: Row) -> Translation:
    """Return what *given* says in the language."""
    kind = str(given["kind"])
    if kind == "flowproof-flow":
        return Translation(flow(given["entries"]), ".flow.yaml", ())
    if kind == "flowproof-grammar":
        return grammar(given["entries"])
    parts = list(_reader(kind)(given["entries"]))
    parts += [
        Beyond("command", pack([f"deny execute {words}"]))
        for words in given.get("command_rules", {}).get("deny", ())
    ]
    sentences = [s for part in parts if isinstance(part, Destination) for s in part.sentences]
    if kind.startswith(("ci-", "k8s-")):
        sentences.append("deny connect to anything else")
    return Translation(pack(sentences), ".policy.yaml", tuple(parts))


def _reader(kind: str) -> Callable[[list[Row]], Iterator[Part]]:
    if kind.startswith("ci-"):
        return hosts
    return {
        "k8s-egress": networks,
        "agent-sandbox-settings": settings,
        "firejail-netfilter": netfilter,
        "firejail-profile": directives,
    }.get(kind, system_calls)
