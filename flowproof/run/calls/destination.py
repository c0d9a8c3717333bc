"""Where a call would go: the copied address parsed, judged, and what to act with."""

from __future__ import annotations

from errno import ECONNREFUSED, EPERM

from flowproof.run.calls import unix
from flowproof.run.calls.target import Target
from flowproof.run.numbers import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    IPPROTO_DCCP,
    IPPROTO_MPTCP,
    IPPROTO_SCTP,
    IPPROTO_TCP,
    IPPROTO_UDP,
    NETLINK_ROUTE,
    SO_DOMAIN,
    SO_PROTOCOL,
    SOCKADDR_STORAGE,
)
from flowproof.run.sockaddr import Inet, Malformed, Netlink, Unix, Unspecified, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller

__all__ = ["attempted", "judge", "read_address"]

_TARGETS = 4096
_PROTOCOLS = {IPPROTO_TCP: "tcp", IPPROTO_UDP: "udp"}
_ODD_PROTOCOLS = {IPPROTO_SCTP: "sctp", IPPROTO_MPTCP: "mptcp", IPPROTO_DCCP: "dccp"}


def read_address(caller: Caller, pointer: int, length: int) -> bytes:
    """Return the caller's copy of an address; empty where its length is none that the kernel takes."""
    size = length & 0xFFFFFFFF
    if not 0 < size <= SOCKADDR_STORAGE:
        return b""
    return caller.read(pointer, size)


def judge(caller: Caller, raw: bytes, duplicate: int, *, sending: bool) -> Target:
    """Return what becomes of a connect or send to *raw* on the fetched socket."""
    protocol = caller.option(duplicate, SO_PROTOCOL)
    known = caller.targets.get((raw, protocol))
    if known is not None:
        return known
    match parse(raw):
        case Inet() as address:
            target = _inet(caller, address, protocol)
            if len(caller.targets) >= _TARGETS:
                caller.targets.clear()
            target.connecting = target.told("connect", None)
            caller.targets[raw, protocol] = target
            return target
        case Unspecified(inet):
            return _unspecified(caller, raw, inet, duplicate, protocol, sending=sending)
        case Unix() as address:
            return unix.judge(caller, address, raw, duplicate)
        case Netlink():
            domain = caller.option(duplicate, SO_DOMAIN)
            if domain == AF_NETLINK and protocol == NETLINK_ROUTE:
                return Target(raw)
            return _unreadable(caller, raw, AF_NETLINK)
        case Malformed(family):
            if sending and not raw and caller.option(duplicate, SO_DOMAIN) == AF_UNIX:
                return Target(b"")  # unix_dgram_sendmsg: no length, no name
            return _unreadable(caller, raw, family)


def attempted(
    caller: Caller,
    target: Target,
    operation: str,
    note: str | None = None,
    who: tuple[int, str] | None = None,
) -> None:
    """Record the attempt that a judged call is, if it is one; by *who*, unless by the present caller."""
    if target.decision is not None:
        at = None if who else caller.operation.started  # another's call may be under way by now
        caller.journal.attempt(who or caller.who(), target.told(operation, note), at)


def _inet(caller: Caller, address: Inet, protocol: int) -> Target:
    name = _PROTOCOLS.get(protocol)
    if name is None:  # a socket that the filter did not see being made
        decision = caller.decisions.special("families")
        refusal = EPERM if decision.refused else 0
        family = _ODD_PROTOCOLS.get(protocol, "other")
        return Target(address.raw, refusal, decision, family, address.text, address.port)
    decision = caller.decisions.address(f"{name}{address.family}", address.value, address.port)
    refusal = ECONNREFUSED if decision.refused else 0
    quick = address.loopback or name == "udp"  # what a watchdog suffices for
    return Target(address.raw, refusal, decision, name, address.text, address.port, quick=quick)


def _unspecified(
    caller: Caller, raw: bytes, inet: Inet | None, duplicate: int, protocol: int, *, sending: bool
) -> Target:
    if not sending:
        return Target(raw)  # connect(2): dissolves the association, and goes nowhere
    domain = caller.option(duplicate, SO_DOMAIN)
    if domain == AF_INET and inet is not None:
        return _inet(caller, inet, protocol)  # udp_sendmsg delivers it to sin_addr
    if domain == AF_INET6:
        return Target(b"")  # udpv6_sendmsg: as if there were no name
    return _unreadable(caller, raw, 0)


def _unreadable(caller: Caller, raw: bytes, family: int | None) -> Target:
    """Return the target of an address that is of no known kind: refused wherever anything is."""
    decision = caller.decisions.special("unreadable")
    text = "no family" if family is None else f"family {family}, {len(raw)} bytes"
    return Target(
        raw, ECONNREFUSED if decision.refused else 0, decision, "other", text, None, quick=True
    )
