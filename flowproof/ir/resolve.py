"""Documents → policies: packs taken in, short forms spelt out, what the compiler adds made visible."""

from __future__ import annotations

import re

from flowproof.canonical import printable
from flowproof.ir.check import check_policy
from flowproof.ir.model import OPERATIONS, Destinations, Policy, Rule, Scope
from flowproof.ir.place_rules import origin_of
from flowproof.ir.places import Places
from flowproof.ir.regions import RegionTooLargeError
from flowproof.ir.rules import rule_of
from flowproof.ir.sets import Sets
from flowproof.syntax import tree
from flowproof.syntax.parse import parse_destination, parse_sentence
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.diagnostics import Report, Span
    from flowproof.source.documents import Flow, Pack, Text
    from flowproof.source.suite import LoadedFlow, LoadedPack, Suite

__all__ = ["Resolved", "resolve_flow", "resolve_pack", "resolve_suite"]


class Resolved(Value):
    """A document with the policy that it means. Exactly one of *flow* and *pack* is there."""

    policy: Policy
    flow: Flow | None
    pack: Pack | None
    packs: tuple[Pack, ...]

    @property
    def file(self) -> str:
        """The name that messages give the document."""
        return self.place.file

    @property
    def place(self) -> Span:
        """Where the document names its control: its id or name, else the beginning of the file."""
        if self.flow is not None:
            return self.flow.control.id.span if self.flow.control else self.flow.source.span(0)
        assert self.pack is not None
        return self.pack.name.span if self.pack.name else self.pack.source.span(0)


def resolve_suite(suite: Suite, report: Report) -> tuple[Resolved, ...]:
    """Return the policy of every flow, or of every pack where a suite has no flow.

    Control ids, and rule ids that flows write, are unique across a suite. A document with an error is
    left out; the errors are in *report*.
    """
    resolved: list[Resolved] = []
    controls: dict[str, Span] = {}
    rules: dict[str, Span] = {}
    for loaded in suite.flows:
        flow = loaded.flow
        if flow.control is not None:
            _unique(flow.control.id, "control id", controls, report)
            for rule_id, _ in flow.control.rules:
                _unique(rule_id, "rule id", rules, report)
        found = resolve_flow(loaded, report)
        if found is not None:
            resolved.append(found)
    if not suite.flows:
        for pack in suite.packs:
            alone = resolve_pack(pack, report)
            if alone is not None:
                resolved.append(alone)
    return tuple(resolved)


def _unique(text: Text, what: str, seen: dict[str, Span], report: Report) -> None:
    first = seen.setdefault(text.value, text.span)
    if first.source is not text.span.source:
        report.error(
            "FP501",
            f"{what} `{text.value}` is taken by another flow of the suite",
            text.span,
            "ids are unique across a suite: give this one an id of its own",
            related=((first, "the first one"),),
        )


def resolve_flow(loaded: LoadedFlow, report: Report) -> Resolved | None:
    """Return what a flow and the packs that it takes in mean together, or None with errors reported."""
    flow = loaded.flow
    before = report.failures
    control = flow.control
    control_id = control.id.value if control else flow.slug
    rules: list[Rule] = []
    if control is not None:
        sets = Sets(control.sets, report)
        rules += _written(control.rules, "", sets, None, report)
    else:
        sets = Sets((), report)
    rules += _short_forms(flow, control_id, sets, report)
    rules += _from_packs(loaded.packs, control_id, report)
    policy = _policy(
        control_id,
        control.title.value if control and control.title else None,
        control.description.value if control and control.description else None,
        rules,
        (
            (printable(flow.source.name), flow.sha256),
            *((printable(pack.source.name), pack.sha256) for pack in loaded.packs),
        ),
        report,
    )
    if policy is None or report.failures > before:
        return None
    return Resolved(policy, flow, None, loaded.packs)


def resolve_pack(loaded: LoadedPack, report: Report) -> Resolved | None:
    """Return what a pack means alone: a control whose id is the pack's name, its rule ids bare."""
    pack = loaded.pack
    before = report.failures
    if pack.name is None:
        report.error(
            "FP504",
            "a pack that stands alone needs `policy:`, its name",
            pack.source.span(0),
            f"add `policy: {pack.slug}`",
        )
        return None
    rules = _written(pack.rules, "", Sets(pack.sets, report), None, report)
    rules += _from_packs(loaded.packs, pack.name.value, report)
    policy = _policy(
        pack.name.value,
        pack.title.value if pack.title else None,
        pack.description.value if pack.description else None,
        rules,
        tuple((printable(p.source.name), p.sha256) for p in (pack, *loaded.packs)),
        report,
    )
    if policy is None or report.failures > before:
        return None
    return Resolved(policy, None, pack, loaded.packs)


def _written(
    rules: Iterable[tuple[Text, Text]], prefix: str, sets: Sets, pack: str | None, report: Report
) -> list[Rule]:
    found = []
    for rule_id, text in rules:
        before = report.failures
        sentence = parse_sentence(text, report)
        if sentence is None:
            continue
        try:
            rule = rule_of(prefix + rule_id.value, sentence, sets, report, pack=pack)
        except RegionTooLargeError:
            _too_large(sentence.span, report)
            continue
        if rule is not None and report.failures == before:
            found.append(rule)
    return found


def _too_large(span: Span, report: Report) -> None:
    report.error(
        "FP509",
        "the networks here overlap with too many different lists of ports",
        span,
        "give networks that overlap the same ports, or fewer and wider ranges of them",
    )


def _from_packs(packs: tuple[Pack, ...], control_id: str, report: Report) -> list[Rule]:
    found: list[Rule] = []
    owners: dict[str, Text] = {}
    for pack in packs:
        name = pack.name.value if pack.name else pack.slug
        if pack.name is None:
            report.note(
                "FP504",
                "the pack has no `policy:`, so it cannot be checked, compiled or run alone",
                pack.source.span(0),
                f"add `policy: {pack.slug}`",
            )
        for rule_id, _ in pack.rules:
            first = owners.setdefault(rule_id.value, rule_id)
            if first is not rule_id:
                report.error(
                    "FP502",
                    f"rule id `{rule_id.value}` stands in two packs of one control",
                    rule_id.span,
                    f"rename one of them: both would be `{control_id}/{rule_id.value}`",
                    related=((first.span, "the other one"),),
                )
        owned = tuple((i, text) for i, text in pack.rules if owners[i.value] is i)
        found += _written(owned, f"{control_id}/", Sets(pack.sets, report), name, report)
    return found


def _short_forms(flow: Flow, control_id: str, sets: Sets, report: Report) -> list[Rule]:
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


def _policy(
    control_id: str,
    title: str | None,
    description: str | None,
    rules: list[Rule],
    sources: tuple[tuple[str, str], ...],
    report: Report,
) -> Policy | None:
    by_id: dict[str, Rule] = {}
    for rule in rules:
        other = by_id.setdefault(rule.id, rule)
        if other is not rule:
            assert rule.origin is not None
            report.error(
                "FP502", f"two rules are `{rule.id}`", rule.origin.span, "rename one of them"
            )
    ordered = tuple(by_id[rule_id] for rule_id in sorted(by_id))
    policy = Policy(control_id, title, description, ordered, sources)
    policy = replace(policy, rules=_in_order(ordered, _defaults(policy)))
    try:
        check_policy(policy, report)
    except RegionTooLargeError:
        largest = max(ordered, key=lambda rule: sum(len(box[4]) for box in rule.targets.region))
        assert largest.origin is not None
        assert largest.origin.span is not None
        _too_large(largest.origin.span, report)
        return None
    return replace(policy, rules=_in_order(policy.rules, _implied(policy)))


def _in_order(rules: tuple[Rule, ...], more: list[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted((*rules, *more), key=lambda rule: rule.id))


def _defaults(policy: Policy) -> list[Rule]:
    """Return the default of each action that some ``allow`` names: what is not allowed is refused."""
    allows = [rule for rule in policy.rules if rule.verb == "allow"]
    allowed = {rule.action for rule in allows}
    return (
        [
            Rule(
                id=f"{policy.control}.default.{action}",
                verb="deny",
                action=action,
                targets=Destinations(otherwise=(Scope(()),)),
                exceptions=Destinations(),
                kind="default",
                sentence=f"deny {action} {'to' if action == 'connect' else 'on'} anything else",
            )
            for action in ("connect", "listen")
            if action in allowed
        ]
        + [
            Rule(
                id=f"{policy.control}.default.{word}",
                verb="deny",
                action=action,
                targets=Destinations(),
                exceptions=Destinations(),
                kind="default",
                sentence=f"deny {word} anywhere else",
                operations=operations,
                places=Places("anywhere", (), otherwise=True),
            )
            for word, action, operations in (
                *((operation, "files", (operation,)) for operation in OPERATIONS),
                ("execute", "execute", ()),
            )
            if any(
                rule.action == action and (not operations or operations[0] in rule.operations)
                for rule in allows
            )
        ]
        + [
            Rule(
                id=f"{policy.control}.default.call",
                verb="deny",
                action="call",
                targets=Destinations(),
                exceptions=Destinations(),
                kind="default",
                sentence="deny call *",
                tools=("*",),
            )
            for _ in allowed & {"call"}
        ]
    )


_IMPLIED = {
    "families": "deny connect to sockets of other families, types and protocols",
    "foreign-abi": "deny calls by a foreign ABI",
    "io-uring": "deny io_uring",
    "unix": "deny connect to unix sockets outside the run",
    "listen": "deny listen off loopback",
    "unreadable": "deny connect to addresses of no known kind",
}


def _implied(policy: Policy) -> list[Rule]:
    """Return the rules of the fixed meanings that refuse where no rule of the author's does."""
    if not policy.actions & {"connect", "listen", "files"}:
        return []  # no lane is trapped
    connect = [rule for rule in policy.rules if rule.action == "connect" and rule.refuses]
    caught = any(rule.targets.bare_otherwise or rule.targets.bare_anything for rule in connect)
    meanings = []
    if not caught:
        meanings += ["foreign-abi", "io-uring"]
        if policy.connect_denies:
            meanings += ["families", "unix"]
        if "connect" in policy.actions:
            meanings.append("unreadable")
    if policy.connect_denies and not any(
        rule.action == "listen" and rule.kind == "default" for rule in policy.rules
    ):
        meanings.append("listen")
    return [
        Rule(
            id=f"{policy.control}.implied.{meaning}",
            verb="deny",
            action="listen" if meaning == "listen" else "connect",
            targets=Destinations(),
            exceptions=Destinations(),
            kind="implied",
            sentence=_IMPLIED[meaning],
            meaning=meaning,
        )
        for meaning in meanings
    ]
