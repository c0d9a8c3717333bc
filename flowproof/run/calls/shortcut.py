"""The short way through connect(2): the steps of `calls.connect` for a call like one that was seen before.

Nearly every trapped call is a known thread's connect to an internet address that was judged before. Its
time goes to what is touched on the way, frames above all: the processor comes from the program, with
nothing of ours in its caches. So all of it is one function over the bare calls of `Reach`.
"""

from __future__ import annotations

from ctypes import get_errno
from errno import EINTR
from struct import Struct

from flowproof.run.caller import PROGRAM_AGE
from flowproof.run.calls.connect import handle, perform, proceed
from flowproof.run.journal import WAITING
from flowproof.run.numbers import SECCOMP_IOCTL_NOTIF_ID_VALID, SO_PROTOCOL, SOL_SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.run.caller import Caller, Work

__all__ = ["shortcut"]

_VECTOR = Struct("=QQ")  # struct iovec
_TAKE = {size: Struct(f"{size}s").unpack_from for size in (16, 28)}
"""How an internet address is taken from the buffer: a struct sockaddr_in, a struct sockaddr_in6."""
_LAST = 0x7FFFFFFF
"""The largest descriptor, in a register whose upper half is clear."""


def shortcut(caller: Caller) -> Callable[[tuple[int, ...]], int | Work]:
    """Return connect's handler for one reader's caller; it is told a whole notification.

    Copied once, judged by that copy, acted with what was judged, as `handle` does it. Whatever is unusual
    is left to `handle`, which begins anew with a copy of its own, or to `proceed`, which goes on with this
    one: nothing was decided, recorded or done by then.
    """
    kernel, operation, journal = caller.kernel, caller.operation, caller.journal
    listener, notification = caller.listener, caller.notification
    pidfds, targets, programs = caller.pidfds, caller.targets, caller.programs
    events, note, point, reach = (
        journal.events,
        journal.events.append,
        _VECTOR.pack_into,
        caller.reach,
    )
    ioctl, read, fetch, option = reach.ioctl, reach.read, reach.fetch, reach.option
    connect, close, getfd, found = reach.connect, reach.close, reach.getfd, reach.found
    remote, into, of, address = reach.remote, reach.into, reach.of, reach.address
    value, length = reach.value, reach.length

    def short(fields: tuple[int, ...]) -> int | Work:
        tid, descriptor, size = fields[1], fields[6], fields[8]
        pidfd, take = pidfds.get(tid), _TAKE.get(size)
        if pidfd is None or take is None or descriptor > _LAST:
            return handle(caller, fields[6:])
        point(remote, 0, fields[7], size)
        if read(tid, into, 1, of, 1, 0) != size:
            return handle(caller, fields[6:])
        (raw,) = take(address)
        duplicate = fetch(getfd, pidfd, descriptor, 0)
        if duplicate < 0:
            return handle(caller, fields[6:])
        try:
            ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, notification)
        except OSError:
            close(duplicate)
            return handle(caller, fields[6:])
        if option(duplicate, SOL_SOCKET, SO_PROTOCOL, value, length) < 0:
            return proceed(caller, raw, duplicate)
        target = targets.get((raw, found[0]))
        if target is None or not target.quick or caller.crowded:
            return proceed(caller, raw, duplicate)
        try:
            now, known = operation.started, programs.get((tid, fields[5]))
            who = known[1] if known and now - known[0] < PROGRAM_AGE else caller.who()
            if journal.canary_pid is None and len(events) < WAITING:
                note((now, who, target.connecting))
            else:
                journal.attempt(who, target.connecting, now)
            if target.refusal:
                return -target.refusal
            act = target.act
            if connect(duplicate, act, len(act)) < 0:
                errno = get_errno()
                if errno == EINTR:
                    return perform(kernel, operation, duplicate, target, interrupted=True)
                return -(errno or EINTR)
            return 0
        finally:
            close(duplicate)

    return short
