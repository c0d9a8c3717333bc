"""The registry of handled calls: what each reads, decides, performs and records is in its module."""

from __future__ import annotations

from flowproof.run.calls import connect, listen, sendmmsg, sendmsg, sendto

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flowproof.run.caller import Caller, Work

    Handler = Callable[[Caller, tuple[int, ...]], int | Work]

__all__ = ["CALLS"]

CALLS: dict[str, Handler] = {
    "connect": connect.handle,
    "sendto": sendto.handle,
    "sendmsg": sendmsg.handle,
    "sendmmsg": sendmmsg.handle,
    "listen": listen.handle,
}
"""Call name → its handler: (caller, the six arguments) → the call's result, a negative errno or `Work`."""
