"""Records read back and held against their lanes: what is missing, torn or altered is no evidence."""

from __future__ import annotations

import json
import os

from flowproof.canonical import canonical, digest
from flowproof.plain_files import read_plain
from flowproof.record.codec import from_json
from flowproof.record.faults import recount_faults
from flowproof.record.model import CARRIED, Hits
from flowproof.record.store import RECORD, RUNS, is_run_id
from flowproof.record.tally import recount
from flowproof.record.verdict import facts_of, judge
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.record.model import RuleRow, RunRecord
    from flowproof.record.verdict import Judgement

__all__ = ["PROBLEMS", "Problem", "Stored", "read", "rejudge", "run_folders", "verify_record"]

PROBLEMS = ("missing", "torn", "altered", "malformed", "differs")


class Problem(Value):
    """Why a record is no evidence. *kind* is one of `PROBLEMS`; *path* the file that it is about."""

    kind: str
    path: str
    detail: str

    def __post_init__(self) -> None:
        if self.kind not in PROBLEMS:
            raise ValueError(f"`{self.kind}` is no kind of problem")


class Stored(Value):
    """A run as it lies on disk. *record* is None where it cannot be read at all; *lanes* hold the lines
    of those that could be.
    """

    folder: str
    record: RunRecord | None
    lanes: Mapping[str, tuple[Mapping[str, object], ...]]
    problems: tuple[Problem, ...]


def run_folders(root: str) -> tuple[str, ...]:
    """Return the folders of all runs under *root*, oldest first.

    What has the name of a run and is no folder is among them: whatever was done to the newest run, an
    older one does not count in its place. So is the folder of the runs itself where it cannot be listed.
    """
    runs = os.path.join(root, RUNS)
    try:
        names = sorted(os.listdir(runs))
    except FileNotFoundError:
        return (runs,) if os.path.islink(runs) else ()
    except OSError:
        return (runs,)
    return tuple(
        path for name in names if os.path.isdir(path := os.path.join(runs, name)) or is_run_id(name)
    )


def read(folder: str) -> Stored:
    """Return the run in *folder* with its lanes, digests checked."""
    path = os.path.join(folder, RECORD)
    data = _bytes(path)
    if isinstance(data, Problem):
        return Stored(folder, None, {}, (data,))
    record = _decode(path, data)
    if isinstance(record, Problem):
        return Stored(folder, None, {}, (record,))
    problems: list[Problem] = []
    if not record.run.complete:
        problems.append(Problem("torn", path, "the run never finished its record"))
    lanes: dict[str, tuple[Mapping[str, object], ...]] = {}
    for name, lane in record.lanes.items():
        if lane.file is None:
            continue
        lines = _lane(os.path.join(folder, os.path.basename(lane.file)), lane.sha256, lane.lines)
        if isinstance(lines, Problem):
            problems.append(lines)
        else:
            lanes[name] = lines
    return Stored(folder, record, lanes, tuple(problems))


def _bytes(path: str) -> bytes | Problem:
    try:
        return read_plain(path)
    except FileNotFoundError:
        return Problem("missing", path, "there is no such file")
    except OSError as error:
        return Problem("missing", path, f"it cannot be read: {(error.strerror or '').lower()}")


def _decode(path: str, data: bytes) -> RunRecord | Problem:
    try:
        shape = json.loads(data)
    except (ValueError, RecursionError):  # cut off, or no UTF-8
        return Problem("torn", path, "it is no whole JSON document")
    if not isinstance(shape, dict):
        return Problem("malformed", path, "it is no object")
    shape.pop("digest", None)
    try:
        whole = canonical({**shape, "digest": digest(canonical(shape))}) + b"\n"
    except (TypeError, ValueError, RecursionError):
        return Problem("altered", path, "it holds what no record holds")
    if whole != data:
        return Problem("altered", path, "it is not what its digest stands for, byte by byte")
    try:
        return from_json(shape)
    except ValueError as error:
        return Problem("malformed", path, str(error))


def _lane(path: str, stated: str | None, count: int) -> tuple[Mapping[str, object], ...] | Problem:
    data = _bytes(path)
    if isinstance(data, Problem):
        return data
    if digest(data) != stated:
        if data.count(b"\n") < count or (data and not data.endswith(b"\n")):
            return Problem("torn", path, f"it ends before its {count} lines do")
        return Problem("altered", path, "its digest is not the one in the record")
    try:
        lines = tuple(json.loads(line) for line in data.splitlines())
    except (ValueError, RecursionError):
        return Problem("malformed", path, "a line of it is no JSON")
    if not all(isinstance(line, dict) for line in lines):
        return Problem("malformed", path, "a line of it is no object")
    return lines


def verify_record(folder: str) -> Stored:
    """Return the run in *folder* with every problem, its verdicts recomputed from its lanes.

    The verdicts, hits and fault counts of the record must equal what the lanes amount to.
    """
    stored = read(folder)
    if stored.record is None or stored.problems:
        return stored
    path = os.path.join(folder, RECORD)
    try:
        problems = _differences(stored.record, stored.lanes, path)
    except ValueError as error:
        problems = (Problem("malformed", path, str(error)),)
    return Stored(folder, stored.record, stored.lanes, problems)


def rejudge(record: RunRecord, lanes: Mapping[str, tuple[Mapping[str, object], ...]]) -> Judgement:
    """Return the verdicts that *lanes* amount to; `ValueError` for a line that is none."""
    found = recount(_events(lanes))
    counted = {rule: hits.counted for rule, hits in found.hits.items()}
    faults = recount_faults(lanes.get("faults", ()))
    return judge(record.policy.control, facts_of(record, counted, faults))


def _events(
    lanes: Mapping[str, tuple[Mapping[str, object], ...]],
) -> tuple[Mapping[str, object], ...]:
    return tuple(line for name, lines in lanes.items() if name != "faults" for line in lines)


def _differences(
    record: RunRecord, lanes: Mapping[str, tuple[Mapping[str, object], ...]], path: str
) -> tuple[Problem, ...]:
    found = recount(_events(lanes))
    known = {rule.id for rule in record.rules}
    differing = [*_misplaced(record, path)]
    differing += [
        f"`{rule}` is in a lane and in no rule" for rule in found.hits if rule not in known
    ]
    differing += [
        f"the hits of `{rule.id}` are not those of the lanes"
        for rule in record.rules
        if rule.hits != found.hits.get(rule.id, Hits())
    ]
    if record.faults != recount_faults(lanes.get("faults", ())):
        differing.append("the faults are not those of the lane")
    if record.through != found.through:
        differing.append("the loopback listeners are not those of the lanes")
    judgement = rejudge(record, lanes)
    differing += [
        f"the verdict on `{rule.id}` is not what the lanes show"
        for rule, ruling in zip(record.rules, judgement.rules, strict=True)
        if (rule.verdict, rule.code) != (ruling.verdict, ruling.code)
    ]
    control = judgement.control
    if [(row.id, row.verdict, row.code) for row in record.controls] != [
        (control.id, control.verdict, control.code)
    ]:
        differing.append("the verdict on the control is not what the lanes show")
    if record.exit.code is not judgement.exit.code:
        differing.append("the exit code is not what the lanes show")
    return tuple(Problem("differs", path, detail) for detail in differing)


def _misplaced(record: RunRecord, path: str) -> Iterator[str]:
    """Yield what no run leaves: a folder of another name, a started command without its lanes."""
    name = os.path.basename(os.path.dirname(os.path.abspath(path)))
    if record.run.id != name:  # the name says which run is the newest
        yield f"it is the record of run `{record.run.id}` in the folder of run `{name}`"
    if record.command.started:
        files = {name for name, lane in record.lanes.items() if lane.file is not None}
        needed = {"faults", *(rule.lane for rule in record.rules if _needs_lane(rule))}
        for lane in sorted({*record.lanes, *needed} - files):
            yield f"the command started, and the lane `{lane}` has no file"


def _needs_lane(rule: RuleRow) -> bool:
    """Tell whether a run of *rule* engages its lane: it was written, and a half of it is carried."""
    return rule.kind != "implied" and bool({rule.refusing, rule.counting} & set(CARRIED))
