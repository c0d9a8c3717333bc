"""What a run's calls leave behind until it is sent on: the tuples of `record.wire`, kept in order."""

from __future__ import annotations

from flowproof.record.codes import Code
from flowproof.record.wire import ATTEMPT, CANARY, FAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.artifact.model import Decision

    Wire = tuple[object, ...]

__all__ = ["Journal", "attempt"]


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


_WAITING = 500_000
"""Most events that wait for a recorder that does not take them; more are lost, which is a fault."""


class Journal:
    """Events in the order in which they happened; safe to add to from any thread.

    *clock* gives milliseconds since the command was spawned. While *canary_pid* is set, an attempt of that
    process is told as the canary's and counts as nobody's.
    """

    __slots__ = ("_add", "_events", "_lost", "canary_pid", "clock")

    def __init__(self, clock: Callable[[], int]) -> None:
        self._events: list[Wire] = []
        self._add = self._events.append
        self._lost = 0
        self.clock = clock
        self.canary_pid: int | None = None

    def attempt(self, who: tuple[int, str], what: Wire) -> None:
        """Note an attempt by *who* (process, program); *what* is the rest, as `attempt` makes it."""
        if who[0] == self.canary_pid:
            self._add((CANARY, what[4], what[5], what[0], what[2]))
            return
        if len(self._events) < _WAITING:
            self._add((ATTEMPT, self.clock(), *who, *what))
        else:
            self._lost += 1

    def fault(self, pid: int, code: Code, call: str, detail: str) -> None:
        """Note what the mechanism could not do or tell."""
        self._add((FAULT, self.clock(), pid, code.value, call, detail))

    def take(self) -> list[Wire]:
        """Return what was noted since the last time. One thread takes; others may add meanwhile."""
        count = len(self._events)
        batch = self._events[:count]
        del self._events[:count]
        if self._lost:
            detail = f"{self._lost} or more events were not taken in time"
            batch.append((FAULT, self.clock(), 0, Code.EVENTS_LOST.value, "journal", detail))
            self._lost = 0
        return batch
