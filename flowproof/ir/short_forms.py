"""Short forms of a flow (`allow_egress`, `assert_no_…`) → the rules that they stand for."""

from __future__ import annotations

import re

from flowproof.ir.model import Destinations, Rule, Scope
from flowproof.ir.place_rules import origin_of
from flowproof.ir.places import Places
from flowproof.ir.rules import rule_of
from flowproof.syntax import tree
from flowproof.syntax.parse import parse_destination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span
    from flowproof.ir.sets import Sets
    from flowproof.source.documents import Flow, Text

__all__ = ["short_forms"]


def short_forms(flow: Flow, control_id: str, sets: Sets, report: Report) -> list[Rule]:
    """Return the rules that the short forms of *flow* stand for; its mistakes are in *report*."""
    found: list[Rule] = []
    agent = flow.agent
    if agent is not None and agent.allow_egress is not None:
        assert agent.allow_egress_span is not None
        found += _allow_egress(agent.allow_egress, control_id, sets, report)
        found.append(_else_rule(f"{control_id}.allow.rest", "deny", agent.allow_egress_span))
    for step in flow.steps:
        if step.kind == "assert_no_egress":
            found.append(_else_rule(f"{control_id}.assert-no-egress", "never", step.span))
        elif step.kind == "assert_no_file_delete":
            found.append(_no_delete_rule(f"{control_id}.assert-no-file-delete", step.span))
    return found


def _allow_egress(
    entries: tuple[Text, ...], control_id: str, sets: Sets, report: Report
) -> list[Rule]:
    found: list[Rule] = []
    slugs: dict[str, Text] = {}
    for entry in entries:
        destination = parse_destination(entry, report)
        if destination is None:
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", entry.value.lower()).strip("-")
        first = slugs.setdefault(slug, entry)
        if first is not entry:
            same = first.value == entry.value
            report.error(
                "FP516",
                f"`{entry.value}` is given twice"
                if same
                else f"`{first.value}` and `{entry.value}` both give the rule id"
                f" `{control_id}.allow.{slug}`",
                entry.span,
                "take one of them out" if same else "write one of them as a rule of its own",
                related=((first.span, "the first one"),),
            )
            continue
        sentence = tree.Sentence(
            "allow", tree.Connect((), (destination,), (), entry.span), None, entry.span
        )
        rule = rule_of(f"{control_id}.allow.{slug}", sentence, sets, report, kind="short-form")
        if rule is not None:
            found.append(rule)
    return found


def _no_delete_rule(rule_id: str, span: Span) -> Rule:
    return Rule(
        id=rule_id,
        verb="expect no",
        action="files",
        targets=Destinations(),
        exceptions=Destinations(),
        kind="short-form",
        sentence="expect no delete under ${cwd}",
        origin=origin_of(span, None),
        operations=("delete",),
        places=Places("under", ("${cwd}",)),
    )


def _else_rule(rule_id: str, verb: str, span: Span) -> Rule:
    return Rule(
        id=rule_id,
        verb=verb,
        action="connect",
        targets=Destinations(otherwise=(Scope(()),)),
        exceptions=Destinations(),
        kind="short-form",
        sentence=f"{verb} connect to anything else",
        origin=origin_of(span, None),
    )
