"""From the supervisor's tuples to the lines of a lane, bounded however long a retry loop runs.

What was refused or counted, or was too large to send, is listed, up to `LISTED` times for one group of
rules and one destination, then counted; beyond `DESTINATIONS` of a group, counted without its destination.
What was let through is counted by rule and listed once for each of up to `SEEN` destinations. `recount`
reads the lines back.
"""

from __future__ import annotations

from flowproof.addresses import LOOPBACK, canonical, parse_address
from flowproof.record.model import Hits, Through
from flowproof.record.wire import TOO_LARGE
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flowproof.record.redact import Folders

    Line = dict[str, object]
    Group = tuple[bool, int | None, tuple[int, ...], tuple[int, ...]]
    Spot = tuple[str, str, str, int | None]

__all__ = ["DESTINATIONS", "LISTED", "SEEN", "Counting", "Recount", "RuleRef", "Tally", "recount"]

LISTED = 20
DESTINATIONS = 5_000
SEEN = 1_000


class RuleRef(Value):
    """A rule as an event names it."""

    id: str
    claim: str


class _Times:
    """How often, and when first and last (milliseconds since spawn)."""

    __slots__ = ("count", "first", "last", "program")

    def __init__(self, first: int, program: str) -> None:
        self.count = 0
        self.first = first
        self.last = first
        self.program = program


_NOWHERE: Line = dict.fromkeys(("operation", "protocol", "destination", "port", "name"))
_NO_PATH: Line = dict.fromkeys(("operation", "path", "to"))


class Tally:
    """The lines of a lane, in the making. *write* takes each line as it is due; *files*: the lane has paths
    in the place of destinations.

    A group is what one handling amounts to: refused, by, asserting, observing. A spot is what was
    attempted, and where: operation, protocol, destination, port. Both are plain tuples: a lookup of each
    is all that a call costs that was let through before.
    """

    def __init__(
        self,
        rules: tuple[RuleRef, ...],
        names: Mapping[str, str],
        folders: Folders,
        write: Callable[[Line], None],
        *,
        files: bool = False,
    ) -> None:
        self._nowhere = _NO_PATH if files else _NOWHERE
        self._rules = rules
        self._names = names
        self._folders = folders
        self._write = write
        self._attempts = 0
        self._refused = 0
        self._listed: dict[Group, dict[Spot, _Times]] = {}
        self._over: dict[Group, _Times] = {}
        self._seen: dict[Group, dict[Spot, _Times]] = {}
        self._through: dict[Group, int] = {}
        self._unlisted: set[Group] = set()

    @property
    def truncated(self) -> bool:
        """Whether some destination was counted and not listed."""
        return bool(self._over or self._unlisted)

    @property
    def attempts(self) -> tuple[int, int]:
        """How many attempts were let through, and how many refused, so far."""
        return self._attempts - self._refused, self._refused

    def attempt(
        self,
        ms: int,
        pid: int,
        executable: str,
        operation: str,
        protocol: str,
        destination: str,
        port: int | None,
        refused: bool,
        by: int | None,
        asserting: tuple[int, ...],
        observing: tuple[int, ...],
        note: str | None,
    ) -> None:
        """Take one attempt, the fields of `wire.ATTEMPT` behind its tag."""
        self._attempts += 1
        self._refused += refused
        group = (refused, by, asserting, observing)
        spot = (operation, protocol, destination, port)
        if not refused and not asserting and note != TOO_LARGE:
            self._count_through(group, spot, ms, executable)
            return
        spots = self._listed.setdefault(group, {})
        times = spots.get(spot)
        if times is None:
            if len(spots) >= DESTINATIONS:
                over = self._over.setdefault(group, _Times(ms, executable))
                over.count += 1
                over.last = ms
                return
            times = spots[spot] = _Times(ms, executable)
        times.count += 1
        times.last = ms
        if times.count > LISTED:
            if times.count == LISTED + 1:
                times.first = ms
            return
        self._write(
            {
                "kind": "event",
                "n": self._attempts,
                "ms": ms,
                "pid": pid,
                "program": self._folders.path(executable),
                **self._spot(spot),
                **self._group(group),
                "note": None if note is None else self._folders.text(note),
            }
        )

    def finish(self) -> None:
        """Write what was counted and not listed, and what was let through."""
        for group, spots in self._listed.items():
            for spot, times in spots.items():
                if times.count > LISTED:
                    self._write(self._more(group, self._spot(spot), times, times.count - LISTED))
        for group, times in self._over.items():
            self._write(self._more(group, self._nowhere, times, times.count))
        for group, count in self._through.items():
            self._write(
                {
                    "kind": "let-through",
                    **self._group(group),
                    "count": count,
                    "truncated": group in self._unlisted,
                }
            )
            for spot, times in self._seen[group].items():
                self._write(
                    {
                        "kind": "seen",
                        **self._spot(spot),
                        **self._group(group),
                        "program": self._folders.path(times.program),
                        "first": times.first,
                        "count": times.count,
                    }
                )

    def _count_through(self, group: Group, spot: Spot, ms: int, executable: str) -> None:
        self._through[group] = self._through.get(group, 0) + 1
        spots = self._seen.setdefault(group, {})
        times = spots.get(spot)
        if times is None:
            if len(spots) >= SEEN:
                self._unlisted.add(group)
                return
            times = spots[spot] = _Times(ms, executable)
        times.count += 1

    def _more(self, group: Group, spot: Line, times: _Times, count: int) -> Line:
        return {
            "kind": "more",
            **spot,
            **self._group(group),
            "first": times.first,
            "last": times.last,
            "count": count,
        }

    def _spot(self, spot: Spot) -> Line:
        operation, protocol, destination, port = spot
        if protocol == "file":
            path, _, to = destination.partition("\0")
            where = {"path": self._folders.path(path), "to": self._folders.path(to) if to else None}
            return {"operation": operation, **where}
        return {
            "operation": operation,
            "protocol": protocol,
            "destination": self._folders.path(destination) if protocol == "unix" else destination,
            "port": port,
            "name": self._names.get(destination),
        }

    def _group(self, group: Group) -> Line:
        refused, by, asserting, observing = group
        return {
            "handling": "refused" if refused else "let-through",
            "by": None if by is None else self._rule(by),
            "asserting": [self._rule(rule) for rule in asserting],
            "observing": [self._rule(rule) for rule in observing],
        }

    def _rule(self, index: int) -> Line:
        rule = self._rules[index]
        return {"rule": rule.id, "claim": rule.claim}


class Recount(Value):
    """What the lines of a lane amount to: hits by rule id, listeners of others that can carry traffic on."""

    hits: Mapping[str, Hits]
    through: tuple[Through, ...]


class Counting:
    """Lane lines being counted, one after another; `result` is what they amount to so far."""

    def __init__(self) -> None:
        self._hits: dict[str, dict[str, int]] = {}
        self._connected: dict[tuple[str, str, int | None], int] = {}
        self._listening: set[tuple[str, int | None]] = set()

    def add(self, line: Mapping[str, object]) -> None:
        """Count one line; `ValueError` for one that is none."""
        kind = line.get("kind")
        count = 1 if kind == "event" else line.get("count")
        if kind not in ("event", "more", "let-through", "seen") or type(count) is not int:
            raise ValueError(f"`{kind}` is no kind of event")
        if kind != "seen":
            self._add_hits(line, count)
        if kind != "let-through" and line.get("handling") == "let-through":
            self._add_place(line, count)

    def result(self) -> Recount:
        """Return what was counted."""
        through = tuple(
            Through(protocol, destination, port, count)
            for (protocol, destination, port), count in sorted(
                self._connected.items(), key=lambda item: (*item[0][:2], item[0][2] or 0)
            )
            if protocol != "tcp" or not self._listened(destination, port)
        )
        return Recount(
            {rule: Hits(**counts) for rule, counts in sorted(self._hits.items())}, through
        )

    def _add_hits(self, line: Mapping[str, object], count: int) -> None:
        by = line.get("by")
        if by is not None and line.get("handling") == "refused":
            self._hit(by, "probes" if line.get("operation") == "probe" else "refused", count)
        elif by is not None:
            self._hit(by, "let_through", count)
        for key, field in (("asserting", "counted"), ("observing", "observed")):
            rules = line.get(key)
            if not isinstance(rules, list):
                raise ValueError(f"an event without `{key}`")
            for rule in rules:
                self._hit(rule, field, count)

    def _hit(self, rule: object, field: str, count: int) -> None:
        identity = rule.get("rule") if isinstance(rule, dict) else None
        if not isinstance(identity, str):
            raise ValueError("an event names no rule")
        counts = self._hits.setdefault(identity, {})
        counts[field] = counts.get(field, 0) + count

    def _add_place(self, line: Mapping[str, object], count: int) -> None:
        protocol, destination, port = (line.get(x) for x in ("protocol", "destination", "port"))
        if not isinstance(protocol, str) or not isinstance(destination, str):
            return
        number = port if isinstance(port, int) else None
        if line.get("operation") == "listen":
            self._listening.add((destination, number))
        elif _is_loopback(destination) or (protocol == "unix" and line.get("by") is not None):
            # A unix socket that a rule lets through is one outside: those of the run need no leave.
            where = (protocol, destination, number)
            self._connected[where] = self._connected.get(where, 0) + count

    def _listened(self, destination: str, port: int | None) -> bool:
        anywhere = ("::",) if ":" in destination else ("0.0.0.0", "::")  # noqa: S104  as text
        return any((address, port) in self._listening for address in (destination, *anywhere))


def recount(lines: Iterable[Mapping[str, object]]) -> Recount:
    """Return what lane lines amount to; `ValueError` for a line that is none."""
    counting = Counting()
    for line in lines:
        counting.add(line)
    return counting.result()


def _is_loopback(destination: str) -> bool:
    parsed = parse_address(destination)
    if parsed is None:
        return False
    family, value = canonical(*parsed)
    return any(of == family and first <= value <= last for of, first, last in LOOPBACK)
