"""listen(2): judged by the address that the socket is bound to, before and after."""

from __future__ import annotations

from errno import EPERM, errorcode
from socket import SHUT_RDWR

from flowproof.record.codes import Code
from flowproof.run.caller import FaultError
from flowproof.run.journal import attempt
from flowproof.run.numbers import AF_INET, AF_INET6, IPPROTO_TCP, SO_DOMAIN, SO_PROTOCOL
from flowproof.run.sockaddr import Inet, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Decision
    from flowproof.run.caller import Caller

__all__ = ["handle"]


def handle(caller: Caller, arguments: tuple[int, ...]) -> int:
    """Return listen's result for the caller."""
    duplicate = caller.fetch(arguments[0])
    backlog = arguments[1] & 0xFFFFFFFF
    backlog = backlog - (1 << 32) if backlog > 0x7FFFFFFF else backlog
    try:
        domain = caller.option(duplicate, SO_DOMAIN)
        inet = domain in (AF_INET, AF_INET6)
        if not inet or caller.option(duplicate, SO_PROTOCOL) != IPPROTO_TCP:
            return _listen(caller, duplicate, backlog)  # unix: the one who connects is judged
        address, decision = _judge(caller, duplicate)
        if not decision.refused:
            result = _listen(caller, duplicate, backlog)
            if result < 0:
                _record(caller, address, decision)
                return result
            # A socket without an address gets one now, or got one from another thread just before.
            bound, final = _judge(caller, duplicate)
            _record(caller, bound, final)
            if final.refused and bound != address:
                caller.kernel.shutdown(duplicate, SHUT_RDWR)
                return -EPERM
            return result
        _record(caller, address, decision)
        return -EPERM
    finally:
        caller.kernel.close(duplicate)


def _judge(caller: Caller, duplicate: int) -> tuple[Inet, Decision]:
    """Return the address that the socket has now, and what becomes of a listen on it."""
    try:
        raw = caller.kernel.getsockname(duplicate)
    except OSError as error:
        step = f"getsockname: {errorcode.get(error.errno or 0, error.errno)}"
        raise FaultError(Code.PERFORM, step) from error
    address = parse(raw, bound=True)
    if not isinstance(address, Inet):
        raise FaultError(Code.PERFORM, "getsockname: no internet address")
    plane = f"listen-any{address.family}" if address.value == 0 else f"listen{address.family}"
    return address, caller.decisions.address(plane, address.value, address.port)


def _listen(caller: Caller, duplicate: int, backlog: int) -> int:
    try:
        caller.kernel.listen(duplicate, backlog)
    except OSError as error:
        return -(error.errno or EPERM)
    return 0


def _record(caller: Caller, address: Inet, decision: Decision) -> None:
    where = ("tcp", address.text, address.port)
    what = attempt("listen", where, decision, refused=decision.refused)
    caller.journal.attempt(caller.who(), what)
