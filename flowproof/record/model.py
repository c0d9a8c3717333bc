"""What a run leaves behind, as values: facts first, then the verdicts drawn from them.

Times of day are UTC text, durations whole milliseconds, digests ``sha256:…``. No argument of the command
and no value of an environment variable has a place here.
"""

from __future__ import annotations

from enum import Enum

from flowproof.record.lanes import LANES
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.exit_codes import ExitCode
    from flowproof.record.codes import Code

__all__ = [
    "CARRIED",
    "ENDS",
    "SCHEMA",
    "TIERS",
    "CanaryRow",
    "CapabilityRow",
    "CommandInfo",
    "ControlRow",
    "End",
    "Exit",
    "FaultCount",
    "FidelityRow",
    "Hits",
    "Host",
    "LaneInfo",
    "Place",
    "PolicyInfo",
    "Reason",
    "RuleRow",
    "RunInfo",
    "RunRecord",
    "Source",
    "Supervision",
    "Survivor",
    "Through",
    "Tier",
    "Tool",
    "Verdict",
]

SCHEMA = "https://flowproof.dev/schema/run-record/v1"
PROOFS = ("proven", "claimed", "none")
"""What a run knew of the proof of its artifact."""

PROOFS = ("proven", "claimed", "none")
TIERS = ("enforced", "observed", "none")
ENDS = ("exit", "signal", "timeout", "interrupt")
CARRIED = ("exact", "over-blocks", "observed")
"""Fidelity classes under which a half of a rule is carried."""


class Verdict(Enum):
    """What a run showed of a rule or a control."""

    PASS = "pass"  # noqa: S105  a verdict
    FAIL = "fail"
    CAPABILITY_ERROR = "capability-error"


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{what} is one of {', '.join(allowed)}, not `{value}`")


class RunInfo(Value):
    """*set* and *shard* (``1/2``) tie the runs of one suite together. *ended* is None until it has."""

    id: str
    set: str | None
    shard: str | None
    started: str
    ended: str | None
    complete: bool


class End(Value):
    """How the command ended: *how* is one of `ENDS`, *value* the exit code or the signal's number."""

    how: str
    value: int

    def __post_init__(self) -> None:
        _one_of("an end", self.how, ENDS)


class CommandInfo(Value):
    """*sha256* covers the arguments, which are not written. *expect_exit* None is any exit code.
    *started*: it was executed. *end* None: it never started, or nobody saw its end.
    """

    name: str
    sha256: str
    expect_exit: int | None
    timeout_ms: int | None
    started: bool
    end: End | None


class Tool(Value):
    """What made the record."""

    name: str
    version: str
    python: str


class CapabilityRow(Value):
    """One step of the self-test before the run."""

    id: str
    ok: bool
    code: Code | None
    detail: str


class Host(Value):
    """Where it ran. *uid* is -1 where a platform has none."""

    os: str
    kernel: str
    arch: str
    uid: int
    capabilities: tuple[CapabilityRow, ...]


class Source(Value):
    """A file that the control was compiled from, with its digest."""

    path: str
    sha256: str


class PolicyInfo(Value):
    """What was in force: digests of the meaning (*ir*), the *artifact* and the *grammar*.

    *verification* is what the artifact says of its proof, and *proof* what flowproof knew of that: ``proven``
    (it proved the artifact itself, before this run), ``claimed`` (the artifact says so) or ``none``.
    """

    control: str
    title: str | None
    target: str
    ir: str
    artifact: str
    grammar: str
    verification: str
    proof: str
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        _one_of("a proof", self.proof, PROOFS)


class Tier(Value):
    """What the run achieved on a lane, never what a probe predicted: ``enforced (…)``."""

    word: str
    reason: str
    code: Code | None = None

    def __post_init__(self) -> None:
        _one_of("a tier", self.word, TIERS)

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})"


class LaneInfo(Value):
    """A lane that the artifact asked for. *file* is None where it was never engaged. *truncated*: some
    destinations were counted and not listed.
    """

    tier: Tier
    file: str | None
    sha256: str | None
    lines: int
    truncated: bool


class Supervision(Value):
    """*alive*: the supervisor lived to the end and said so. *lost*: events that never arrived whole."""

    alive: bool
    received: int
    answered: int
    lost: int


class CanaryRow(Value):
    """The known call of a lane before the command, through this run's filter and listener.

    *expected* and *seen* are ``refused`` or ``let-through``; *seen* is None where the listener did not
    report it. *errno* names what the calling process got, None for success.
    """

    call: str
    protocol: str
    destination: str
    port: int
    expected: str
    seen: str | None
    errno: str | None
    by: str | None
    held: bool


class Reason(Value):
    """Why a command did not start, or something was not shown."""

    code: Code
    detail: str


class FidelityRow(Value):
    """A rule or fixed meaning that the artifact does not carry as written."""

    subject: str
    refusing: str | None
    counting: str | None
    reason: str | None


class FaultCount(Value):
    """How often the mechanism could not tell. *lane* None: every lane."""

    code: Code
    lane: str | None
    count: int


class Survivor(Value):
    """A process that outlived the command and was ended."""

    pid: int
    program: str


class Through(Value):
    """A loopback listener that the run connected to and that no process of the run was seen to open, or a
    unix socket outside that a rule let it connect to: the claims read "except through these".
    """

    protocol: str
    destination: str
    port: int | None
    count: int


class Hits(Value):
    """What a rule did: attempts *refused* by it, *probes* refused by it (nothing could follow), attempts
    that it *counted* or *observed*, attempts *let_through* by it.
    """

    refused: int = 0
    probes: int = 0
    counted: int = 0
    observed: int = 0
    let_through: int = 0


class Place(Value):
    """Where a rule was written."""

    file: str
    line: int
    column: int
    pack: str | None


class RuleRow(Value):
    """A rule, what it did and what the run showed of it. *verdict* is None for ``allow`` and ``observe``."""

    id: str
    verb: str
    claim: str
    action: str
    lane: str
    kind: str
    sentence: str
    because: str | None
    place: Place | None
    refusing: str | None
    counting: str | None
    hits: Hits
    verdict: Verdict | None
    code: Code | None
    explanation: str


class ControlRow(Value):
    """A control and its verdict."""

    id: str
    title: str | None
    verdict: Verdict
    code: Code | None
    explanation: str


class Exit(Value):
    """The exit code of the run, its reason, and all that was shown."""

    code: ExitCode
    reason: str
    because: tuple[str, ...]


class RunRecord(Value):
    """All of a run but its events, which lie in one file per lane beside it."""

    run: RunInfo
    command: CommandInfo
    tool: Tool
    host: Host
    policy: PolicyInfo
    lanes: Mapping[str, LaneInfo]
    supervisor: Supervision
    canary: CanaryRow | None
    blocked: tuple[Reason, ...]
    fidelity: tuple[FidelityRow, ...]
    faults: tuple[FaultCount, ...]
    survivors: tuple[Survivor, ...]
    names: Mapping[str, tuple[str, ...]]
    through: tuple[Through, ...]
    rules: tuple[RuleRow, ...]
    controls: tuple[ControlRow, ...]
    exit: Exit
    file_canary: CanaryRow | None = None

    def __post_init__(self) -> None:
        for lane in self.lanes:
            if lane not in LANES:
                raise ValueError(f"there is no lane `{lane}`")
