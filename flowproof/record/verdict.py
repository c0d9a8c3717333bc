"""From the facts of a run to its verdicts and its exit code: one pure function, `judge`.

A pass needs positive evidence. A counted event is a fail, whatever else went wrong. Everything else is a
capability-error with its code.
"""

from __future__ import annotations

from flowproof.exit_codes import ExitCode, worst
from flowproof.record.codes import ADVICE, Code
from flowproof.record.model import Exit, Reason, Verdict
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flowproof.record.model import End, FaultCount, FidelityRow, RunRecord, Tier

__all__ = [
    "Facts",
    "Judgement",
    "RuleFacts",
    "Ruling",
    "can_be_judged",
    "ended_as_expected",
    "facts_of",
    "judge",
    "worst_verdict",
]

_JUDGED = ("deny", "never", "expect no")
_CONTAINMENT = ("deny", "never")
_BEHAVIOUR = ("never", "expect no")
_REFUSING = ("exact", "over-blocks", "not-applicable")
_COUNTING = ("exact", "over-blocks", "observed", "not-applicable")
_SEVERITY = (Verdict.FAIL, Verdict.CAPABILITY_ERROR, Verdict.PASS)


class RuleFacts(Value):
    """A rule, how far the artifact carries each half, and the events that its verb counts."""

    id: str
    verb: str
    lane: str
    kind: str
    refusing: str | None
    counting: str | None
    counted: int


class Facts(Value):
    """All that a verdict may depend on.

    *meanings* are the fixed meanings that the artifact does not carry as written. *canary* is None where
    none was tried on the connect lane, *file_canary* on the lane of files. *blocked* says why the command
    did not start. *end* is None where nobody saw it. *expect_exit* None is any exit code. *complete* is
    False for a torn record.
    *proof* is ``proven``, ``claimed`` or ``none``: whether the artifact was shown to mean its rules.
    """

    rules: tuple[RuleFacts, ...]
    tiers: Mapping[str, Tier]
    started: bool
    canary: bool | None
    alive: bool
    received: int
    answered: int
    lost: int
    faults: tuple[FaultCount, ...]
    meanings: tuple[FidelityRow, ...]
    end: End | None
    expect_exit: int | None
    survivors: int
    blocked: tuple[Reason, ...]
    complete: bool
    proof: str
    file_canary: bool | None = None


class Ruling(Value):
    """What was shown of one rule or control: *verdict* None where there is nothing to judge."""

    id: str
    verdict: Verdict | None
    code: Code | None
    explanation: str


class Judgement(Value):
    """The rulings on each rule (in their order) and on the control, and the exit code of the run."""

    rules: tuple[Ruling, ...]
    control: Ruling
    exit: Exit


def can_be_judged(verb: str, kind: str) -> bool:
    """Return whether a rule makes its control one that asserts something: an implied one does not."""
    return verb in _JUDGED and kind != "implied"


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return fail, then capability-error, then pass; None of none."""
    return min(verdicts, key=_SEVERITY.index, default=None)


def judge(control: str, facts: Facts) -> Judgement:
    """Return the verdicts that *facts* amount to."""
    rulings = tuple(_judge_rule(rule, facts) for rule in facts.rules)
    ruling = _judge_control(control, facts, rulings)
    return Judgement(rulings, ruling, _exit(facts, rulings, ruling))


def _judge_rule(rule: RuleFacts, facts: Facts) -> Ruling:
    if rule.verb not in _JUDGED:
        return Ruling(rule.id, None, None, "nothing is claimed")
    if rule.kind == "implied" and not _contains(facts):
        # A lane that is only observed carries no containment claim, not even one that nobody wrote.
        return Ruling(rule.id, None, None, "refused, and no rule of the control rests on it")
    if rule.verb in _BEHAVIOUR and rule.counted:
        times = "1 attempt was" if rule.counted == 1 else f"{rule.counted} attempts were"
        return Ruling(rule.id, Verdict.FAIL, None, f"{times} counted")
    missing = _missing(rule, facts)
    if missing is not None:
        explanation = f"{missing.detail}: {ADVICE[missing.code]}"
        return Ruling(rule.id, Verdict.CAPABILITY_ERROR, missing.code, explanation)
    return Ruling(rule.id, Verdict.PASS, None, _SHOWN[rule.verb])


def _contains(facts: Facts) -> bool:
    """Return whether a rule that somebody wrote, or the default, claims containment."""
    return any(rule.verb in _CONTAINMENT and rule.kind != "implied" for rule in facts.rules)


_SHOWN = {
    "deny": "contained: whatever it covers was refused",
    "never": "contained, and no attempt was made",
    "expect no": "observed, and no attempt was made",
}


def _missing(rule: RuleFacts, facts: Facts) -> Reason | None:
    """Return the first piece of evidence that a pass of *rule* lacks."""
    found = (
        _missing_of_run(facts) or _missing_carriage(rule, facts) or _missing_of_lane(rule, facts)
    )
    if found is None and rule.verb in _BEHAVIOUR:
        found = _missing_end(facts)
    return found or _missing_proof(facts)


def _missing_of_run(facts: Facts) -> Reason | None:
    if not facts.complete:
        return Reason(Code.RECORD_TORN, "the record is not complete")
    if facts.blocked:
        return facts.blocked[0]
    if not facts.started:
        return Reason(Code.NOT_STARTED, "the command never started")
    return None


def _missing_proof(facts: Facts) -> Reason | None:
    match facts.proof:
        case "proven":
            return None
        case "claimed":
            said = "that it means its rules is what the artifact says of itself"
        case _:
            said = "nobody showed that the artifact means its rules"
    return Reason(Code.NOT_PROVEN, said)


def _missing_carriage(rule: RuleFacts, facts: Facts) -> Reason | None:
    if rule.verb in _CONTAINMENT and rule.refusing not in _REFUSING:
        how = rule.refusing or "not stated"
        return Reason(Code.NOT_CARRIED, f"the artifact does not refuse what the rule says ({how})")
    if rule.verb in _BEHAVIOUR and rule.counting not in _COUNTING:
        how = rule.counting or "not stated"
        return Reason(Code.NOT_CARRIED, f"the artifact does not count what the rule says ({how})")
    for row in facts.meanings:
        refused = row.refusing in (None, *_REFUSING)
        counted = row.counting in (None, *_COUNTING)
        if (rule.verb in _CONTAINMENT and not refused) or (rule.verb in _BEHAVIOUR and not counted):
            return Reason(Code.NOT_CARRIED, f"the artifact does not carry `{row.subject}`")
    return None


def _missing_of_lane(rule: RuleFacts, facts: Facts) -> Reason | None:
    canary = facts.file_canary if rule.lane == "files" else facts.canary
    if canary is None:
        return Reason(Code.CANARY, "no known call was tried before the command")
    if not canary:
        return Reason(
            Code.CANARY, "the known call before the command was not handled as the policy says"
        )
    faults = [fault for fault in facts.faults if fault.lane in (None, rule.lane) and fault.count]
    bug = next((fault for fault in faults if fault.code is Code.SUPERVISOR_BUG), None)
    if bug is not None:
        return Reason(bug.code, "the supervisor met an error of its own")
    if not facts.alive:
        return Reason(Code.SUPERVISOR_LOST, "the supervisor did not live to the end")
    if faults:
        total = sum(fault.count for fault in faults)
        times = "1 fault" if total == 1 else f"{total} faults"
        return Reason(faults[0].code, f"{times} on the lane")
    if facts.received != facts.answered:
        left = f"{facts.received} calls were received and {facts.answered} answered"
        return Reason(Code.UNANSWERED, left)
    if facts.lost:
        return Reason(Code.EVENTS_LOST, f"{facts.lost} events were lost")
    return _missing_tier(rule, facts.tiers.get(rule.lane))


def _missing_tier(rule: RuleFacts, tier: Tier | None) -> Reason | None:
    strong = rule.verb in _CONTAINMENT
    if tier is not None and tier.word in (("enforced",) if strong else ("enforced", "observed")):
        return None
    fallback = Code.NOT_ENFORCED if strong else Code.NOT_OBSERVED
    if tier is None:
        return Reason(fallback, f"the lane `{rule.lane}` was not engaged")
    return Reason(tier.code or fallback, f"the lane `{rule.lane}` is {tier}")


def _missing_end(facts: Facts) -> Reason | None:
    unexpected = _unexpected_end(facts)
    if unexpected is not None:
        return unexpected
    if facts.survivors:
        left = "1 process" if facts.survivors == 1 else f"{facts.survivors} processes"
        return Reason(Code.SURVIVORS, f"{left} outlived the command and had to be ended")
    return None


def _unexpected_end(facts: Facts) -> Reason | None:
    end = facts.end
    if end is None:
        return Reason(Code.NOT_OBSERVED, "nobody saw the command end")
    match end.how:
        case "timeout":
            return Reason(Code.COMMAND_TIMEOUT, "the command was ended by its timeout")
        case "interrupt":
            return Reason(Code.INTERRUPTED, "the run was interrupted")
        case "signal":
            return Reason(Code.COMMAND_SIGNAL, f"the command was ended by signal {end.value}")
        case _:
            if facts.expect_exit in (None, end.value):
                return None
            expected = f"{facts.expect_exit} was expected"
            return Reason(Code.COMMAND_EXIT, f"the command ended with {end.value} and {expected}")


def ended_as_expected(facts: Facts) -> bool:
    """Return whether the command was seen to end with an exit code that is expected."""
    return _unexpected_end(facts) is None


def _judge_control(control: str, facts: Facts, rulings: tuple[Ruling, ...]) -> Ruling:
    asserted = any(can_be_judged(rule.verb, rule.kind) for rule in facts.rules)
    judged = [ruling for ruling in rulings if ruling.verdict is not None]
    verdict = worst_verdict(ruling.verdict for ruling in judged if ruling.verdict is not None)
    if verdict is Verdict.FAIL:
        broken = sum(ruling.verdict is Verdict.FAIL for ruling in judged)
        rules = "1 rule was" if broken == 1 else f"{broken} rules were"
        return Ruling(control, Verdict.FAIL, None, f"{rules} broken")
    if verdict is Verdict.CAPABILITY_ERROR:
        first = next(ruling for ruling in judged if ruling.verdict is Verdict.CAPABILITY_ERROR)
        return Ruling(control, Verdict.CAPABILITY_ERROR, first.code, first.explanation)
    missing = None if asserted else _missing_of_run(facts)
    if missing is not None:
        explanation = f"{missing.detail}: {ADVICE[missing.code]}"
        return Ruling(control, Verdict.CAPABILITY_ERROR, missing.code, explanation)
    if not asserted:
        explanation = f"no rule of the control can be judged: {ADVICE[Code.UNASSERTED]}"
        return Ruling(control, Verdict.CAPABILITY_ERROR, Code.UNASSERTED, explanation)
    return Ruling(control, Verdict.PASS, None, "every rule held")


def _exit(facts: Facts, rulings: tuple[Ruling, ...], control: Ruling) -> Exit:
    reasons: list[tuple[ExitCode, str]] = [
        (ExitCode.NEGATIVE, f"`{ruling.id}`: {ruling.explanation}")
        for ruling in rulings
        if ruling.verdict is Verdict.FAIL
    ]
    if not facts.complete:
        reasons.append((ExitCode.EVIDENCE, "the record is not complete"))
    reasons += [
        (ExitCode.CAPABILITY, f"{reason.code.value}: {reason.detail}") for reason in facts.blocked
    ]
    weak = [ruling for ruling in rulings if ruling.verdict is Verdict.CAPABILITY_ERROR]
    if control.verdict is Verdict.CAPABILITY_ERROR and not weak:
        weak = [control]
    blocked = {reason.code for reason in facts.blocked}
    reasons += [
        (ExitCode.CAPABILITY, f"`{ruling.id}`: {ruling.explanation}")
        for ruling in weak
        if ruling.code not in blocked
    ]
    unexpected = _unexpected_end(facts) if facts.started else None
    if unexpected is not None and not any(ruling.code is unexpected.code for ruling in weak):
        reasons.append((ExitCode.NEGATIVE, unexpected.detail))
    if control.verdict is Verdict.CAPABILITY_ERROR:
        # The command's end decides only where every control held.
        deciding = [
            code for code, text in reasons if not (unexpected and text == unexpected.detail)
        ]
        code = worst([ExitCode.CAPABILITY, *deciding])
    else:
        code = worst(code for code, _ in reasons)
    because = tuple(dict.fromkeys(text for _, text in reasons))
    reason = next((text for found, text in reasons if found is code), "every control held")
    return Exit(code, reason, because)


def facts_of(
    record: RunRecord, counted: Mapping[str, int], faults: tuple[FaultCount, ...]
) -> Facts:
    """Return the facts of a record, with the events that its lanes hold: *counted* by rule id."""
    return Facts(
        rules=tuple(
            RuleFacts(
                id=rule.id,
                verb=rule.verb,
                lane=rule.lane,
                kind=rule.kind,
                refusing=rule.refusing,
                counting=rule.counting,
                counted=counted.get(rule.id, 0),
            )
            for rule in record.rules
        ),
        tiers={name: lane.tier for name, lane in record.lanes.items()},
        started=record.command.started,
        canary=None if record.canary is None else record.canary.held,
        alive=record.supervisor.alive,
        received=record.supervisor.received,
        answered=record.supervisor.answered,
        lost=record.supervisor.lost,
        faults=faults,
        meanings=tuple(row for row in record.fidelity if row.subject.startswith("meaning:")),
        end=record.command.end,
        expect_exit=record.command.expect_exit,
        survivors=len(record.survivors),
        blocked=record.blocked,
        complete=record.run.complete,
        proof=record.policy.proof,
        file_canary=None if record.file_canary is None else record.file_canary.held,
    )
