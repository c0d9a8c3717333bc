"""The rows about files of a serialised artifact against the reference meaning.

A row says no more than its rule does: which operations, inside which paths, without which. Equal to the
policy's, it means what the rule means, whatever the path. Besides, what the rows say is compared with
`ir.evaluate` on paths that the rules' own make: each of them, its parent, what lies below and beside it, what
only begins like it, and what a glob may and may not stand for. The reader of rows and globs is this module's.
"""

from __future__ import annotations

import posixpath
import re

from flowproof.ir.evaluate import evaluate
from flowproof.ir.events import FileAttempt
from flowproof.ir.model import Policy
from flowproof.values import replace
from flowproof.verify.found import Counterexample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from flowproof.ir.model import Rule
    from flowproof.ir.places import Places

    Row = Mapping[str, Any]
    Parts = Sequence[tuple[str, str, str | None]]  # operation, path, where it goes if it leaves

__all__ = ["compare_files", "holds"]

_BUDGET = 1_000_000
"""Paths of rules that the comparison of events looks at, at most; rows are compared whole in any case."""
_OUT = "/\x01"
"""A path that no rule names."""
_TOLD = {"observe": "observed", "expect no": "counted"}


def compare_files(policy: Policy, rows: Sequence[Row]) -> tuple[int, Counterexample | None]:
    """Return how many events *rows* (JSON) were compared on, and the first difference."""
    told = [rule for rule in policy.rules if _is_told(rule)]
    if not told and not rows:
        return 0, None
    events = 0
    twin = _twin(policy)
    for event in _events(policy, rows):
        events += 1
        has, wants = _by_rows(policy, rows, event), _by_policy(policy, twin, event)
        if has != wants:
            return events, _difference(policy, event, has, wants)
    wanted = list(_wanted(policy))
    for at in range(max(len(wanted), len(rows))):
        has_row = _normal(rows[at]) if at < len(rows) else None
        wants_row = wanted[at] if at < len(wanted) else None
        if has_row != wants_row:
            about = wants_row or has_row
            assert about is not None
            rule = policy.rules[about[0]] if about[0] < len(policy.rules) else None
            return events, Counterexample(
                "an attempt at a file",
                f"row {has_row}",
                f"row {wants_row}",
                rule.id if rule else None,
                _place(rule),
                f"files[{at}]",
            )
    return events, None


def _is_told(rule: Rule) -> bool:
    return rule.action == "files" and rule.verb in _TOLD


# --- rows


def _wanted(policy: Policy) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that *policy* needs: of what is told, and of each `allow` left out by a complement."""
    for at, rule in enumerate(policy.rules):
        if rule.action != "files" or rule.places is None:
            continue
        left_out = rule.verb == "allow" and any(
            _is_told(other)
            and other.places is not None
            and other.places.otherwise
            and set(other.operations) & set(rule.operations)
            for other in policy.rules
        )
        if _is_told(rule) or left_out:
            yield (
                at,
                tuple(rule.operations),
                _plain(rule.places),
                None if rule.excepted_places is None else _plain(rule.excepted_places),
                rule.places.otherwise,
            )


def _plain(places: Places) -> tuple[str, tuple[str, ...]]:
    return places.kind, tuple(sorted(set(places.paths)))


def _normal(row: Row) -> tuple[Any, ...]:
    inside, excepted = (
        None if row[name] is None else (row[name]["kind"], tuple(row[name]["paths"]))
        for name in ("inside", "excepted")
    )
    return row["rule"], tuple(row["operations"]), inside, excepted, row["otherwise"]


# --- what rows and policy say of an event


def _by_rows(policy: Policy, rows: Sequence[Row], event: FileAttempt) -> set[int]:
    """Return the rules that the rows tell of *event*."""
    found = set()
    for row in rows:
        if row["rule"] < len(policy.rules) and policy.rules[row["rule"]].verb == "allow":
            continue
        for operation, path, goes_to in _amounts_to(event):
            if operation not in row["operations"]:
                continue
            if _applies(policy, rows, row, operation, path) and (
                goes_to is None or not _applies(policy, rows, row, operation, goes_to)
            ):
                found.add(int(row["rule"]))
    return found


def _amounts_to(event: FileAttempt) -> Parts:
    if event.operation != "rename":
        return ((event.operation, event.path, None), ("write", event.path, None))
    assert event.destination is not None
    source, target = event.path, event.destination
    ends = [(operation, end, None) for operation in ("rename", "write") for end in (source, target)]
    replaced = [("delete", target, None)] if event.replaces else []
    return [("delete", source, target), *replaced, *ends]


def _applies(policy: Policy, rows: Sequence[Row], row: Row, operation: str, path: str) -> bool:
    if not _held(row["inside"], path) or (row["excepted"] and _held(row["excepted"], path)):
        return False
    return not row["otherwise"] or not any(
        other["rule"] < len(policy.rules)
        and policy.rules[other["rule"]].verb == "allow"
        and operation in other["operations"]
        and _held(other["inside"], path)
        and not (other["excepted"] and _held(other["excepted"], path))
        for other in rows
    )


def _held(paths: Mapping[str, Any], path: str) -> bool:
    return any(holds(paths["kind"], one, path) for one in paths["paths"] or ("",))


def holds(kind: str, own: str, path: str) -> bool:
    """Tell whether *path* is one that *own* stands for by *kind*: under, at or anywhere."""
    if kind == "anywhere":
        return True
    if kind == "under":
        return path == own or path.startswith(own.rstrip("/") + "/")
    return _glob(tuple(_TOKEN.findall(own)), path)


_TOKEN = re.compile(r"/\*\*(?=/|\Z)|\*\*|\*|.", re.DOTALL)


def _glob(tokens: tuple[str, ...], path: str) -> bool:
    """Tell whether *tokens* spell *path*, by every place of it that the tokens so far may have come to."""
    places = {0}
    for piece in tokens:
        if piece == "/**":
            slashes = [at for at in range(len(path)) if path[at] == "/" and at in places]
            places |= {end for at in slashes[:1] for end in range(at + 1, len(path) + 1)}
        elif piece == "**":
            places = set(range(min(places), len(path) + 1)) if places else set()
        elif piece == "*":
            places = {end for at in places for end in range(at, _component(path, at) + 1)}
        else:
            places = {at + 1 for at in places if path[at : at + 1] == piece}
    return len(path) in places


def _component(path: str, at: int) -> int:
    """Return where the component that *at* lies in ends."""
    end = path.find("/", at)
    return len(path) if end < 0 else end


def _twin(policy: Policy) -> Policy:
    """Return the rules about files, `observe` as the ``expect no`` that matches alike."""
    twins = tuple(
        replace(rule, verb="expect no") if rule.verb == "observe" else rule
        for rule in policy.rules
        if rule.action == "files"
    )
    return Policy(policy.control, None, None, twins)


def _by_policy(policy: Policy, twin: Policy, event: FileAttempt) -> set[int]:
    """Return the rules that the reference meaning tells of *event*."""
    asserting = set(evaluate(twin, event).asserting)
    return {at for at, rule in enumerate(policy.rules) if _is_told(rule) and rule.id in asserting}


# --- the events to ask about


def _events(policy: Policy, rows: Sequence[Row]) -> Iterator[FileAttempt]:
    """Yield events on the paths that the rules' own make, as far as the budget goes."""
    paths = list(dict.fromkeys(_paths(policy, rows)))
    cost = 1 + len(paths)
    left = max(_BUDGET // cost, 200)
    seen: list[str] = []
    for path in paths:
        for own in dict.fromkeys((path, *_around(path))):
            for operation in ("delete", "truncate", "write"):
                yield FileAttempt(operation, own)
            seen.append(own)
            left -= 3
        yield from _renames(seen[-12:])
        left -= 96
        if left < 0:
            return


def _renames(paths: Sequence[str]) -> Iterator[FileAttempt]:
    for source in paths[:6]:
        for target in (*paths[-6:], _OUT):
            yield FileAttempt("rename", source, target)
            yield FileAttempt("rename", target, source, replaces=True)


def _paths(policy: Policy, rows: Sequence[Row]) -> Iterator[str]:
    for rule in policy.rules:
        for places in (rule.places, rule.excepted_places):
            if rule.action == "files" and places is not None:
                yield from places.paths or ("/",)
    for row in rows:
        for part in (row["inside"], row["excepted"]):
            if part is not None:
                yield from part["paths"]


def _around(path: str) -> Iterator[str]:
    """Yield paths inside, beside, above and below *path*, and such as only begin like it."""
    for spelt in _spelt(path):
        base = spelt.rstrip("/") or "/"
        parent = posixpath.dirname(base) or "/"
        below = base.rstrip("/")
        yield from (
            base,
            f"{below}/x",
            f"{below}/x/y",
            f"{base}x",
            parent,
            f"{parent.rstrip('/')}/x",
        )
        if len(posixpath.basename(base)) > 1:
            yield base[:-1]
    yield "/"


def _spelt(path: str) -> Iterable[str]:
    """Return what the stars of a glob may stand for, and some of what they may not."""
    if "*" not in path:
        return (path,)
    none = re.sub(r"/\*\*(?=/|\Z)", "", path) or "/"
    several = (
        path.replace("**", deep).replace("*", one)
        for deep in ("x", "x/y", ".x")
        for one in ("", "x", ".x", "x/y")
    )
    return (none.replace("**", "").replace("*", "x"), none.replace("*", ""), *several)


# --- telling


def _difference(
    policy: Policy, event: FileAttempt, has: set[int], wants: set[int]
) -> Counterexample:
    about = min(has ^ wants)
    rule = policy.rules[about] if about < len(policy.rules) else None
    return Counterexample(
        str(event),
        _words(policy, has),
        _words(policy, wants),
        rule.id if rule else None,
        _place(rule),
        "files",
    )


def _words(policy: Policy, told: set[int]) -> str:
    named = [policy.rules[at] for at in sorted(told) if at < len(policy.rules)]
    return (
        ", ".join(f"{_TOLD.get(rule.verb, rule.verb)} by {rule.id}" for rule in named) or "not told"
    )


def _place(rule: Rule | None) -> str | None:
    if rule is None or rule.origin is None:
        return None
    return f"{rule.origin.file}:{rule.origin.line}:{rule.origin.column}"
