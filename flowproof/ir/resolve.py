"""Documents → policies: packs taken in, short forms spelt out, what the compiler adds made visible."""

from __future__ import annotations

from flowproof.canonical import printable
from flowproof.ir.added import defaults, implied
from flowproof.ir.check import check_policy
from flowproof.ir.model import Policy, Rule
from flowproof.ir.regions import RegionTooLargeError
from flowproof.ir.rules import rule_of
from flowproof.ir.sets import Sets
from flowproof.ir.short_forms import short_forms
from flowproof.syntax.parse import parse_sentence
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
    rules += short_forms(flow, control_id, sets, report)
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
    policy = replace(policy, rules=_in_order(ordered, defaults(policy)))
    try:
        check_policy(policy, report)
    except RegionTooLargeError:
        largest = max(ordered, key=lambda rule: sum(len(box[4]) for box in rule.targets.region))
        assert largest.origin is not None
        assert largest.origin.span is not None
        _too_large(largest.origin.span, report)
        return None
    return replace(policy, rules=_in_order(policy.rules, implied(policy)))


def _in_order(rules: tuple[Rule, ...], more: list[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted((*rules, *more), key=lambda rule: rule.id))
