"""sendmmsg(2): several messages, sent in order until one is refused or fails."""

from __future__ import annotations

from flowproof.run.caller import AnswerError, FaultError
from flowproof.run.calls.destination import attempted
from flowproof.run.calls.message import MSGHDR_SIZE, PAYLOAD_LIMIT, Header, Message
from flowproof.run.calls.sending import Sending
from flowproof.run.calls.sendmsg import gather
from flowproof.run.numbers import UIO_MAXIOV

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller, Work

__all__ = ["handle"]

_MMSGHDR_SIZE = 64  # struct mmsghdr: msghdr, u32 msg_len, padding


def handle(caller: Caller, arguments: tuple[int, ...]) -> int | Work:
    """Return sendmmsg's result for the caller (the messages sent), or the work that gives it."""
    descriptor, vector, count, flags = arguments[:4]
    flags &= 0xFFFFFFFF
    count = min(count & 0xFFFFFFFF, UIO_MAXIOV)
    duplicate = caller.fetch(descriptor)
    if not count:
        caller.kernel.close(duplicate)
        return 0
    messages: list[Message] = []
    held: tuple[int, ...] = (duplicate,)
    try:
        _gather_all(caller, vector, count, duplicate, flags, messages)
        who = caller.who() if any(message.target.decision for message in messages) else None

        def attempt(message: Message) -> None:
            attempted(caller, message.target, "send", who=who)

        lengths = [vector + at * _MMSGHDR_SIZE + MSGHDR_SIZE for at in range(len(messages))]
        sending = Sending(caller, duplicate, messages, flags, attempt, lengths)
        result = sending.begin(caller.operation)
        if not isinstance(result, int):
            held, messages = (), []
        return result
    finally:
        held += tuple(d for m in messages for d in (*m.descriptors, *m.target.held))
        for own in held:
            caller.kernel.close(own)


def _gather_all(
    caller: Caller, vector: int, count: int, duplicate: int, flags: int, messages: list[Message]
) -> None:
    """Copy and judge messages up to the first that is refused or cannot be copied.

    One that cannot ends the list, as it would end the kernel's; the first of all raises.
    """
    left = PAYLOAD_LIMIT
    for at in range(count):
        try:
            header = Header(caller.read(vector + at * _MMSGHDR_SIZE, MSGHDR_SIZE))
            message = gather(caller, header, duplicate, flags, left)
        except AnswerError:
            if messages:
                return
            raise
        except FaultError as error:
            if messages:
                caller.note_fault(error, "sendmmsg")
                return
            raise
        messages.append(message)
        left -= len(message.data)
        if message.target.refusal:
            return
