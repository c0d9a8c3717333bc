"""What a reviewer reads of any artifact: its rules, how well they are carried, and the decision tables."""

from __future__ import annotations

from itertools import zip_longest

from flowproof.addresses import LAST
from flowproof.ir.cells import interval_words, port_words
from flowproof.ir.ports import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flowproof.artifact.model import Artifact, Decision, Entry, Plane, PortTable, Rule, Symbol

__all__ = [
    "columns",
    "decided",
    "differences",
    "fidelity",
    "heading",
    "rules",
    "some",
    "symbols",
    "tables",
]

_PLANES = {
    "tcp4": "connect tcp, IPv4",
    "udp4": "connect udp, IPv4",
    "tcp6": "connect tcp, IPv6",
    "udp6": "connect udp, IPv6",
    "listen4": "listen, IPv4",
    "listen6": "listen, IPv6",
    "listen-any4": "listen on 0.0.0.0 (every IPv4 address)",
    "listen-any6": "listen on :: (every address)",
}
_SPECIAL = {
    "families": "a socket of another family, type or protocol",
    "foreign-abi": "a call of another ABI",
    "unreadable": "an address of no known kind",
    "unix": "a unix socket outside the run that no rule names",
}
_WIDEST = {"4": 33, "6": 48}  # characters of an interval of addresses, of all but a few of IPv6
_SHOWN = 4  # ids of a list that has more than one of them to spare


def some(ids: Iterable[str]) -> str:
    """Return *ids* as text, the first few of many."""
    listed = list(ids)
    if len(listed) > _SHOWN + 1:
        return f"{', '.join(listed[:_SHOWN])} and {len(listed) - _SHOWN} more"
    return ", ".join(listed)


def columns(
    rows: Sequence[Sequence[str]], indent: str = "  ", least: Sequence[int] = ()
) -> Iterator[str]:
    """Yield *rows* with every column but the last as wide as its widest cell, and *least* at the least:
    a row more then moves no other.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    widths = [max(pair) for pair in zip_longest(widths, least, fillvalue=0)]
    for cells in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells[:-1], widths, strict=False)]
        yield (indent + "  ".join((*padded, cells[-1]))).rstrip()


def heading(artifact: Artifact) -> Iterator[str]:
    """Yield whose filter this is."""
    yield f"control  {artifact.control}{f' ({artifact.title})' if artifact.title else ''}"
    yield f"target   {artifact.target}"
    yield f"meaning  {artifact.digests.get('ir', 'no digest')}"
    # how far a proof went changes with any rule: the artifact has it whole
    yield f"proof    {artifact.verification.partition(' (')[0]}"


def rules(artifact: Artifact) -> Iterator[str]:
    """Yield the rules by index, each with its claim and its place."""
    yield "Rules"
    rows = [
        (f"[{at}]", rule.id, rule.claim, rule.kind, rule.sentence + _place(rule))
        for at, rule in enumerate(artifact.rules)
    ]
    yield from columns(rows) if rows else ("  none",)


def _place(rule: Rule) -> str:
    if rule.origin is None:
        return ""
    pack = f", pack {rule.origin.pack}" if rule.origin.pack else ""
    return f"  ({rule.origin.file}:{rule.origin.line}:{rule.origin.column}{pack})"


def fidelity(artifact: Artifact) -> Iterator[str]:
    """Yield how well each rule and each fixed meaning in force is carried."""
    yield "Fidelity"
    rows = [
        (
            row.subject,
            f"refusing {row.refusing or '—'}",
            f"counting {row.counting or '—'}",
            row.reason or "",
        )
        for row in artifact.fidelity
    ]
    yield from columns(rows) if rows else ("  nothing to carry",)


def differences(artifact: Artifact) -> Iterator[str]:
    """Yield where the target does otherwise than the decision tables, which are what Linux decides by."""
    if not artifact.differences:
        return
    yield "Differences from the decisions, which are what Linux does"
    rows = [
        (one.subject, one.kind, one.where, some(one.cells), f"{one.policy}; here {one.target}")
        for one in artifact.differences
    ]
    yield from columns(rows)


def symbols(artifact: Artifact) -> Iterator[str]:
    """Yield what a run binds to addresses before it starts, and what ``--hosts`` bound already."""
    if artifact.symbols:
        yield "Bound when a run starts"
        rows = [
            (
                artifact.rules[symbol.rule].id,
                "except" if symbol.role == "except" else artifact.rules[symbol.rule].verb,
                _symbol(symbol),
                " and ".join(symbol.protocols),
                port_words(symbol.ports),
            )
            for symbol in artifact.symbols
        ]
        yield from columns(rows)
    if artifact.hosts:
        yield "Bound by the hosts given"
        yield from columns(
            [(name, ", ".join(found)) for name, found in sorted(artifact.hosts.items())]
        )


def _symbol(symbol: Symbol) -> str:
    match symbol.kind:
        case "wildcard":
            return f"*.{symbol.value}"
        case "variable":
            return f"${{{symbol.value}}}"
        case _:
            return symbol.value


def tables(artifact: Artifact) -> Iterator[str]:
    """Yield the decision of every cell, planes that are alike once."""
    held = artifact.tables
    words = [_words(entry, artifact) for entry in held.entries]
    shown: dict[Plane, str] = {}
    yield "Decisions"
    for name, title in _PLANES.items():
        plane = held.planes[name]
        same = shown.get(plane) if not name.startswith("listen-any") else None
        if same is not None and same[-1] == name[-1]:
            yield f"  {title}: as {_PLANES[same]}"
            continue
        shown.setdefault(plane, name)
        yield f"  {title}"
        least = (_WIDEST[name[-1]], len("ports 65534-65535"))
        yield from columns(list(_cells(name, plane, held.ports, words)), "    ", least)
    unseen = _unseen(artifact)
    yield "  besides"
    rows = [
        (_SPECIAL[name], f"see meaning:{name}" if name in unseen else words[entry])
        for name, entry in sorted(held.special.items())
    ]
    yield from columns(rows, "    ")
    if held.unix and "unix" not in unseen:
        yield "  unix sockets"
        yield from columns(
            [
                (row.path, where, words[entry])
                for row in held.unix
                for where, entry in (("outside", row.outside), ("inside", row.inside))
            ],
            "    ",
        )


def _unseen(artifact: Artifact) -> set[str]:
    """Return the fixed meanings that the target does not see: the tables hold decisions about them that it
    never makes, and a listing that showed those would promise them.
    """
    return {
        row.subject.removeprefix("meaning:")
        for row in artifact.fidelity
        if row.subject.startswith("meaning:") and row.refusing == "not-applicable"
    }


def _cells(
    name: str, plane: Plane, ports: tuple[PortTable, ...], words: list[str]
) -> Iterator[tuple[str, str, str]]:
    family = int(name[-1])
    for at, start in enumerate(plane.starts):
        last = plane.starts[at + 1] - 1 if at + 1 < len(plane.starts) else LAST[family]
        table = ports[plane.cells[at]]
        where = (
            "every address"
            if name.startswith("listen-any")
            else interval_words(family, start, last)
        )
        for index, low in enumerate(table.starts):
            high = table.starts[index + 1] - 1 if index + 1 < len(table.starts) else LAST_PORT
            text = words[table.entries[index]]
            yield (where if index == 0 else "", port_words(((low, high),)), text)


def _words(entry: Entry, artifact: Artifact) -> str:
    decision = entry.decide(artifact.rules)
    return decided(decision, artifact.rules)


def decided(decision: Decision, known: Sequence[Rule]) -> str:
    """Return a decision in words."""
    by = "no rule" if decision.by is None else known[decision.by].id
    parts = [f"{'refused' if decision.refused else 'let through'} by {by}"]
    if decision.asserting:
        parts.append(f"counted by {some(known[at].id for at in decision.asserting)}")
    if decision.observing:
        parts.append(f"told by {some(known[at].id for at in decision.observing)}")
    return ", ".join(parts)
