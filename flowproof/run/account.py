"""What the recorder was told of a run, and the record that it amounts to at any moment of it."""

from __future__ import annotations

import os
import platform
import sys
import time
from errno import errorcode

import flowproof
from flowproof.artifact import codec
from flowproof.exit_codes import ExitCode
from flowproof.record import wire
from flowproof.record.codes import Code
from flowproof.record.faults import FaultTally
from flowproof.record.lanes import LANE_OF_ACTION, lane_of_event
from flowproof.record.model import (
    CanaryRow,
    CapabilityRow,
    CommandInfo,
    ControlRow,
    End,
    Exit,
    FidelityRow,
    Hits,
    Host,
    LaneInfo,
    Place,
    PolicyInfo,
    Reason,
    RuleRow,
    RunInfo,
    RunRecord,
    Source,
    Supervision,
    Survivor,
    Tier,
    Tool,
)
from flowproof.record.redact import Folders
from flowproof.record.store import utc
from flowproof.record.tally import Counting, Recount, RuleRef, Tally
from flowproof.record.verdict import facts_of, judge
from flowproof.run.steps import lacking
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flowproof.artifact.model import Artifact
    from flowproof.record.model import FaultCount
    from flowproof.record.store import LaneFile, RunFolder
    from flowproof.record.verdict import Judgement
    from flowproof.run.canary import Canary
    from flowproof.run.command import Command
    from flowproof.run.file_canary import FileCanary
    from flowproof.run.steps import Capability

__all__ = ["Account"]

_MECHANISM = "seccomp user notification"
_WITHIN_REACH = "other processes of the user are within reach, and so are their sockets"
_WITHIN_SIGNALS = "the command could signal what supervises it"
_NOTHING = ("exact", None)


class Account:
    """A run's facts as they come in. `take` is told what the supervisor tells."""

    def __init__(
        self,
        artifact: Artifact,
        command: Command,
        run_id: str,
        run_set: str | None,
        shard: str | None,
        *,
        proven: bool = False,
    ) -> None:
        self.artifact = artifact
        said = "none" if artifact.verification == "not verified" else "claimed"
        self._proof = "proven" if proven else said
        self.command = command
        self.blocked: list[Reason] = []
        self.capabilities: tuple[Capability, ...] = ()
        self.planned: tuple[Canary, ...] = ()
        self.planned_file: FileCanary | None = None
        self.bindings: Mapping[str, tuple[str, ...]] = {}
        self.seclusion: str | None = None  # by what the self-test was kept from what is outside
        self.started = False
        self.executed = False
        self.end: End | None = None
        self.ended = False  # the supervisor said that this was the end
        self.received = 0
        self.answered = 0
        self.lost = 0
        self._survivors: list[Survivor] = []
        self._canaries: list[
            tuple[object, ...]
        ] = []  # as they were told, in the order of their replies
        self._replies: dict[str, tuple[int, int]] = {}
        self._began = time.time()
        self._identity = (run_id, run_set, shard)
        home, tmp = os.path.expanduser("~"), os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  its default
        self._folders = Folders.of(command.folder, home, tmp)
        self._lanes: dict[str, LaneFile] = {}
        self._counting = Counting()
        self._tallies: dict[str, Tally] = {}
        self._faults: FaultTally | None = None

    def engage(self, folder: RunFolder, names: Mapping[str, str]) -> None:
        """Open the lanes; *names* tells which name an address was bound to."""
        for lane in (*self.artifact.lanes, "faults"):
            self._lanes[lane] = folder.open_lane(lane)
        rules = tuple(RuleRef(rule.id, rule.claim) for rule in self.artifact.rules)
        for lane in self.artifact.lanes:
            write = self._writer(lane)
            self._tallies[lane] = Tally(rules, names, self._folders, write, files=lane == "files")
        self._faults = FaultTally(self._folders, self._lanes["faults"].write)

    def _writer(self, lane: str) -> Callable[[dict[str, object]], None]:
        def write(line: dict[str, object]) -> None:
            self._lanes[lane].write(line)
            self._counting.add(line)  # as an audit will

        return write

    @property
    def attempts(self) -> tuple[int, int]:
        """How many attempts were let through, and how many refused, so far."""
        found = [tally.attempts for tally in self._tallies.values()]
        return sum(through for through, _ in found), sum(refused for _, refused in found)

    def block(self, code: Code, detail: str) -> None:
        """Take down why the command does not start."""
        self.blocked.append(Reason(code, self._folders.text(detail)))

    def fault(self, code: Code, call: str, detail: str, ms: int = 0, pid: int = 0) -> None:
        """Take down a fault."""
        assert self._faults is not None
        self._faults.fault(ms, pid, code, call, detail)

    def take(self, told: tuple[object, ...]) -> None:
        """Take one of the supervisor's tuples."""
        match told:
            case (wire.ATTEMPT, _, _, _, operation, *_):
                lane = lane_of_event(operation, self.artifact.lanes)
                self._tallies[lane].attempt(*told[1:])  # type: ignore[arg-type]  # as `wire.ATTEMPT` says
            case (wire.FAULT, int(ms), int(pid), code, str(call), str(detail)):
                self.fault(Code(code), call, detail, ms, pid)
            case (wire.CANARY, bool(), _, str(), str()):
                self._canaries.append(told)
            case (wire.CANARY_REPLY, str(lane), int(which), int(errno)):
                self._replies[lane] = (which, errno)
            case (wire.NOT_STARTED, code, str(detail)):
                self.started = False
                self.block(Code(code), detail)
            case (wire.SPAWNED, int()):
                self.started = True
            case (wire.EXECUTED,):
                self.executed = True
            case (wire.EXITED, int(), str(how), int(value)):
                self.end = End(how, value)
            case (wire.SURVIVOR, int(pid), str(program)):
                self._survivors.append(Survivor(pid, self._folders.path(program)))
            case (wire.END, int(received), int(answered)):
                self.ended, self.received, self.answered = True, received, answered
            case _:
                raise ValueError(f"the supervisor told what no wire tuple is: {told!r}")

    def close_lanes(self) -> None:
        """Write what was only counted; nothing more comes."""
        for tally in self._tallies.values():
            tally.finish()
        if self._faults is not None:
            self._faults.finish()

    def record(self, *, complete: bool) -> RunRecord:
        """Return the record of the run so far, judged."""
        found = self._counting.result()
        faults = () if self._faults is None else self._faults.counts()
        draft = self._draft(found, faults, complete=complete)
        counted = {rule: hits.counted for rule, hits in found.hits.items()}
        return _judged(draft, judge(self.artifact.control, facts_of(draft, counted, faults)))

    def tier(self, lane: str) -> Tier:
        """Return what the run achieved on a lane."""
        if self.blocked:
            first = self.blocked[0]
            return Tier("none", first.detail, first.code)
        if not self.started:
            return Tier("none", "the command never started", Code.NOT_STARTED)
        if not self.ended:
            return Tier("none", "the supervisor did not live to the end", Code.SUPERVISOR_LOST)
        row = self._file_canary_row() if lane == "files" else self._canary_row()
        if row is None or not row.held:
            return Tier("none", "the known call was not handled as planned", Code.CANARY)
        return self._tier_by_reach(refused=row.expected == "refused")

    def _tier_by_reach(self, *, refused: bool) -> Tier:
        """Return the tier of a run whose known call was handled: by what its command could reach."""
        lacks = lacking(self.capabilities)
        if Code.NOT_SECLUDED in lacks:
            # What goes out through a socket of another process is neither refused nor seen.
            return Tier("none", f"{_MECHANISM}; {_WITHIN_REACH}", Code.NOT_SECLUDED)
        how = f"{_MECHANISM}, {self.seclusion}"
        if Code.NOT_SHIELDED in lacks:
            # A verdict could be taken away by a signal, though none could be bought.
            return Tier("observed", f"{how}; {_WITHIN_SIGNALS}", Code.NOT_SHIELDED)
        return Tier("enforced" if refused else "observed", how)

    def _draft(
        self, found: Recount, faults: tuple[FaultCount, ...], *, complete: bool
    ) -> RunRecord:
        """Return the record before anything is judged: each verdict stands open."""
        return RunRecord(
            run=self._run_info(complete=complete),
            command=self._command_info(),
            tool=Tool("flowproof", flowproof.__version__, platform.python_version()),
            host=self._host(),
            policy=self._policy(),
            lanes=self._lane_infos(),
            supervisor=Supervision(self.ended, self.received, self.answered, self.lost),
            canary=self._canary_row(),
            file_canary=self._file_canary_row(),
            blocked=tuple(self.blocked),
            fidelity=tuple(
                FidelityRow(row.subject, row.refusing, row.counting, row.reason)
                for row in self.artifact.fidelity
                if row.refusing not in _NOTHING or row.counting not in _NOTHING
            ),
            faults=faults,
            survivors=tuple(self._survivors),
            names=dict(sorted(self.bindings.items())),
            through=found.through,
            rules=self._rule_rows(found),
            controls=(),
            exit=Exit(ExitCode.CAPABILITY, "", ()),
        )

    def _run_info(self, *, complete: bool) -> RunInfo:
        run_id, run_set, shard = self._identity
        ended = utc(time.time()) if complete else None
        return RunInfo(run_id, run_set, shard, utc(self._began), ended, complete)

    def _command_info(self) -> CommandInfo:
        command = self.command
        return CommandInfo(
            name=command.name,
            sha256=command.sha256,
            expect_exit=command.expect_exit,
            timeout_ms=None if command.timeout is None else int(command.timeout * 1000),
            started=self.started,
            end=self.end,
        )

    def _host(self) -> Host:
        uid = os.getuid() if hasattr(os, "getuid") else -1
        rows = tuple(CapabilityRow(c.id, c.ok, c.code, c.detail) for c in self.capabilities)
        return Host(sys.platform, platform.release(), platform.machine(), uid, rows)

    def _policy(self) -> PolicyInfo:
        artifact = self.artifact
        sources = tuple(
            Source(self._folders.path(name.removeprefix("file:")), sha256)
            for name, sha256 in sorted(artifact.digests.items())
            if name.startswith("file:")
        )
        return PolicyInfo(
            control=artifact.control,
            title=artifact.title,
            target=artifact.target,
            ir=artifact.digests.get("ir", ""),
            artifact=codec.digest(artifact),
            grammar=artifact.digests.get("grammar", ""),
            verification=artifact.verification,
            proof=self._proof,
            sources=sources,
        )

    def _lane_infos(self) -> dict[str, LaneInfo]:
        infos = {}
        for name in (*self.artifact.lanes, "faults"):
            tier = self.tier(
                name if name != "faults" else next(iter(self.artifact.lanes), "connect")
            )
            lane = self._lanes.get(name)
            truncated = name in self._tallies and self._tallies[name].truncated
            if lane is not None:
                infos[name] = LaneInfo(tier, lane.name, lane.sha256, lane.lines, truncated)
            elif name != "faults":
                infos[name] = LaneInfo(tier, None, None, 0, truncated=False)
        return infos

    def _canary_row(self) -> CanaryRow | None:
        if "connect" not in self._replies:
            return None
        which, errno = self._replies["connect"]
        planned = self.planned[which]
        expected = "refused" if planned.refused else "let-through"
        seen, by = None, None
        if self._canaries:
            told = self._canaries[0]
            seen = "refused" if told[1] else "let-through"
            by = self.artifact.rules[told[2]].id if isinstance(told[2], int) else None
        return CanaryRow(
            call=planned.call,
            protocol=planned.protocol,
            destination=planned.address,
            port=planned.port,
            expected=expected,
            seen=seen,
            errno=errorcode.get(errno, str(errno)) if errno else None,
            by=by,
            held=seen == expected and errno == planned.errno,
        )

    def _file_canary_row(self) -> CanaryRow | None:
        planned = self.planned_file
        if planned is None or "files" not in self._replies:
            return None
        _, errno = self._replies["files"]
        before = 1 if self.planned else 0  # the known call of the other lane came first
        told = self._canaries[before] if len(self._canaries) > before else None
        return CanaryRow(
            call=planned.call,
            protocol="file",
            destination=planned.path,
            port=0,
            expected="let-through",
            seen=None if told is None else ("refused" if told[1] else "let-through"),
            errno=errorcode.get(errno, str(errno)) if errno else None,
            by=None,
            held=planned.is_held(told, errno),
        )

    def _rule_rows(self, found: Recount) -> tuple[RuleRow, ...]:
        carried = {row.subject: row for row in self.artifact.fidelity}
        rows = []
        for rule in self.artifact.rules:
            row = carried.get(rule.id)
            origin = rule.origin
            place = None
            if origin is not None:
                file = self._folders.path(origin.file)
                place = Place(file, origin.line, origin.column, origin.pack)
            rows.append(
                RuleRow(
                    id=rule.id,
                    verb=rule.verb,
                    claim=rule.claim,
                    action=rule.action,
                    lane=LANE_OF_ACTION[rule.action],
                    kind=rule.kind,
                    sentence=rule.sentence,
                    because=rule.reason,
                    place=place,
                    refusing=None if row is None else row.refusing,
                    counting=None if row is None else row.counting,
                    hits=found.hits.get(rule.id, Hits()),
                    verdict=None,
                    code=None,
                    explanation="",
                )
            )
        return tuple(rows)


def _judged(record: RunRecord, judgement: Judgement) -> RunRecord:
    """Return *record* with its verdicts put in."""
    rules = tuple(
        replace(row, verdict=ruling.verdict, code=ruling.code, explanation=ruling.explanation)
        for row, ruling in zip(record.rules, judgement.rules, strict=True)
    )
    control = judgement.control
    assert control.verdict is not None
    row = ControlRow(
        control.id, record.policy.title, control.verdict, control.code, control.explanation
    )
    return replace(record, rules=rules, controls=(row,), exit=judgement.exit)
