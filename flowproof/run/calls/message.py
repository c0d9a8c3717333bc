"""struct msghdr, copied once from the caller: name, data, control data with its descriptors."""

from __future__ import annotations

from errno import EBADF, EINVAL, EMSGSIZE, ENOBUFS
from struct import Struct

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.caller import AnswerError, FaultError
from flowproof.run.sockaddr import Inet, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.run.caller import Caller
    from flowproof.run.calls.target import Target

__all__ = ["MSGHDR_SIZE", "PAYLOAD_LIMIT", "Header", "Message", "data_of", "fit", "translated"]

PAYLOAD_LIMIT = 64 << 20
"""Most bytes of one call that are copied; a datagram of any family is smaller."""
_CONTROL_LIMIT = 1 << 16
_MSGHDR = Struct("=QI4xQQQQ8x")  # name, namelen, iov, iovlen, control, controllen; flags are output
MSGHDR_SIZE = _MSGHDR.size
_CMSGHDR = Struct("=Qii")
_UCRED = Struct("=iii")
_HARMLESS = {
    (n.SOL_SOCKET, n.SO_TIMESTAMPING),
    (n.SOL_SOCKET, n.SCM_TXTIME),
    (n.IPPROTO_IP, n.IP_TOS),
    (n.IPPROTO_IP, n.IP_TTL),
    (n.IPPROTO_IPV6, n.IPV6_FLOWINFO),
    (n.IPPROTO_IPV6, n.IPV6_HOPLIMIT),
    (n.IPPROTO_IPV6, n.IPV6_DONTFRAG),
    (n.IPPROTO_IPV6, n.IPV6_TCLASS),
    (n.IPPROTO_UDP, n.UDP_SEGMENT),
    (n.SOL_TLS, n.TLS_SET_RECORD_TYPE),
}
"""Control data that changes no destination. IPV6_RTHDR and IP_RETOPTS (source routes) do."""
_INTERFACES = {
    (n.IPPROTO_IP, n.IP_PKTINFO): (
        Struct("=i8x"),
        12,
    ),  # struct in_pktinfo: the interface, two addresses
    (n.IPPROTO_IPV6, n.IPV6_PKTINFO): (
        Struct("=16xi"),
        20,
    ),  # struct in6_pktinfo: an address, the interface
}
"""Control data that may choose an interface, which is harmless unless what goes to loopback leaves by it."""
_LOOPBACK_INTERFACE = 1
"""The number of `lo` in every network namespace (LOOPBACK_IFINDEX, net/flow.h of Linux)."""


class Header:
    """A copied struct msghdr; *name_length* 0 is no name, as in the kernel."""

    __slots__ = ("control", "control_length", "name", "name_length", "vector", "vectors")

    def __init__(self, raw: bytes) -> None:
        name, length, vector, vectors, control, control_length = _MSGHDR.unpack_from(raw)
        if length > 0x7FFFFFFF and name:
            raise AnswerError(EINVAL)
        if vectors > n.UIO_MAXIOV:
            raise AnswerError(EMSGSIZE)
        if control_length > _CONTROL_LIMIT:
            raise AnswerError(ENOBUFS)
        self.name = name
        self.name_length = min(length, n.SOCKADDR_STORAGE) if name else 0
        self.vector = vector
        self.vectors = vectors
        self.control = control
        self.control_length = control_length


class Message:
    """One message ready to be sent: *target* as judged, *data*, *control* with descriptors of our own."""

    __slots__ = ("control", "data", "descriptors", "target")

    def __init__(
        self, target: Target, data: bytes, control: bytes = b"", descriptors: tuple[int, ...] = ()
    ) -> None:
        self.target = target
        self.data = data
        self.control = control
        self.descriptors = descriptors


def data_of(caller: Caller, header: Header) -> list[tuple[int, int]]:
    """Return the (address, length) ranges of a message's data."""
    if not header.vectors:
        return []
    raw = caller.payload([(header.vector, 16 * header.vectors)])
    ranges = [(a, length) for a, length in Struct("=QQ").iter_unpack(raw)]
    if any(length > 0x7FFFFFFFFFFFFFFF for _address, length in ranges):
        raise AnswerError(EINVAL)
    return ranges


def fit(caller: Caller, ranges: list[tuple[int, int]], duplicate: int) -> list[tuple[int, int]]:
    """Return the ranges cut to what is copied at once.

    A stream takes less than all of it, as it may; anything else is EMSGSIZE (raised as `AnswerError`).
    """
    if sum(length for _address, length in ranges) <= PAYLOAD_LIMIT:
        return ranges
    if caller.option(duplicate, n.SO_TYPE) != n.SOCK_STREAM:
        raise AnswerError(EMSGSIZE)
    found = []
    left = PAYLOAD_LIMIT
    for address, length in ranges:
        found.append((address, min(length, left)))
        left -= found[-1][1]
    return found


def translated(
    caller: Caller, header: Header, destination: bytes = b""
) -> tuple[bytes, tuple[int, ...]]:
    """Return the caller's control data with its descriptors replaced by duplicates, and those.

    What could send a message elsewhere than to the judged *destination* (empty: where the socket is connected
    to), or speak for another, is refused and a fault.
    """
    if not header.control or header.control_length < _CMSGHDR.size:
        return b"", ()
    control = bytearray(caller.payload([(header.control, header.control_length)]))
    fetched: list[int] = []
    try:
        at = 0
        while at + _CMSGHDR.size <= len(control):
            length, level, kind = _CMSGHDR.unpack_from(control, at)
            if length < _CMSGHDR.size or length > len(control) - at:
                raise AnswerError(EINVAL)
            start, end = at + _CMSGHDR.size, at + length
            if (level, kind) == (n.SOL_SOCKET, n.SCM_RIGHTS):
                _fetch_all(caller, control, start, end, fetched)
            elif (level, kind) == (n.SOL_SOCKET, n.SCM_CREDENTIALS):
                _check_credentials(caller, bytes(control[start:end]))
            elif (level, kind) in _INTERFACES and (
                _stays(level, kind, bytes(control[start:end])) or _leaves(destination)
            ):
                pass
            elif (level, kind) not in _HARMLESS:
                detail = f"control data of level {level}, type {kind}"
                raise FaultError(Code.UNSUPPORTED_CALL, detail)
            at += (length + 7) & ~7
    except BaseException:
        for descriptor in fetched:
            caller.kernel.close(descriptor)
        raise
    return bytes(control), tuple(fetched)


def _stays(level: int, kind: int, data: bytes) -> bool:
    """Tell whether control data chooses no interface but the one of loopback; what is too short is EINVAL."""
    layout, size = _INTERFACES[level, kind]
    return len(data) < size or layout.unpack_from(data)[0] in (0, _LOOPBACK_INTERFACE)


def _leaves(destination: bytes) -> bool:
    """Tell whether a destination is off loopback, whichever interface leads there."""
    address = parse(destination) if destination else None
    return isinstance(address, Inet) and not address.loopback


def _fetch_all(
    caller: Caller, control: bytearray, start: int, end: int, fetched: list[int]
) -> None:
    """Replace the descriptors of one SCM_RIGHTS, remembering each that was fetched."""
    count = (end - start) // 4
    if len(fetched) + count > n.SCM_MAX_FD:
        raise AnswerError(EINVAL)
    numbers = Struct(f"={count}i")
    own = []
    for number in numbers.unpack_from(control, start):
        if number < 0:
            raise AnswerError(EBADF)
        own.append(caller.fetch(number))
        fetched.append(own[-1])
    numbers.pack_into(control, start, *own)


def _check_credentials(caller: Caller, raw: bytes) -> None:
    """Let through the caller's own credentials; the kernel then asks whether *we* may name them."""
    if len(raw) < _UCRED.size:
        raise AnswerError(EINVAL)
    pid, uid, gid = _UCRED.unpack_from(raw)
    status = caller.kernel.status(caller.tid)
    if pid != status.tgid or uid not in status.uids or gid not in status.gids:
        raise FaultError(Code.UNSUPPORTED_CALL, "SCM_CREDENTIALS of another process")
