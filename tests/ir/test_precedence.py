"""Precedence, written from the text of the language page: random rules against a model of their own.

Rules are written as sentences into flow and pack files and read back by the compiler; the model of
`language_model.py` reads nothing of it. Quotations are the page's.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import language_model as model
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language_model import AnyRule, FileRule, Rule, Said
from random_policies import (
    ADDRESSES,
    CONNECTS,
    FILES,
    LISTENS,
    SOCKETS,
    UNSPECIFIED,
    flow_text,
    pack_text,
    policy_at,
    rule_lists,
    write,
)

from flowproof.diagnostics import Report
from flowproof.ir import events as ir_events
from flowproof.ir.evaluate import Evaluation, evaluate
from flowproof.ir.events import parse_event
from flowproof.ir.model import Policy

Event = model.NetworkEvent | model.Listen | model.File

# What random rules may run into, and what each must mean when they do
SHADOWED, COVERS_NOTHING, LEAVES_NOTHING = "FP515", "FP514", "FP511"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("precedence")


def said(control: str, rules: list[AnyRule], event: Event) -> Said:
    match event:
        case model.Listen():
            return model.listen(control, rules, event, (*ADDRESSES, *UNSPECIFIED))
        case model.File():
            return model.files(control, rules, event)
        case _:
            return model.connect(control, rules, event)


@cache
def parsed(text: str) -> ir_events.Event:
    report = Report()
    event = parse_event(text, report)
    assert event is not None, (text, list(report))
    return event


def judged(policy: Policy, event: Event) -> Evaluation:
    return evaluate(policy, parsed(str(event)))


def agree(policy: Policy, rules: list[AnyRule], events: tuple[Event, ...] | list[Event]) -> None:
    for event in events:
        expected, found = said(policy.control, rules, event), judged(policy, event)
        shown = (str(event), [f"{rule.id}: {rule.sentence}" for rule in rules])
        assert found.handling == expected.handling, shown
        assert expected.by in {found.by, "?"}, (shown, expected, found)
        assert found.asserting == expected.asserting, (shown, expected)
        assert found.verdict == ("fail" if expected.asserting else "none"), shown


def refused_as_it_should_be(
    report: Report, rules: list[AnyRule], events: tuple[Event, ...]
) -> bool:
    """Tell whether rules were refused, and hold each such error against the model."""
    for error in report.errors:
        assert error.code in {SHADOWED, COVERS_NOTHING, LEAVES_NOTHING}, (error, rules)
        assert error.span is not None
        line = error.span.source.line(error.span.line)
        rule = next(rule for rule in rules if f" {rule.id.removeprefix('c/')}:" in line)
        for event in events:
            found = said("c", rules, event)
            if error.code == SHADOWED:
                assert not (found.handling == "let-through" and found.by == rule.id), (error, event)
            elif rule.verb in model.ASSERTING and error.code == LEAVES_NOTHING:
                assert rule.id not in found.asserting, (error, event)
    return bool(report.errors)


def _sample(events: tuple[Event, ...], seed: int) -> list[Event]:
    """Return some of *events*: all sockets, and others by *seed*."""
    sockets = [event for event in events if isinstance(event, model.Socket)]
    return [*sockets, *random.Random(seed).sample(events, 40)]


@settings(deadline=None, max_examples=70)
@given(rule_lists("connect"), st.integers(0, 99))
def test_a_connect_is_handled_and_counted_as_the_page_says(
    folder: Path, rules: list[AnyRule], seed: int
) -> None:
    write(folder, c_flow=flow_text(rules))
    policy, report = policy_at(folder / "c.flow.yaml")
    if refused_as_it_should_be(report, rules, CONNECTS[::7]):
        return
    assert policy is not None
    agree(policy, rules, _sample(CONNECTS, seed))


@settings(deadline=None, max_examples=60)
@given(rule_lists("connect", "listen", "listen"), st.integers(0, 99))
def test_a_listen_is_handled_and_counted_as_the_page_says(
    folder: Path, rules: list[AnyRule], seed: int
) -> None:
    write(folder, c_flow=flow_text(rules))
    policy, report = policy_at(folder / "c.flow.yaml")
    if refused_as_it_should_be(report, rules, LISTENS[::3]):
        return
    assert policy is not None
    agree(policy, rules, _sample(LISTENS, seed))


@settings(deadline=None, max_examples=70)
@given(rule_lists("files"), st.integers(0, 99))
def test_an_attempt_at_a_file_is_handled_and_counted_as_the_page_says(
    folder: Path, rules: list[AnyRule], seed: int
) -> None:
    write(folder, c_flow=flow_text(rules))
    policy, report = policy_at(folder / "c.flow.yaml")
    if refused_as_it_should_be(report, rules, FILES[::2]):
        return
    assert policy is not None
    agree(policy, rules, _sample(FILES, seed))


MIXED: tuple[Event, ...] = (*SOCKETS, *CONNECTS[::5], *LISTENS[::5], *FILES[::5])


@settings(deadline=None, max_examples=40)
@given(rule_lists("connect", "listen", "files", most=7), st.randoms(use_true_random=False))
def test_the_order_in_which_rules_are_written_never_matters(
    folder: Path, rules: list[AnyRule], order: random.Random
) -> None:
    """ "**Handling** of one attempt, independent of the order in which rules are written.\""""
    shuffled = rules.copy()
    order.shuffle(shuffled)
    write(folder, c_flow=flow_text(rules), d_flow=flow_text(shuffled))
    policy, report = policy_at(folder / "c.flow.yaml")
    other, again = policy_at(folder / "d.flow.yaml")
    assert {(e.code, e.message) for e in report.errors} == {
        (e.code, e.message) for e in again.errors
    }
    if policy is None or other is None:
        assert policy is other
        return
    agree(policy, rules, (*SOCKETS, *MIXED[::7]))
    for event in MIXED[::5]:
        assert judged(policy, event) == judged(other, event)


@settings(deadline=None, max_examples=40)
@given(
    rule_lists("connect", "listen", "files", most=7),
    st.integers(0, 7),
    st.integers(0, 7),
)
def test_rules_mean_the_same_in_a_pack_as_in_the_flow(
    folder: Path, rules: list[AnyRule], first: int, second: int
) -> None:
    """A flow, a pack and a pack of that pack: "a rule that comes from a pack is `<control id>/<rule id>`"."""
    own, near, far = rules[:first], rules[first : first + second], rules[first + second :]
    write(
        folder,
        c_flow=flow_text(own, ["p.policy.yaml", "q.policy.yaml"]),
        p_policy=pack_text(near, "p").replace("rules:", "uses: [q.policy.yaml]\nrules:", 1),
        q_policy=pack_text(far, "q"),
    )
    policy, report = policy_at(folder / "c.flow.yaml")
    moved: list[AnyRule] = [*own, *(_renamed(rule) for rule in (*near, *far))]
    if refused_as_it_should_be(report, moved, MIXED[::9]):
        return
    assert policy is not None
    agree(policy, moved, (*SOCKETS, *MIXED[::7]))


def _renamed(rule: AnyRule) -> AnyRule:
    fields = {field: getattr(rule, field) for field in rule.__dataclass_fields__}
    return type(rule)(**{**fields, "id": f"c/{rule.id}"})


@settings(deadline=None, max_examples=40)
@given(rule_lists("connect", "listen", "files"), rule_lists("connect", "listen", "files"))
def test_a_pack_is_opened_only_by_what_is_printed(
    folder: Path, own: list[AnyRule], packed: list[AnyRule]
) -> None:
    """ "A pack's *named* refusals cannot be opened by the flow that uses the pack; its catch-all shrinks with
    the flow's allows, and its `allow` rules widen the flow: `check` and `compile` print each of those."
    """
    write(
        folder,
        c_flow=flow_text(own, ["p.policy.yaml"]),
        d_flow=flow_text(own),
        p_policy=pack_text(packed),
    )
    both, _ = policy_at(folder / "c.flow.yaml")
    alone, _ = policy_at(folder / "d.flow.yaml")
    pack, _ = policy_at(folder / "p.policy.yaml")
    if both is None or alone is None or pack is None:
        return
    ids = {rule.id for rule in packed}
    opened = {
        rule.id for rule in both.rules if rule.verb == "allow" and rule.origin and rule.origin.pack
    }
    assert opened == {f"c/{rule.id}" for rule in packed if rule.verb == "allow"}
    # an `except` of a refusal lets a unix socket and a listen through what its fixed meaning refuses
    leaving = any(rule.exceptions for rule in packed if isinstance(rule, Rule))
    allowing = {rule.id for rule in own if rule.verb == "allow"}
    for event in MIXED[::6]:
        before, after, bare = judged(pack, event), judged(both, event), judged(alone, event)
        if before.handling == "refused" and before.by in ids and after.handling == "let-through":
            # only an `allow` of the flow opens what the pack's catch-all refused, never a named refusal
            by = next(rule for rule in packed if rule.id == before.by)
            assert after.by in allowing or isinstance(event, model.File), (str(event), own, packed)
            assert _catches(by), (str(event), own, packed)
        if bare.handling == "refused" and after.handling == "let-through":
            assert opened or leaving, (str(event), own, packed)


def _catches(rule: AnyRule) -> bool:
    if isinstance(rule, FileRule):
        return rule.kind == "anywhere else"
    return any(target.host == "anything else" for target in rule.targets)


@settings(deadline=None, max_examples=40)
@given(rule_lists("connect", "listen", "files", most=6), st.integers(0, 5))
def test_a_rule_more_never_opens_a_named_refusal_and_never_uncounts(
    folder: Path, rules: list[AnyRule], at: int
) -> None:
    """Adding an `allow` opens nothing that a named target refused, and what an `expect no` or a `never`
    counts by name is counted "whichever rule handled it".
    """
    extra = rules[at % len(rules)]
    write(folder, c_flow=flow_text(rules), d_flow=flow_text([r for r in rules if r is not extra]))
    more, _ = policy_at(folder / "c.flow.yaml")
    less, _ = policy_at(folder / "d.flow.yaml")
    if more is None or less is None:
        return
    by_id = {rule.id: rule for rule in rules}
    for event in MIXED[::6]:
        before, after = judged(less, event), judged(more, event)
        counted = {rule_id for rule_id in before.asserting if not _catches(by_id[rule_id])}
        assert counted <= set(after.asserting), (str(event), rules)
        if before.handling == "refused" and before.by in by_id and not _catches(by_id[before.by]):
            assert after.handling == "refused", (str(event), rules)
        if extra.verb in {"observe", "expect no"} and str(event) != "foreign connect":
            # "`observe` and `expect no` never handle"
            assert (before.handling, before.by) == (after.handling, after.by), (str(event), rules)


@settings(deadline=None, max_examples=30)
@given(rule_lists("connect", "listen", "files"))
def test_an_except_narrows_only_its_own_rule(folder: Path, rules: list[AnyRule]) -> None:
    """Beside a rule without its `except`, one with it changes nothing."""
    narrowed = rules[0]
    fields = {field: getattr(narrowed, field) for field in narrowed.__dataclass_fields__}
    none: dict[str, object] = (
        {"excepted_kind": "", "excepted": ()}
        if isinstance(narrowed, FileRule)
        else {"exceptions": ()}
    )
    wide = type(narrowed)(**{**fields, **none, "id": "r.wide"})
    write(folder, c_flow=flow_text([wide, *rules[1:]]), d_flow=flow_text([wide, *rules]))
    without, _ = policy_at(folder / "c.flow.yaml")
    beside, _ = policy_at(folder / "d.flow.yaml")
    if without is None or beside is None:
        return
    for event in MIXED[::6]:
        left, right = judged(without, event), judged(beside, event)
        assert left.handling == right.handling, (str(event), rules)
        assert set(left.asserting) <= set(right.asserting) <= {*left.asserting, narrowed.id}


@pytest.mark.parametrize(
    ("sentences", "event", "expected"),
    [
        # a listen on every address is one on loopback: what says something of that holds
        (["deny listen on 127.0.0.1"], "listen tcp 0.0.0.0:80", ("refused", "r.0", ())),
        (["expect no listen on ::1"], "listen tcp [::]:80", ("let-through", None, ("r.0",))),
        (["expect no listen on ::1"], "listen tcp 0.0.0.0:80", ("let-through", None, ())),
        # a path named under any verb but `allow` holds for inside sockets too
        (["allow connect to unix:/x"], "inside unix:/x", ("let-through", None, ())),
        (["allow connect to unix:/x"], "connect unix:/x", ("let-through", "r.0", ())),
        # refused as soon as any lane is trapped
        (
            ["expect no delete under /x"],
            "foreign connect",
            ("refused", "c.implied.foreign-abi", ()),
        ),
        (["deny call x"], "foreign connect", ("let-through", None, ())),
        # under `allow`, a rename needs both its ends inside
        (
            ["allow rename under /a", "allow rename under /b"],
            "rename /a/x -> /b/x",
            ("refused", "c.default.rename", ()),
        ),
        (["allow rename under /a, /b"], "rename /a/x -> /b/x", ("let-through", "r.0", ())),
    ],
)
def test_what_random_rules_once_found(
    folder: Path,
    sentences: list[str],
    event: str,
    expected: tuple[str, str | None, tuple[str, ...]],
) -> None:
    rules = "".join(f"    r.{at}: {sentence}\n" for at, sentence in enumerate(sentences))
    write(folder, c_flow=f"name: T\ncontrol:\n  id: c\n  rules:\n{rules}")
    policy, _ = policy_at(folder / "c.flow.yaml")
    assert policy is not None
    found = evaluate(policy, parsed(event))
    assert (found.handling, found.by, found.asserting) == expected
