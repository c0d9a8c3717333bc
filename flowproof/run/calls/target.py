"""What became of a destination: what to act with, and what is recorded of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Decision

__all__ = ["Target"]


class Target:
    """A judged destination.

    *act* is the address to act with (empty: none), *refusal* the errno of a refused one, 0 of one let
    through. Without a *decision* the call is no attempt and nothing is recorded. *quick*: it sleeps so
    rarely that the reader performs it itself. *held* are descriptors that *act* leans on; *identity* (user,
    group, groups) is whom to act as where that is not the supervisor's own.
    """

    __slots__ = ("act", "decision", "held", "identity", "note", "port", "protocol", "quick",
                 "refusal", "text")  # fmt: skip

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
