"""The table of verdicts: every dimension of the facts, and each single piece of missing evidence."""

from __future__ import annotations

import pytest

from flowproof.exit_codes import ExitCode
from flowproof.record.codes import ADVICE, Code
from flowproof.record.model import End, FaultCount, FidelityRow, Reason, Tier, Verdict
from flowproof.record.verdict import (
    Facts,
    Judgement,
    RuleFacts,
    can_be_judged,
    ended_as_expected,
    judge,
)
from flowproof.values import replace

PASS, FAIL, CAPABILITY = Verdict.PASS, Verdict.FAIL, Verdict.CAPABILITY_ERROR
ENFORCED = Tier("enforced", "seccomp user notification")
OBSERVED = Tier("observed", "seccomp user notification")
NONE = Tier("none", "the self-test failed", Code.CHILD_MEMORY)


def rule(verb: str, counted: int = 0, **changes: object) -> RuleFacts:
    refusing = "exact" if verb in ("deny", "never") else None
    counting = "exact" if verb in ("never", "expect no", "deny") else None
    base = RuleFacts(
        f"r.{verb.replace(' ', '-')}", verb, "connect", "authored", refusing, counting, counted
    )
    return replace(base, **changes)


def facts(*rules: RuleFacts, **changes: object) -> Facts:
    base = Facts(
        rules=rules,
        tiers={"connect": ENFORCED},
        started=True,
        canary=True,
        alive=True,
        received=7,
        answered=7,
        lost=0,
        faults=(),
        meanings=(),
        end=End("exit", 0),
        expect_exit=0,
        survivors=0,
        blocked=(),
        complete=True,
        proof="proven",
    )
    return replace(base, **changes)


def verdict_of(verb: str, **changes: object) -> tuple[Verdict | None, Code | None]:
    ruling = judge("c", facts(rule(verb), **changes)).rules[0]
    return ruling.verdict, ruling.code


@pytest.mark.parametrize("verb", ["deny", "never", "expect no"])
def test_full_evidence_and_no_event_is_a_pass(verb: str) -> None:
    assert verdict_of(verb) == (PASS, None)
    judgement = judge("c", facts(rule(verb)))
    assert (judgement.control.verdict, judgement.exit.code) == (PASS, ExitCode.OK)
    assert judgement.exit.because == ()


@pytest.mark.parametrize("proof", ["claimed", "none"])
@pytest.mark.parametrize("verb", ["deny", "never", "expect no"])
def test_no_rule_passes_by_what_an_artifact_says_of_itself(verb: str, proof: str) -> None:
    assert verdict_of(verb, proof=proof) == (CAPABILITY, Code.NOT_PROVEN)
    judgement = judge("c", facts(rule(verb), proof=proof))
    assert judgement.control.verdict is CAPABILITY
    assert judgement.exit.code is ExitCode.CAPABILITY
    assert "--policy" in judgement.control.explanation


@pytest.mark.parametrize("proof", ["claimed", "none"])
def test_a_counted_event_is_a_fail_without_a_proof_too(proof: str) -> None:
    judgement = judge("c", facts(rule("never", counted=1), proof=proof))
    assert (judgement.control.verdict, judgement.exit.code) == (FAIL, ExitCode.NEGATIVE)


def test_what_else_is_missing_is_told_before_a_proof_is() -> None:
    assert verdict_of("deny", proof="claimed", canary=None) == (CAPABILITY, Code.CANARY)


@pytest.mark.parametrize("verb", ["allow", "observe"])
def test_a_rule_that_claims_nothing_has_no_verdict(verb: str) -> None:
    assert verdict_of(verb) == (None, None)


# what is missing, its code for a containment claim, for a behaviour claim (None: still a pass)
MISSING: list[tuple[str, dict[str, object], Code | None, Code | None]] = [
    ("torn record", {"complete": False}, Code.RECORD_TORN, Code.RECORD_TORN),
    (
        "blocked",
        {"blocked": (Reason(Code.VARIABLE_UNSET, "`${X}` is not set"),), "started": False},
        Code.VARIABLE_UNSET,
        Code.VARIABLE_UNSET,
    ),
    ("never started", {"started": False, "end": None}, Code.NOT_STARTED, Code.NOT_STARTED),
    ("no canary", {"canary": None}, Code.CANARY, Code.CANARY),
    ("canary not held", {"canary": False}, Code.CANARY, Code.CANARY),
    ("dead supervisor", {"alive": False}, Code.SUPERVISOR_LOST, Code.SUPERVISOR_LOST),
    ("unanswered", {"answered": 6}, Code.UNANSWERED, Code.UNANSWERED),
    ("answered too often", {"answered": 8}, Code.UNANSWERED, Code.UNANSWERED),
    ("lost events", {"lost": 1}, Code.EVENTS_LOST, Code.EVENTS_LOST),
    (
        "fault on the lane",
        {"faults": (FaultCount(Code.CHILD_MEMORY, "connect", 1),)},
        Code.CHILD_MEMORY,
        Code.CHILD_MEMORY,
    ),
    (
        "fault on every lane",
        {"faults": (FaultCount(Code.LISTENER_RECEIVE, None, 2),)},
        Code.LISTENER_RECEIVE,
        Code.LISTENER_RECEIVE,
    ),
    (
        "bug in a dead supervisor",
        {"alive": False, "faults": (FaultCount(Code.SUPERVISOR_BUG, None, 1),)},
        Code.SUPERVISOR_BUG,
        Code.SUPERVISOR_BUG,
    ),
    ("fault on another lane", {"faults": (FaultCount(Code.PERFORM, "files", 1),)}, None, None),
    ("lane not engaged", {"tiers": {}}, Code.NOT_ENFORCED, Code.NOT_OBSERVED),
    ("tier none", {"tiers": {"connect": NONE}}, Code.CHILD_MEMORY, Code.CHILD_MEMORY),
    ("tier observed", {"tiers": {"connect": OBSERVED}}, Code.NOT_ENFORCED, None),
    ("wrong exit code", {"end": End("exit", 3)}, None, Code.COMMAND_EXIT),
    ("another exit expected", {"expect_exit": 2}, None, Code.COMMAND_EXIT),
    ("signal", {"end": End("signal", 9)}, None, Code.COMMAND_SIGNAL),
    ("signal under any", {"end": End("signal", 9), "expect_exit": None}, None, Code.COMMAND_SIGNAL),
    ("timeout", {"end": End("timeout", 9), "expect_exit": None}, None, Code.COMMAND_TIMEOUT),
    ("interrupt", {"end": End("interrupt", 2), "expect_exit": None}, None, Code.INTERRUPTED),
    ("end not seen", {"end": None}, None, Code.NOT_OBSERVED),
    ("survivors", {"survivors": 1}, None, Code.SURVIVORS),
    ("any exit", {"end": End("exit", 9), "expect_exit": None}, None, None),
]


@pytest.mark.parametrize(
    ("what", "changes", "deny", "expect"), MISSING, ids=[m[0] for m in MISSING]
)
def test_each_missing_piece_of_evidence_has_its_code(
    what: str, changes: dict[str, object], deny: Code | None, expect: Code | None
) -> None:
    def want(code: Code | None) -> tuple[Verdict, Code | None]:
        return (PASS if code is None else CAPABILITY, code)

    assert verdict_of("deny", **changes) == want(deny)
    behaviour = verdict_of("expect no", **changes)
    assert behaviour == want(expect)
    assert verdict_of("never", **changes) == want(deny or expect)


@pytest.mark.parametrize("verb", ["deny", "never", "expect no"])
@pytest.mark.parametrize(
    "changes", [m[1] for m in MISSING if m[2]], ids=[m[0] for m in MISSING if m[2]]
)
def test_what_no_claim_survives_never_exits_0(verb: str, changes: dict[str, object]) -> None:
    judgement = judge("c", facts(rule(verb), **changes))
    want = ExitCode.OK if judgement.control.verdict is PASS else ExitCode.CAPABILITY
    if "complete" in changes:
        want = ExitCode.EVIDENCE
    assert judgement.exit.code == want
    assert judgement.exit.code != ExitCode.OK or (verb, changes) == (
        "expect no",
        {"tiers": {"connect": OBSERVED}},
    )


@pytest.mark.parametrize("verb", ["never", "expect no"])
@pytest.mark.parametrize("changes", [m[1] for m in MISSING], ids=[m[0] for m in MISSING])
def test_a_counted_event_is_a_fail_whatever_else_is_missing(
    verb: str, changes: dict[str, object]
) -> None:
    judgement = judge("c", facts(rule(verb, counted=2), **changes))
    assert judgement.rules[0].verdict is FAIL
    assert judgement.control.verdict is FAIL
    expected = ExitCode.EVIDENCE if changes.get("complete") is False else ExitCode.NEGATIVE
    assert judgement.exit.code == expected
    assert any("2 attempts were counted" in reason for reason in judgement.exit.because)


def test_a_denied_attempt_keeps_a_deny_rule_at_pass() -> None:
    assert judge("c", facts(rule("deny", counted=5))).rules[0].verdict is PASS


@pytest.mark.parametrize(
    ("verb", "refusing", "counting", "want"),
    [
        ("deny", "exact", None, PASS),
        ("deny", "over-blocks", None, PASS),
        ("deny", "not-applicable", None, PASS),
        ("deny", "observed", None, CAPABILITY),
        ("deny", "over-permits", None, CAPABILITY),
        ("deny", "unsupported", None, CAPABILITY),
        ("deny", None, None, CAPABILITY),
        ("never", "exact", "exact", PASS),
        ("never", "exact", "observed", PASS),
        ("never", "exact", "unsupported", CAPABILITY),
        ("never", "exact", None, CAPABILITY),
        ("never", "unsupported", "exact", CAPABILITY),
        ("never", "over-permits", "exact", CAPABILITY),
        ("expect no", None, "exact", PASS),
        ("expect no", None, "observed", PASS),
        ("expect no", None, "over-permits", CAPABILITY),
        ("expect no", None, "unsupported", CAPABILITY),
        ("expect no", None, None, CAPABILITY),
    ],
)
def test_what_the_artifact_does_not_carry_is_no_pass(
    verb: str, refusing: str | None, counting: str | None, want: Verdict
) -> None:
    ruling = judge("c", facts(rule(verb, refusing=refusing, counting=counting))).rules[0]
    assert ruling.verdict is want
    assert (ruling.code is Code.NOT_CARRIED) == (want is CAPABILITY)


@pytest.mark.parametrize(
    ("refusing", "counting", "broken"),
    [
        ("exact", None, set()),
        ("over-blocks", "observed", set()),
        ("over-permits", None, {"deny", "never"}),
        ("unsupported", "unsupported", {"deny", "never", "expect no"}),
        ("exact", "unsupported", {"never", "expect no"}),
    ],
)
def test_a_fixed_meaning_that_is_not_carried_breaks_the_claims_that_rest_on_it(
    refusing: str, counting: str | None, broken: set[str]
) -> None:
    row = FidelityRow("meaning:loopback", refusing, counting, None)
    for verb in ("deny", "never", "expect no"):
        want = (CAPABILITY, Code.NOT_CARRIED) if verb in broken else (PASS, None)
        assert verdict_of(verb, meanings=(row,)) == want


def control(*rules: RuleFacts, **changes: object) -> Judgement:
    return judge("c", facts(*rules, **changes))


def test_the_control_has_the_worst_verdict_of_its_rules() -> None:
    broken, weak, held = rule("never", counted=1), rule("deny", refusing=None), rule("expect no")
    assert control(held, weak, broken).control.verdict is FAIL
    assert control(held, weak).control.verdict is CAPABILITY
    assert control(held).control.verdict is PASS


def test_a_control_with_a_fail_and_a_capability_error_exits_1_and_says_both() -> None:
    judgement = control(rule("never", counted=1), rule("deny", refusing=None))
    assert judgement.exit.code == ExitCode.NEGATIVE
    assert len(judgement.exit.because) == 2


@pytest.mark.parametrize(
    "rules",
    [(), (rule("allow"),), (rule("observe"),), (rule("allow"), rule("deny", kind="implied"))],
    ids=["empty", "allow", "observe", "implied only"],
)
def test_a_control_without_a_rule_that_can_be_judged_is_unasserted(
    rules: tuple[RuleFacts, ...],
) -> None:
    judgement = control(*rules)
    assert (judgement.control.verdict, judgement.control.code) == (CAPABILITY, Code.UNASSERTED)
    assert judgement.exit.code == ExitCode.CAPABILITY


def test_an_implied_refusal_is_judged_only_where_the_control_claims_containment() -> None:
    implied = rule("deny", kind="implied", id="c.implied.foreign-abi")
    watched = control(rule("expect no"), implied, tiers={"connect": OBSERVED})
    assert watched.control.verdict is PASS
    assert watched.rules[1].verdict is None
    assert control(rule("never"), implied).rules[1].verdict is PASS
    weak = control(rule("never"), implied, tiers={"connect": OBSERVED})
    assert [ruling.verdict for ruling in weak.rules] == [CAPABILITY, CAPABILITY]


def test_a_default_rule_asserts_and_an_implied_one_does_not() -> None:
    assert can_be_judged("deny", "default")
    assert not can_be_judged("deny", "implied")
    assert not can_be_judged("observe", "authored")
    assert control(rule("allow"), rule("deny", kind="default")).control.verdict is PASS


@pytest.mark.parametrize(
    "end", [End("exit", 3), End("signal", 11), End("timeout", 9), End("interrupt", 2)]
)
def test_every_control_held_and_the_command_ended_otherwise_exits_1(end: End) -> None:
    judgement = control(rule("deny"), end=end)
    assert judgement.control.verdict is PASS
    assert judgement.exit.code == ExitCode.NEGATIVE
    assert judgement.exit.reason.startswith(("the command", "the run"))


def test_a_behaviour_claim_with_an_unexpected_end_exits_3_not_1() -> None:
    judgement = control(rule("never"), rule("deny"), end=End("exit", 3))
    assert judgement.exit.code == ExitCode.CAPABILITY
    assert judgement.rules[1].verdict is PASS
    assert any("ended with 3" in reason for reason in judgement.exit.because)


def test_an_unasserted_control_with_an_unexpected_end_exits_3() -> None:
    assert control(rule("observe"), end=End("exit", 3)).exit.code == ExitCode.CAPABILITY


@pytest.mark.parametrize("expect", [0, 3, None])
@pytest.mark.parametrize("value", [0, 3])
def test_the_expected_exit_is_the_one_written_or_any(expect: int | None, value: int) -> None:
    assert ended_as_expected(facts(end=End("exit", value), expect_exit=expect)) == (
        expect in (None, value)
    )


def test_every_code_has_advice() -> None:
    assert set(ADVICE) == set(Code)


def test_behaviour_is_never_worded_as_containment() -> None:
    words = control(rule("expect no")).rules[0].explanation
    assert "refus" not in words
    assert "contain" not in words
