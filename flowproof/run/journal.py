"""What a run's calls leave behind until it is sent on: the tuples of `record.wire`, kept in order."""

from __future__ import annotations

from flowproof.record.wire import ATTEMPT, CANARY, FAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.artifact.model import Decision
    from flowproof.record.codes import Code

    Wire = tuple[object, ...]

__all__ = ["Journal"]


class Journal:
    """Events in the order in which they happened; safe to add to from any thread.

    *clock* gives milliseconds since the command was spawned. While *canary_pid* is set, an attempt of that
    process is told as the canary's and counts as nobody's.
    """

    __slots__ = ("_events", "canary_pid", "clock")

    def __init__(self, clock: Callable[[], int]) -> None:
        self._events: list[Wire] = []
        self.clock = clock
        self.canary_pid: int | None = None

    def attempt(
        self,
        who: tuple[int, str],
        operation: str,
        where: tuple[str, str, int | None],
        decision: Decision,
        *,
        refused: bool,
        note: str | None = None,
    ) -> None:
        """Note an attempt by *who* (process, program) at *where* (protocol, destination, port).

        A refused UDP connect (``probe``) asserts nothing: no packet left, and none can follow.
        """
        if who[0] == self.canary_pid:
            self._events.append((CANARY, refused, decision.by))
            return
        asserting = () if operation == "probe" else decision.asserting
        self._events.append(
            (ATTEMPT, self.clock(), *who, operation, *where, refused, decision.by, asserting,
             decision.observing, note)
        )  # fmt: skip

    def fault(self, pid: int, code: Code, call: str, detail: str) -> None:
        """Note what the mechanism could not do or tell."""
        self._events.append((FAULT, self.clock(), pid, code.value, call, detail))

    def take(self) -> list[Wire]:
        """Return what was noted since the last time. One thread takes; others may add meanwhile."""
        count = len(self._events)
        batch = self._events[:count]
        del self._events[:count]
        return batch
