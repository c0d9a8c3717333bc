"""sendmsg(2) and sendmmsg(2): every message copied whole, each destination judged on its copy."""

from __future__ import annotations

from errno import EMSGSIZE, ENOBUFS

from flowproof.record.wire import TOO_LARGE
from flowproof.run.caller import AnswerError
from flowproof.run.calls.destination import attempted, judge
from flowproof.run.calls.message import (
    MSGHDR_SIZE,
    PAYLOAD_LIMIT,
    Header,
    Message,
    data_of,
    fit,
    translated,
)
from flowproof.run.calls.sending import Sending
from flowproof.run.calls.target import Target
from flowproof.run.calls.unix import identity_of
from flowproof.run.numbers import AF_UNIX, MSG_ZEROCOPY, SO_DOMAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller, Work

__all__ = ["gather", "handle"]


def handle(caller: Caller, arguments: tuple[int, ...]) -> int | Work:
    """Return sendmsg's result for the caller, or the work that gives it."""
    flags = arguments[2] & 0xFFFFFFFF
    header = Header(caller.read(arguments[1], MSGHDR_SIZE))
    duplicate = caller.fetch(arguments[0])
    held: tuple[int, ...] = (duplicate,)
    try:
        message = gather(caller, header, duplicate, flags, PAYLOAD_LIMIT)
        sending = Sending(
            caller, duplicate, [message], flags, lambda one: attempted(caller, one.target, "send")
        )
        held = sending.descriptors
        result = sending.begin(caller.operation)
        if not isinstance(result, int):
            held = ()
        return result
    finally:
        for own in held:
            caller.kernel.close(own)


def gather(caller: Caller, header: Header, duplicate: int, flags: int, limit: int) -> Message:
    """Return the message that a header describes, judged; a refused one brings no data.

    More than *limit* bytes are EMSGSIZE, recorded (a stream takes what fits).
    """
    if header.name_length:
        raw = caller.read(header.name, header.name_length)
        target = judge(caller, raw, duplicate, sending=True)
    elif caller.privileged and caller.option(duplicate, SO_DOMAIN) == AF_UNIX:
        target = Target(b"", identity=identity_of(caller))  # the receiver may ask who it is from
    else:
        target = Target(b"")
    try:
        if target.refusal:
            return Message(target, b"")
        if flags & MSG_ZEROCOPY:  # the pages that the kernel would keep are not the caller's
            raise AnswerError(ENOBUFS)
        try:
            ranges = fit(caller, data_of(caller, header), duplicate)
        except AnswerError as error:
            if error.errno == EMSGSIZE:
                attempted(caller, target, "send", TOO_LARGE)
            raise
        if sum(length for _address, length in ranges) > limit:
            raise AnswerError(EMSGSIZE)
        data = caller.payload(ranges)
        control, descriptors = translated(caller, header, target.act)
    except BaseException:
        for own in target.held:
            caller.kernel.close(own)
        raise
    return Message(target, data, control, descriptors)
