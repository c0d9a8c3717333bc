"""What a reviewer reads of any artifact: its rules, how well they are carried, and what becomes of attempts.

A listing stays still under what does not concern it: every rule has lines of its own, no line is numbered or
as wide as its neighbours, and where a rule was written stands at the end, as a rule in front moves that.
"""

from __future__ import annotations

from flowproof.ir.cells import port_words
from flowproof.lower.rows import rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flowproof.artifact.model import Artifact, Decision, Entry, Rule, Symbol

__all__ = [
    "decided",
    "differences",
    "fidelity",
    "heading",
    "places",
    "row",
    "rules",
    "symbols",
    "tables",
]

_PLANES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("connect, IPv4", (("tcp4", "tcp"), ("udp4", "udp"))),
    ("connect, IPv6", (("tcp6", "tcp"), ("udp6", "udp"))),
    ("listen, IPv4", (("listen4", ""),)),
    ("listen, IPv6", (("listen6", ""),)),
    ("listen on 0.0.0.0 (every IPv4 address)", (("listen-any4", ""),)),
    ("listen on :: (every address)", (("listen-any6", ""),)),
)
_SPECIAL = {
    "families": "a socket of another family, type or protocol",
    "foreign-abi": "a call of another ABI",
    "unreadable": "an address of no known kind",
    "unix": "a unix socket outside the run that no rule names",
}
_CLASS = len("not-applicable")
_WHERE = len("listen-any4")
_SHOWN = 4  # cells of one difference
_CLAIM = len("containment+behaviour")
_KIND = len("short-form")


def row(*cells: str, widths: Sequence[int]) -> str:
    """Return *cells* in columns of *widths*, the last one without any: no row moves another."""
    padded = [cell.ljust(width) for cell, width in zip(cells[:-1], widths, strict=True)]
    return "  ".join((*padded, cells[-1])).rstrip()


def heading(artifact: Artifact) -> Iterator[str]:
    """Yield whose filter this is."""
    yield f"control  {artifact.control}{f' ({artifact.title})' if artifact.title else ''}"
    yield f"target   {artifact.target}"
    yield f"meaning  {artifact.digests.get('ir', 'no digest')}"
    # how far a proof went changes with any rule: the artifact has it whole
    yield f"proof    {artifact.verification.partition(' (')[0]}"


def rules(artifact: Artifact) -> Iterator[str]:
    """Yield the rules in order of id, each with its claim and the parts of a program it asks for."""
    yield "Rules"
    asked: dict[int, list[str]] = {}
    if artifact.program is not None:
        for name, held in sorted(artifact.program.causes.items()):
            for at in held:
                asked.setdefault(at, []).append(name)
    for at, rule in enumerate(artifact.rules):
        pack = f" (pack {rule.origin.pack})" if rule.origin and rule.origin.pack else ""
        parts = f"  [{', '.join(asked[at])}]" if at in asked else ""
        said = f"{rule.id}{pack}: {rule.sentence}{parts}"
        yield f"  {row(rule.claim, rule.kind, said, widths=(_CLAIM, _KIND))}"
    if not artifact.rules:
        yield "  none"


def places(artifact: Artifact) -> Iterator[str]:
    """Yield where each rule was written, last of all: a line more in a file moves those behind it."""
    written = [rule for rule in artifact.rules if rule.origin is not None]
    if written:
        yield "Written at"
        for rule in written:
            yield f"  {rule.id}: {_place(rule)}"


def _place(rule: Rule) -> str:
    assert rule.origin is not None
    return f"{rule.origin.file}:{rule.origin.line}:{rule.origin.column}"


def fidelity(artifact: Artifact) -> Iterator[str]:
    """Yield how well each rule and each fixed meaning in force is carried."""
    yield "Fidelity"
    widths = (_CLASS, _CLASS)
    yield f"  {row('refusing', 'counting', 'of', widths=widths)}"
    written = {rule.id: f" ({_place(rule)})" for rule in artifact.rules if rule.origin is not None}
    for held in artifact.fidelity:
        reason = (held.reason or "").removesuffix(written.get(held.subject, "\n"))
        said = f"{held.subject}: {reason}" if reason else held.subject
        yield f"  {row(held.refusing or '—', held.counting or '—', said, widths=widths)}"


def differences(artifact: Artifact) -> Iterator[str]:
    """Yield where the target does otherwise than the decision tables, which are what Linux decides by."""
    if not artifact.differences:
        return
    yield "Differences from the decisions, which are what Linux does"
    widths = (_CLASS, _WHERE)
    for one in artifact.differences:
        said = f"{one.subject}: {_some(one.cells)}: {one.policy}; here {one.target}"
        yield f"  {row(one.kind, one.where, said, widths=widths)}"


def _some(cells: Sequence[str]) -> str:
    """Return *cells* as text, the first few of many: the artifact has them all."""
    left = len(cells) - _SHOWN
    if left < 2:
        return ", ".join(cells)
    return f"{', '.join(cells[:_SHOWN])} and {left} more"


def symbols(artifact: Artifact) -> Iterator[str]:
    """Yield what a run binds to addresses before it starts, and what ``--hosts`` bound already."""
    if artifact.symbols:
        yield "Bound when a run starts"
        for symbol in artifact.symbols:
            rule = artifact.rules[symbol.rule]
            verb = "except" if symbol.role == "except" else rule.verb
            said = f"{' and '.join(symbol.protocols)}, {port_words(symbol.ports)}"
            yield f"  {rule.id}: {verb} {_symbol(symbol)}, {said}"
    if artifact.hosts:
        yield "Bound by the hosts given"
        for name, found in sorted(artifact.hosts.items()):
            yield f"  {name}: {', '.join(found)}"


def _symbol(symbol: Symbol) -> str:
    match symbol.kind:
        case "wildcard":
            return f"*.{symbol.value}"
        case "variable":
            return f"${{{symbol.value}}}"
        case _:
            return symbol.value


def tables(artifact: Artifact) -> Iterator[str]:
    """Yield what becomes of every attempt: the first row that fits an attempt decides it."""
    held = artifact.tables
    words = [_words(entry, artifact) for entry in held.entries]
    unseen = _unseen(artifact)
    yield "Decisions: of the rows of a kind the first that fits decides"
    for title, planes in _PLANES:
        yield f"  {title}"
        yield from (f"    {line}" for line in rows_of(held, planes, words))
    yield "  besides"
    for name, entry in sorted(held.special.items()):
        said = f"see meaning:{name}" if name in unseen else words[entry]
        yield f"    {row(_SPECIAL[name], said, widths=(max(map(len, _SPECIAL.values())),))}"
    if held.unix and "unix" not in unseen:
        yield "  unix sockets"
        for one in held.unix:
            for where, entry in (("outside", one.outside), ("inside", one.inside)):
                yield f"    {row(where, f'{one.path}: {words[entry]}', widths=(len('outside'),))}"


def _unseen(artifact: Artifact) -> set[str]:
    """Return the fixed meanings that the target does not see: the tables hold decisions about them that it
    never makes, and a listing that showed those would promise them.
    """
    return {
        row.subject.removeprefix("meaning:")
        for row in artifact.fidelity
        if row.subject.startswith("meaning:") and row.refusing == "not-applicable"
    }


def _words(entry: Entry, artifact: Artifact) -> str:
    decision = entry.decide(artifact.rules)
    return decided(decision, artifact.rules)


def decided(decision: Decision, known: Sequence[Rule]) -> str:
    """Return a decision in words."""
    by = "no rule" if decision.by is None else known[decision.by].id
    parts = [f"{'refused' if decision.refused else 'let through'} by {by}"]
    if decision.asserting:
        parts.append(f"counted by {', '.join(known[at].id for at in decision.asserting)}")
    if decision.observing:
        parts.append(f"told by {', '.join(known[at].id for at in decision.observing)}")
    return ", ".join(parts)
