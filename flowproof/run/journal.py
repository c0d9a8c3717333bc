"""What a run's calls leave behind until it is sent on: the tuples of `record.wire`, kept in order."""

from __future__ import annotations

from time import monotonic

from flowproof.record.codes import Code
from flowproof.record.wire import ATTEMPT, CANARY, FAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from flowproof.artifact.model import Decision

    Wire = tuple[object, ...]

__all__ = ["WAITING", "Journal", "attempt"]


def attempt(
    operation: str,
    where: tuple[str, str, int | None],
    decision: Decision,
    *,
    refused: bool,
    note: str | None = None,
) -> Wire:
    """Return an attempt at *where* (protocol, destination, port) as it is told, but for who and when.

    A refused UDP connect (``probe``) asserts nothing: no packet left, and none can follow.
    """
    asserting = () if operation == "probe" else decision.asserting
    return (operation, *where, refused, decision.by, asserting, decision.observing, note)


WAITING = 500_000
"""Most events that wait for a recorder that does not take them; more are lost, which is a fault."""


class Journal:
    """Events in the order in which they happened; safe to add to from any thread.

    *clock* gives the milliseconds from the command's spawn to a monotonic time. While *canary_pid* is set,
    an attempt of that process is told as the canary's and counts as nobody's.
    """

    __slots__ = ("_add", "_clock", "_lost", "canary_pid", "events")

    def __init__(self, clock: Callable[[float], int]) -> None:
        self.events: list[Wire] = []
        self._add = self.events.append
        self._lost = 0
        self._clock = clock
        self.canary_pid: int | None = None

    def attempt(self, who: tuple[int, str], what: Wire, at: float | None = None) -> None:
        """Note an attempt by *who* (process, program); *what* is the rest, as `attempt` makes it.

        *at* is when, on the monotonic clock: now, unless told.
        """
        if who[0] == self.canary_pid:
            self._add((CANARY, what[4], what[5], what[0], what[2]))
        elif len(self.events) < WAITING:
            self._add((at or monotonic(), who, what))  # told in full by whoever takes it
        else:
            self._lost += 1

    def fault(self, pid: int, code: Code, call: str, detail: str) -> None:
        """Note what the mechanism could not do or tell."""
        self._add((FAULT, self._clock(monotonic()), pid, code.value, call, detail))

    def take(self) -> list[Wire]:
        """Return what was noted since the last time. One thread takes; others may add meanwhile."""
        count, clock = len(self.events), self._clock
        batch = [
            _in_full(event, clock) if type(event[0]) is float else event
            for event in self.events[:count]
        ]
        del self.events[:count]
        if self._lost:
            detail = f"{self._lost} or more events were not taken in time"
            lost = (FAULT, clock(monotonic()), 0, Code.EVENTS_LOST.value, "journal", detail)
            batch.append(lost)
            self._lost = 0
        return batch


def _in_full(event: tuple[Any, ...], clock: Callable[[float], int]) -> Wire:
    """Return an attempt, kept as (when, who, what), as the wire has it."""
    at, who, what = event
    return (ATTEMPT, clock(at), *who, *what)
