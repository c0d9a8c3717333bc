"""What a filter set is compared on: a lane for each layer, family and kind of attempt.

Where the platform's pages leave open what a layer knows, there is a lane for each possibility, and the
policy has to hold in all: the address of a listen on every address (0.0.0.0, or none at all), and the ports
of protocols that may have none.
"""

from __future__ import annotations

from bisect import bisect_right

from flowproof.addresses import LAST, LOOPBACK, format_address
from flowproof.ir.ports import ANY_PORT
from flowproof.values import Value
from flowproof.verify.filter_forms import SIDES, form, ports_of
from flowproof.verify.reading import Line
from flowproof.verify.wfp import TCP, UDP, Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from flowproof.verify.filter_forms import Form
    from flowproof.verify.reading import Read
    from flowproof.verify.sweep import Box, Member

    Filter = Mapping[str, Any]

__all__ = ["EXEMPT", "FILTER", "Lane", "lanes"]

FILTER = "filter"
EXEMPT = "exempt"  # no filter: loopback is here
EVERY = "every"  # no filter: address 0, which stands for every address
MAPPED = "mapped"  # no filter: here the IPv6 line holds IPv4
_FIRST = 0xFFFF << 32  # ::ffff:0:0/96 (RFC 4291)
_NAMES = {TCP: "tcp", UDP: "udp"}


class Lane(Value):
    """One line of addresses and ports. *where* names it: a plane of the tables, or ``other4`` (an attempt
    by another protocol), ``accept4`` (a stream let in) and ``inbound4`` (anything else let in).

    *wants* is how the tables say what is wanted: ``decided``, ``other``, ``accepted`` or ``stranger``.
    *address* is ``given``, ``zero``, ``mapped zero`` or ``none``; *ported*: the layer knows a port.
    """

    where: str
    layer: str
    protocol: int
    line: Line
    wants: str
    forms: tuple[Form, ...]
    address: str = "given"
    ported: bool = True

    @property
    def family(self) -> int:
        """4 or 6."""
        return int(self.layer[-1])

    def boxes(self) -> Iterator[Box]:
        """Yield where each filter matches, and where loopback is."""
        for held in self.forms:
            if not self.ported and held.ports is not None:
                continue
            for first, last in self._spans(held):
                yield first, last, ports_of(held), (held.at, FILTER)
        for kin, first, last in LOOPBACK:
            if kin == self.family:
                yield first, last, ANY_PORT, (-1, EXEMPT)
            elif self.family == 6:
                yield _FIRST + first, _FIRST + last, ANY_PORT, (-1, EXEMPT)
        if self.family == 6:
            yield _FIRST, _FIRST + LAST[4], ANY_PORT, (-1, MAPPED)
        if self._binds:
            # cells of their own, so that no other one is taken to be done with them
            for zero in (0,) if self.family == 4 else (0, _FIRST):
                yield zero, zero, ANY_PORT, (-1, EVERY)

    def _spans(self, held: Form) -> Iterable[tuple[int, int]]:
        if self.address == "none":
            return ((0, LAST[self.family]),) if held.unaddressed else ()
        return ((0, LAST[self.family]),) if held.spans is None else held.spans

    def holds(self, first: int) -> bool:
        """Tell whether the cell that begins at address *first* has attempts of this lane."""
        if self.address == "given":
            return not self._binds or first not in (0, _FIRST)
        return first == (_FIRST if self.address == "mapped zero" else 0)

    def cell(self, first: int, last: int, members: Iterable[Member]) -> tuple[str, int, int, int]:
        """Return (lane, family, first and last address) of a cell as the tables have it: IPv4 as IPv4."""
        if self.address != "given":
            return self.where, int(self.where[-1]), 0, 0
        if any(role == MAPPED for _, role in members):
            return f"{self.where[:-1]}4", 4, first - _FIRST, last - _FIRST
        return self.where, self.family, first, last

    @property
    def _binds(self) -> bool:
        """A listen on address 0 is one on every address, and another lane's."""
        return self.layer.startswith("ALE_AUTH_LISTEN")

    def attempt(self, address: int, port: int) -> Attempt:
        """Return the attempt of a cell."""
        point = None if self.address == "none" else (self.family, address)
        whose, port_field = SIDES[self.layer[:-3]]
        number = port if self.ported else None
        return Attempt(
            self.layer,
            self.protocol,
            remote=point if whose == "IP_REMOTE_ADDRESS" else None,
            remote_port=number if port_field == "IP_REMOTE_PORT" else None,
            local=point if whose == "IP_LOCAL_ADDRESS" else None,
            local_port=number if port_field == "IP_LOCAL_PORT" else None,
        )

    def event(self, address: int, port: int) -> str:
        """Return the attempt of a cell in words."""
        at = "no address" if self.address == "none" else format_address(self.family, address)
        ports = f"port {port}" if self.ported else "no port"
        return f"{self.layer} protocol {self.protocol} {at} {ports}"


def lanes(filters: Sequence[Filter], read: Read, flat: Line) -> Iterator[Lane]:
    """Yield the lanes to compare comparable *filters* on. *flat* is a line without cells of its own."""
    held: dict[str, list[Form]] = {}
    for at, one in enumerate(filters):
        held.setdefault(one["layer"], []).append(form(at, one))
    for family in (4, 6):
        layer = f"ALE_AUTH_CONNECT_V{family}"
        forms = held.get(layer, [])
        for protocol, name in _NAMES.items():
            where = f"{name}{family}"
            taken = _taking(forms, protocol)
            yield Lane(where, layer, protocol, _line(read, name, family), "decided", taken)
        yield from _others(f"other{family}", layer, forms, flat, "other", (TCP, UDP))
        yield from _listens(family, tuple(held.get(f"ALE_AUTH_LISTEN_V{family}", ())), read)
        layer = f"ALE_AUTH_RECV_ACCEPT_V{family}"
        forms = held.get(layer, [])
        line = read.planes["listen-any6"]
        taken = _taking(forms, TCP)
        yield Lane(f"accept{family}", layer, TCP, line, "accepted", taken)
        yield from _others(f"inbound{family}", layer, forms, flat, "stranger", (TCP,))


def _taking(forms: Iterable[Form], protocol: int) -> tuple[Form, ...]:
    return tuple(held for held in forms if held.takes(protocol))


def _others(
    where: str, layer: str, forms: Sequence[Form], flat: Line, wants: str, but: tuple[int, ...]
) -> Iterator[Lane]:
    """Yield a lane for each set of filters that takes some protocol besides *but*, with a port (an ICMP
    code or type stands where one would) and without.
    """
    cuts = {0, *(protocol + near for protocol in but for near in (0, 1))}
    for held in forms:
        cuts.update(end for low, high in held.protocols or () for end in (low, high + 1))
    seen: set[tuple[int, ...]] = set()
    for protocol in sorted(cuts):
        if protocol in but or protocol > 255:
            continue
        taken = _taking(forms, protocol)
        key = tuple(one.at for one in taken)
        if key in seen:
            continue
        seen.add(key)
        for ported in (True, False):
            if ported or any(one.ports is not None for one in taken):
                yield Lane(where, layer, protocol, flat, wants, taken, ported=ported)


def _listens(family: int, forms: tuple[Form, ...], read: Read) -> Iterator[Lane]:
    layer = f"ALE_AUTH_LISTEN_V{family}"
    where = f"listen{family}"
    yield Lane(where, layer, TCP, _line(read, "listen", family), "decided", forms)
    where = f"listen-any{family}"
    for address in ("zero", "none"):
        yield Lane(where, layer, TCP, read.planes[where], "decided", forms, address)
    if family == 6:
        where = "listen-any4"
        yield Lane(where, layer, TCP, read.planes[where], "decided", forms, "mapped zero")


def _line(read: Read, name: str, family: int) -> Line:
    """Return what the layer of *family* sees: *Application Layer Enforcement (ALE)* says that IPv4 of a
    socket of both families may be seen at the IPv6 layer alone, mapped.
    """
    four, six = read.planes[f"{name}4"], read.planes[f"{name}6"]
    if family == 4:
        return four
    end = _FIRST + LAST[4] + 1
    before = [start for start in six.starts if start < _FIRST]
    behind = [start for start in six.starts if start > end]
    starts = [*before, *(_FIRST + start for start in four.starts), end, *behind]
    resumed = six.values[bisect_right(six.starts, end) - 1]
    last = six.values[len(six.starts) - len(behind) :]
    return Line(starts, [*six.values[: len(before)], *four.values, resumed, *last])
