"""The decision tables against the reference meaning: every cell of the partition that their bounds and the
policy's make, special entries, unix rows, and what binding a symbol later will find in the lists.

A cell is told by who holds it (region algebra over the policy) and by its entry; each combination is compared
once (`reference` says why that is complete). Where the policy has symbols, the lists of an entry matter
beyond what they decide now: they are compared in a normal form, in which only what no binding can bring
forward is left out. Equal normal forms decide alike under every binding.
"""

from __future__ import annotations

from flowproof.addresses import LAST, format_address
from flowproof.ir.events import Connect, Family, Foreign, Listen, Unix
from flowproof.values import Value, replace
from flowproof.verify.bindings import Bindings
from flowproof.verify.found import Counterexample
from flowproof.verify.holders import boxes as boxes_of
from flowproof.verify.reading import PLANES
from flowproof.verify.reference import Reference
from flowproof.verify.sweep import address_cells, port_cells
from flowproof.verify.telling import Telling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.ir.events import Event
    from flowproof.ir.model import Policy
    from flowproof.verify.reading import Outcome, Read
    from flowproof.verify.sweep import Box, Held, Member

__all__ = ["Compared", "compare_tables"]


class Compared(Value):
    """How far a comparison went: *cells* compared, *kinds* of them, and the first *difference*."""

    cells: int
    kinds: int
    difference: Counterexample | None


def compare_tables(policy: Policy, read: Read) -> Compared:
    """Return whether *read* decides everything as *policy* means it."""
    comparison = _Comparison(policy, read)
    difference = next(comparison.differences(), None)
    return Compared(comparison.cells, comparison.kinds, difference)


class _Comparison:
    def __init__(self, policy: Policy, read: Read) -> None:
        self._policy = policy
        self._read = read
        self._reference = Reference(policy)
        self._telling = Telling(policy, read)
        self._bindings = Bindings(policy, read, self._telling)
        self._symbolic = {
            action
            for rule in policy.rules
            for action in (rule.action,)
            if rule.targets.symbols or rule.exceptions.symbols
        }
        self._compared: set[tuple[str, tuple[Member, ...], int]] = set()
        self.cells = 0

    @property
    def kinds(self) -> int:
        return len(self._reference)

    def differences(self) -> Iterator[Counterexample]:
        done: list[tuple[list[Box], object]] = []
        held = boxes_of(self._policy)
        for name in PLANES:
            if name.startswith("listen-any"):
                yield from self._listen_any(name)
                continue
            boxes = held[name]
            same = (boxes, self._read.planes[name])
            if same not in done:  # tcp and udp are mostly alike: who holds a point decides
                done.append(same)
                yield from self._plane(name, boxes)
        yield from self._special()
        yield from self._unix()

    # --- addresses

    def _plane(self, name: str, boxes: list[Box]) -> Iterator[Counterexample]:
        family = int(name[-1])
        action = "listen" if name.startswith("listen") else "connect"
        lines, compared = self._read.ports, self._compared
        cells = 0
        for first, last, table, holders in address_cells(
            boxes, self._read.planes[name], LAST[family]
        ):
            address = first
            if action == "listen" and first == 0:  # a listen on 0.0.0.0 or :: has planes of its own
                if last == 0:
                    continue
                address = 1
            for port, entry, members in port_cells(holders, lines[table]):
                cells += 1
                key = (action, members, entry)
                if key not in compared:
                    compared.add(key)
                    found = self._cell(name, action, address, port, members, entry)
                    if found is not None:
                        yield found
        self.cells += cells

    def _cell(
        self,
        plane: str,
        action: str,
        address: int,
        port: int,
        members: tuple[Member, ...],
        entry: int,
    ) -> Counterexample | None:
        family = int(plane[-1])

        def event() -> Event:
            if action == "listen":
                return Listen(family, address, port)
            return Connect(plane[:-1], family, address, port)

        wanted = self._reference.cell(action, members, event)
        differs = wanted != self._read.outcomes[entry]
        if not differs and action not in self._symbolic:
            return None
        part = f"plane {plane} at {format_address(family, address)} port {port}, entry {entry}"
        if differs:
            return self._telling.of_entry(str(event()), entry, wanted, part)
        return self._bindings.difference(str(event()), members, entry, part)

    def _listen_any(self, name: str) -> Iterator[Counterexample]:
        """Compare a plane of listens on every address: by port, each with the boxes that hold it."""
        family = int(name[-1])
        line = self._read.planes[name]
        if line.starts != [0]:
            yield Counterexample(
                "listen tcp 0.0.0.0" if family == 4 else "listen tcp ::",
                "is cut by addresses",
                "has no address to be cut by",
                None,
                None,
                f"plane {name}",
            )
            return
        boxes: set[Held] = set()
        for at, rule in enumerate(self._policy.rules):
            if rule.action != "listen" or rule.meaning is not None:
                continue
            for region in (rule.named, rule.otherwise, rule.exceptions.region):
                boxes.update(((at, str(ports)), ports) for *_, ports in region)
        seen: set[tuple[tuple[Member, ...], int]] = set()
        for port, entry, members in port_cells(boxes, self._read.ports[line.values[0]]):
            self.cells += 1
            if (members, entry) in seen:
                continue
            seen.add((members, entry))
            listen = Listen(family, 0, port)
            wanted = self._reference.event(listen, [at for at, _ in members])
            if wanted != self._read.outcomes[entry]:
                part = f"plane {name} at port {port}, entry {entry}"
                yield self._telling.of_entry(str(listen), entry, wanted, part)

    # --- what has no address

    def _special(self) -> Iterator[Counterexample]:
        bare = [
            at
            for at, rule in enumerate(self._policy.rules)
            if rule.targets.bare_anything or rule.targets.bare_otherwise
        ]
        path = "/" + "x" * (1 + max((len(path) for path in _paths(self._policy)), default=0))
        events: dict[str, Event] = {
            "families": Family("other"),
            "foreign-abi": Foreign(),
            "unix": Unix(path),  # longer than any that a rule names
        }
        members = [at for at in bare if self._policy.rules[at].action == "connect"]
        naming = {at for at, rule in enumerate(self._policy.rules) if rule.exceptions.unix}
        for name, event in events.items():
            entry = self._read.special[name]
            self.cells += 1
            wanted = self._reference.event(event, {*members, *naming})
            if wanted != self._read.outcomes[entry]:
                yield self._telling.of_entry(
                    str(event), entry, wanted, f"special {name}, entry {entry}"
                )
        self.cells += 1
        wanted = self._unreadable(self._reference.event(Foreign(), members))
        entry = self._read.special["unreadable"]
        if wanted != self._read.outcomes[entry]:
            what = "connect to an address of no known kind"
            yield self._telling.of_entry(what, entry, wanted, f"special unreadable, entry {entry}")

    def _unreadable(self, foreign: Outcome) -> Outcome:
        """Return what becomes of an address of no known kind: scopes hold it as they hold a foreign call,
        and the fixed meaning that refuses it otherwise is its own.
        """
        by = None if foreign.by is None else self._policy.rules[foreign.by]
        if by is not None and by.meaning is None:
            return foreign
        own = next(
            (at for at, rule in enumerate(self._policy.rules) if rule.meaning == "unreadable"), None
        )
        return replace(foreign, refused=own is not None, by=own)

    def _unix(self) -> Iterator[Counterexample]:
        connects = [at for at, rule in enumerate(self._policy.rules) if rule.action == "connect"]
        bare = [
            at
            for at in connects
            if (targets := self._policy.rules[at].targets).bare_anything or targets.bare_otherwise
        ]
        holders: dict[str, set[int]] = {}
        for at in connects:
            rule = self._policy.rules[at]
            for path in (*rule.targets.unix, *rule.exceptions.unix):
                holders.setdefault(path, set()).add(at)
        for path in sorted({*holders, *self._read.unix}):
            outside, inside = self._read.unix.get(path, (self._read.special["unix"], None))
            for entry, within in ((outside, False), (inside, True)):
                self.cells += 1
                event = Unix(path, inside=within)
                wanted = self._reference.event(event, {*bare, *holders.get(path, ())})
                part = f"unix {path}, {'inside' if within else 'outside'}"
                if (
                    entry is None
                ):  # a path without a row: an inside socket is let through, uncounted
                    if wanted.refused or wanted.asserting or wanted.observing:
                        yield self._telling.of_entry(str(event), None, wanted, part)
                elif wanted != self._read.outcomes[entry]:
                    yield self._telling.of_entry(
                        str(event), entry, wanted, f"{part}, entry {entry}"
                    )


def _paths(policy: Policy) -> Iterator[str]:
    for rule in policy.rules:
        yield from rule.targets.unix
        yield from rule.exceptions.unix
