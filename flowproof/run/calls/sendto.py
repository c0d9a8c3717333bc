"""sendto(2) with an address: one datagram, or a connect with data (MSG_FASTOPEN)."""

from __future__ import annotations

from errno import EMSGSIZE, ENOBUFS

from flowproof.record.wire import TOO_LARGE
from flowproof.run.caller import AnswerError
from flowproof.run.calls.destination import attempted, judge, read_address
from flowproof.run.calls.message import Message, fit
from flowproof.run.calls.sending import Sending
from flowproof.run.calls.target import Target
from flowproof.run.numbers import MSG_ZEROCOPY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller, Work

__all__ = ["handle"]


def handle(caller: Caller, arguments: tuple[int, ...]) -> int | Work:
    """Return sendto's result for the caller, or the work that gives it."""
    descriptor, pointer, size, flags, address, length = arguments
    flags &= 0xFFFFFFFF
    if flags & MSG_ZEROCOPY:  # the pages that the kernel would keep are not the caller's
        raise AnswerError(ENOBUFS)
    raw = read_address(caller, address, length) if address else None
    duplicate = caller.fetch(descriptor)
    held: tuple[int, ...] = (duplicate,)
    try:
        target = Target(b"") if raw is None else judge(caller, raw, duplicate, sending=True)
        held += target.held
        if target.refusal:
            attempted(caller, target, "send")
            return -target.refusal
        try:
            ranges = fit(caller, [(pointer, size)], duplicate)
        except AnswerError as error:
            if error.errno == EMSGSIZE:
                attempted(caller, target, "send", TOO_LARGE)
            raise
        attempted(caller, target, "send")
        message = Message(target, caller.payload(ranges))
        sending = Sending(caller, duplicate, [message], flags, lambda _message: None)
        result = sending.begin(caller.operation)
        if not isinstance(result, int):
            held = ()
        return result
    finally:
        for own in held:
            caller.kernel.close(own)
