"""Calls with a reply that the artifact fixes, whatever their arguments; recorded."""

from __future__ import annotations

from flowproof.run import numbers as n
from flowproof.run.journal import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Decision
    from flowproof.run.caller import Caller

__all__ = ["record_foreign", "record_socket"]

_FAMILIES = {
    n.AF_PACKET: "packet",
    n.AF_VSOCK: "vsock",
    n.AF_XDP: "xdp",
    n.AF_BLUETOOTH: "bluetooth",
}
_TYPES = {n.SOCK_PACKET: "packet", n.SOCK_RAW: "raw", n.SOCK_DCCP: "dccp"}
_PROTOCOLS = {n.IPPROTO_SCTP: "sctp", n.IPPROTO_MPTCP: "mptcp", n.IPPROTO_DCCP: "dccp"}


def record_socket(
    caller: Caller, call: str, decision: Decision, arguments: tuple[int, ...]
) -> None:
    """Record a socket or socketpair of another family, type or protocol, refused or let through."""
    family, kind, protocol = (argument & 0xFFFFFFFF for argument in arguments[:3])
    name = family_name(family, kind & n.SOCK_TYPE_MASK, protocol)
    note = f"{call}: family {family}, type {kind & n.SOCK_TYPE_MASK}, protocol {protocol}"
    what = attempt("socket", (name, name, None), decision, refused=decision.refused, note=note)
    caller.journal.attempt(caller.who(), what)


def family_name(family: int, kind: int, protocol: int) -> str:
    """Return the language's word for a socket that is none of TCP, UDP, unix and routing netlink."""
    if kind == n.SOCK_PACKET:  # the kernel makes it AF_PACKET, whatever the family says
        return "packet"
    if family in (n.AF_INET, n.AF_INET6):
        return _TYPES.get(kind) or _PROTOCOLS.get(protocol, "other")
    return _FAMILIES.get(family, "other")


def record_foreign(caller: Caller, decision: Decision, number: int, *, native: bool) -> None:
    """Record a call of a foreign ABI: one of another architecture, or an x32 number."""
    call = number & ~n.X32_SYSCALL_BIT if native else number
    note = f"{'x32' if native else 'program is 32-bit'}: call {call}"
    where = ("foreign-abi", "foreign-abi", None)
    caller.journal.attempt(
        caller.who(), attempt("foreign", where, decision, refused=True, note=note)
    )
