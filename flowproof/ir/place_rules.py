"""One sentence about files, programs or tools → one rule."""

from __future__ import annotations

from flowproof.canonical import printable
from flowproof.ir.model import OPERATIONS, Destinations, Origin, Rule
from flowproof.ir.places import Places
from flowproof.syntax import tree
from flowproof.syntax.render import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span

__all__ = ["DESTROY", "origin_of", "place_rule"]

DESTROY = ("delete", "rename", "truncate")
"""The operations that a rule about ``destroy`` is about, each as if written by itself."""


def origin_of(span: Span, pack: str | None) -> Origin:
    """Return the origin of a rule whose sentence is at *span*; its file's name is Unicode text."""
    return Origin(printable(span.file), *span.source.position(span.start), pack, span)


def place_rule(
    rule_id: str, sentence: tree.Sentence, report: Report, *, pack: str | None, kind: str
) -> Rule | None:
    """Return the rule about files, ``execute`` or ``call`` that *sentence* means, or None."""
    action = sentence.action
    before = report.failures
    operations: tuple[str, ...] = ()
    where: tree.Where | None = None
    exceptions: tree.Where | None = None
    tools: tuple[str, ...] = ()
    match action:
        case tree.Files():
            name = "files"
            written = {word for word, _ in action.operations}
            operations = tuple(
                operation
                for operation in OPERATIONS
                if operation in written or ("destroy" in written and operation in DESTROY)
            )
            where, exceptions = action.where, action.exceptions
        case tree.Execute():
            name, where = "execute", action.where
        case tree.Call():
            name, tools = "call", tuple(sorted({tool.text for tool in action.tools}))
        case _:
            raise ValueError(f"not about places: {action}")
    if where is not None and where.otherwise and sentence.verb == "allow":
        report.error(
            "FP513",
            "`anywhere else` is what no `allow` names: `allow` cannot name it",
            where.span,
            "write `anywhere`, or use another verb",
        )
    places = _places(where)
    excepted = _places(exceptions)
    if places is not None and exceptions is not None:
        _check_exceptions(places, exceptions, report)
    if report.failures > before:
        return None
    return Rule(
        id=rule_id,
        verb=sentence.verb,
        action=name,
        targets=Destinations(),
        exceptions=Destinations(),
        kind=kind,
        sentence=render(sentence),
        reason=sentence.reason,
        origin=origin_of(sentence.span, pack),
        operations=operations,
        places=places,
        excepted_places=excepted,
        tools=tools,
    )


def _places(where: tree.Where | None) -> Places | None:
    if where is None:
        return None
    paths = sorted({glob.text for glob in where.paths})  # a set: the digest asks for no order
    return Places(where.kind, tuple(paths), where.otherwise)


def _check_exceptions(places: Places, exceptions: tree.Where, report: Report) -> None:
    if exceptions.kind == "anywhere":
        report.error(
            "FP510",
            "`anywhere` is not inside what the rule is about"
            if places.kind != "anywhere"
            else "`except anywhere` leaves nothing of the rule",
            exceptions.span,
            "an exception takes some places out of the targets; name them",
        )
        return
    before = report.failures
    for glob in exceptions.paths:
        one = Places(exceptions.kind, (glob.text,))
        if not places.covers(one):
            report.error(
                "FP510",
                f"`{glob.text}` is not inside what the rule is about",
                glob.span,
                "an exception takes something out of the targets; write one that lies inside",
            )
        elif places.kind != "anywhere" and one.covers(places):
            report.error(
                "FP511",
                "`except` leaves nothing of the rule",
                glob.span,
                "narrow the exception, or take the rule out",
            )
    every = Places(exceptions.kind, tuple(glob.text for glob in exceptions.paths))
    if report.failures == before and places.kind != "anywhere" and every.covers(places):
        report.error(
            "FP511",
            "`except` leaves nothing of the rule",
            exceptions.span,
            "narrow the exception, or take the rule out",
        )
