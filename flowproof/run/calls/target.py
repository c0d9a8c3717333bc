"""What became of a destination: what to act with, and what is recorded of it."""

from __future__ import annotations

from flowproof.run.journal import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Decision

__all__ = ["Target"]


class Target:
    """A judged destination.

    *act* is the address to act with (empty: none), *refusal* the errno of a refused one, 0 of one let
    through. Without a *decision* the call is no attempt and nothing is recorded. *quick*: it sleeps so
    rarely that the reader performs it itself. *connecting* is what the journal is told of a connect to an
    internet address. *held* are descriptors that *act* leans on; *identity* (user,
    group, groups) is whom to act as where that is not the supervisor's own.
    """

    __slots__ = ("_told", "act", "connecting", "decision", "held", "identity", "note", "port",
                 "protocol", "quick", "refusal", "text")  # fmt: skip

    def __init__(
        self,
        act: bytes,
        refusal: int = 0,
        decision: Decision | None = None,
        protocol: str = "",
        text: str = "",
        port: int | None = None,
        *,
        quick: bool = True,
        note: str | None = None,
        held: tuple[int, ...] = (),
        identity: tuple[int, int, tuple[int, ...]] | None = None,
    ) -> None:
        self.act = act
        self.refusal = refusal
        self.decision = decision
        self.protocol = protocol
        self.text = text
        self.port = port
        self.quick = quick
        self.note = note
        self.held = held
        self.identity = identity
        self.connecting: tuple[object, ...] = ()
        self._told: dict[tuple[str, str | None], tuple[object, ...]] = {}

    def told(self, operation: str, note: str | None) -> tuple[object, ...]:
        """Return what the journal is told of an attempt there, made once."""
        found = self._told.get((operation, note))
        if found is None:
            assert self.decision is not None  # without one there is no attempt
            refused = self.decision.refused
            name = operation
            if self.protocol == "unix":
                name = "unix"
            elif refused and self.protocol == "udp" and operation == "connect":
                name = "probe"
            where = (self.protocol, self.text, self.port)
            found = attempt(name, where, self.decision, refused=refused, note=note or self.note)
            self._told[operation, note] = found
        return found
