"""connect(2): judged on a copy of the address, performed with that copy on a duplicate of the socket."""

from __future__ import annotations

from errno import EALREADY, EINPROGRESS, EINTR, EISCONN
from functools import partial

from flowproof.run.caller import Work
from flowproof.run.calls.destination import attempted, judge, read_address
from flowproof.run.calls.unix import acting_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller, Operation
    from flowproof.run.calls.target import Target
    from flowproof.run.kernel import Kernel

__all__ = ["handle", "perform", "proceed"]


def handle(caller: Caller, arguments: tuple[int, ...]) -> int | Work:
    """Return connect's result for the caller, or the work that gives it."""
    raw = read_address(caller, arguments[1], arguments[2])
    return proceed(caller, raw, caller.fetch(arguments[0]))


def proceed(caller: Caller, raw: bytes, duplicate: int) -> int | Work:
    """Return the result of connecting the fetched socket, which this closes, to a copied address."""
    held: tuple[int, ...] = (duplicate,)
    try:
        target = judge(caller, raw, duplicate, sending=False)
        if target.held:
            held += target.held
        attempted(caller, target, "connect")
        if target.refusal:
            return -target.refusal
        kernel = caller.kernel
        inline = target.quick and (not caller.crowded or target.protocol == "udp")
        if inline or kernel.nonblocking(duplicate):
            return perform(kernel, caller.operation, duplicate, target)
        work = _later(kernel, duplicate, target, held)
        held = ()
        return work
    finally:
        for descriptor in held:
            caller.kernel.close(descriptor)


def _later(kernel: Kernel, duplicate: int, target: Target, held: tuple[int, ...]) -> Work:
    """Return the work of connecting. A function of its own: `handle` is quicker without a closure."""
    return Work(lambda operation: perform(kernel, operation, duplicate, target), held)


def perform(
    kernel: Kernel,
    operation: Operation,
    duplicate: int,
    target: Target,
    *,
    interrupted: bool = False,
) -> int:
    """Return the result of connecting; a signal to this thread ends it only if it was withdrawn.

    *interrupted*: one try was, already.
    """
    while True:
        if interrupted and operation.withdrawn is not None:
            return operation.interrupted(kernel, duplicate)
        try:
            if target.identity is None:
                kernel.connect(duplicate, target.act)
            else:
                act = partial(_act, kernel, duplicate, target.act)
                acting_as(kernel, target.identity, act, operation)
        except OSError as error:
            if error.errno == EINTR:
                interrupted = True
                continue
            if interrupted and error.errno == EISCONN:  # it went through meanwhile
                return 0
            if (
                interrupted and error.errno == EALREADY
            ):  # its time is over: a second call says it so
                return -EINPROGRESS
            return -(error.errno or EINTR)
        return 0


def _act(kernel: Kernel, descriptor: int, address: bytes) -> int:
    kernel.connect(descriptor, address)
    return 0
