"""The decision tables against the reference meaning: every cell of the partition that their bounds and the
policy's make, special entries, unix rows, and what binding a symbol later will find in the lists.

A cell is told by who holds it (region algebra over the policy) and by its entry; each combination is compared
once (`reference` says why that is complete). Where the policy has symbols, the lists of an entry matter
beyond what they decide now: they are compared in a normal form, in which only what no binding can bring
forward is left out. Equal normal forms decide alike under every binding.
"""

from __future__ import annotations

from flowproof.addresses import LAST, LOOPBACK, format_address
from flowproof.ir.events import Connect, Family, Foreign, Listen, Unix
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region
from flowproof.values import Value, replace
from flowproof.verify.found import Counterexample
from flowproof.verify.reading import PLANES
from flowproof.verify.reference import Reference
from flowproof.verify.sweep import address_cells, port_cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flowproof.ir.events import Event
    from flowproof.ir.model import Policy, Rule
    from flowproof.verify.reading import Outcome, Read
    from flowproof.verify.sweep import Box, Held, Member

__all__ = ["ONCE_BOUND", "Compared", "compare_tables", "plane_boxes"]

ONCE_BOUND = "once names and variables are bound"
"""What a difference says that is about lists of rules, and no attempt shows before a run."""

_NAMED = "named"
_OTHERWISE = "otherwise"
_EXCEPTED = "excepted"
_EXEMPT = "exempt"
_IMPLIED = "implied"
_NOBODY = -1
_RANK = {"authored": 0, "short-form": 0, "default": 1, "implied": 2}


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
        for name in PLANES:
            if name.startswith("listen-any"):
                yield from self._listen_any(name)
                continue
            boxes = list(plane_boxes(self._policy, name))
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
        lines = self._read.ports
        for first, last, table, holders in address_cells(
            boxes, self._read.planes[name], LAST[family]
        ):
            address = first
            if action == "listen" and first == 0:  # a listen on 0.0.0.0 or :: has planes of its own
                if last == 0:
                    continue
                address = 1
            for port, entry, members in port_cells(holders, lines[table]):
                self.cells += 1
                key = (action, members, entry)
                if key in self._compared:
                    continue
                self._compared.add(key)
                found = self._cell(name, action, address, port, members, entry)
                if found is not None:
                    yield found

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
            return self._difference(str(event()), entry, wanted, part)
        return self._bindable(str(event()), members, entry, part)

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
                yield self._difference(str(listen), entry, wanted, part)

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
                yield self._difference(str(event), entry, wanted, f"special {name}, entry {entry}")
        self.cells += 1
        wanted = self._unreadable(self._reference.event(Foreign(), members))
        entry = self._read.special["unreadable"]
        if wanted != self._read.outcomes[entry]:
            what = "connect to an address of no known kind"
            yield self._difference(what, entry, wanted, f"special unreadable, entry {entry}")

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
                        yield self._difference(str(event), None, wanted, part)
                elif wanted != self._read.outcomes[entry]:
                    yield self._difference(str(event), entry, wanted, f"{part}, entry {entry}")

    # --- what a binding will find

    def _bindable(
        self, event: str, members: tuple[Member, ...], entry: int, part: str
    ) -> Counterexample | None:
        held = self._read.entries[entry]
        wanted = self._lists(members)
        named = {at for at, role in members if role == _NAMED}
        for name in wanted:
            has = tuple(held.get(name, ()))
            if name == "watch_otherwise":
                has = tuple(sorted(set(has) - set(held.get("watch", ()))))
            elif name == "watch":
                has = tuple(sorted(has))
            elif name == "excepted":
                targeted = {at for at in has if self._policy.rules[at].targets.symbols}
                has = tuple(sorted(targeted - named))
            elif list(has) != sorted(has, key=self._precedence):
                return self._list_difference(event, name, has, wanted[name], part)
            else:
                has = self._cut(has)
            if has != wanted[name]:
                return self._list_difference(event, name, has, wanted[name], part)
        return None

    def _lists(self, members: tuple[Member, ...]) -> dict[str, tuple[int, ...]]:
        """Return the lists that *members* have to be in, in normal form."""
        lists: dict[str, list[int]] = {
            name: []
            for name in ("refuse", "allow", "otherwise", "watch", "watch_otherwise", "excepted")
        }
        rules = self._policy.rules
        for at, role in members:
            if role in (_EXEMPT, _IMPLIED):  # what is implied here is told by all members
                continue
            rule = rules[at]
            if role == _EXCEPTED:
                if rule.targets.symbols:
                    lists["excepted"].append(at)
                continue
            watches = rule.asserts or rule.verb == "observe"
            if rule.refuses:
                lists["refuse" if role == _NAMED else "otherwise"].append(at)
            if rule.verb == "allow":
                lists["allow"].append(at)
            if watches:
                lists["watch" if role == _NAMED else "watch_otherwise"].append(at)
        implied = self._implied_listen(members)
        lists["otherwise"] += implied
        watch = set(lists["watch"])
        named = {at for at, role in members if role == _NAMED}
        return {
            **{
                name: self._cut(tuple(sorted(lists[name], key=self._precedence)))
                for name in ("refuse", "allow", "otherwise")
            },
            "watch": tuple(sorted(watch)),
            "watch_otherwise": tuple(sorted(set(lists["watch_otherwise"]) - watch)),
            "excepted": tuple(sorted(set(lists["excepted"]) - named)),
        }

    def _implied_listen(self, members: tuple[Member, ...]) -> list[int]:
        rules = self._policy.rules
        if any(
            role == _EXEMPT or (role == _EXCEPTED and rules[at].refuses) for at, role in members
        ):
            return []
        return [at for at, role in members if role == _IMPLIED]

    def _precedence(self, at: int) -> tuple[int, bool, int]:
        rule = self._policy.rules[at]
        return _RANK[rule.kind], rule.refuses and rule.verb != "never", at

    def _cut(self, held: tuple[int, ...]) -> tuple[int, ...]:
        """Return *held* up to the first rule that no binding takes out: what comes behind never decides."""
        for place, at in enumerate(held):
            if not self._policy.rules[at].exceptions.symbols:
                return held[: place + 1]
        return held

    # --- telling

    def _list_difference(
        self,
        event: str,
        name: str,
        has: Sequence[int],
        wanted: Sequence[int],
        part: str,
    ) -> Counterexample:
        about = next((at for at in (*wanted, *has) if (at in wanted) != (at in has)), None)
        rule = None if about is None else self._policy.rules[about]
        return Counterexample(
            f"{event}, {ONCE_BOUND}",
            f"list {name}: {self._ids(has)}",
            f"list {name}: {self._ids(wanted)}",
            None if rule is None else rule.id,
            _place(rule),
            part,
        )

    def _ids(self, held: Sequence[int]) -> str:
        return ", ".join(self._policy.rules[at].id for at in held) or "nobody"

    def _difference(
        self, event: str, entry: int | None, wanted: Outcome, part: str
    ) -> Counterexample:
        has = None if entry is None else self._read.outcomes[entry]
        about = wanted.by
        if has is not None and has.refused == wanted.refused and has.by == wanted.by:
            counted = (wanted.asserting ^ has.asserting) | (wanted.observing ^ has.observing)
            about = min(counted, default=about)
        elif about is None and has is not None:
            about = has.by
        rule = None if about is None else self._policy.rules[about]
        return Counterexample(
            event,
            "no row" if has is None else self._words(has),
            self._words(wanted),
            None if rule is None else rule.id,
            _place(rule),
            part,
        )

    def _words(self, outcome: Outcome) -> str:
        rules = self._policy.rules
        by = "" if outcome.by is None else f" by {rules[outcome.by].id}"
        text = ("refused" if outcome.refused else "let through") + by
        for word, held in (("counted", outcome.asserting), ("observed", outcome.observing)):
            if held:
                text += f", {word} by {self._ids(sorted(held))}"
        return text


def _place(rule: Rule | None) -> str | None:
    if rule is None or rule.origin is None:
        return None
    return f"{rule.origin.file}:{rule.origin.line}:{rule.origin.column}"


def _paths(policy: Policy) -> Iterator[str]:
    for rule in policy.rules:
        yield from rule.targets.unix
        yield from rule.exceptions.unix


_FAMILY_LOOPBACK: Mapping[int, tuple[tuple[int, int], ...]] = {
    family: tuple((first, last) for kin, first, last in LOOPBACK if kin == family)
    for family in (4, 6)
}


def plane_boxes(policy: Policy, name: str) -> Iterator[Box]:
    """Yield who holds what of a plane: rules by *named* and *otherwise*, exceptions where they matter,
    loopback, and the fixed meaning that refuses listens.
    """
    protocol, family = name[:-1], int(name[-1])
    action = "connect"
    if protocol == "listen":
        action, protocol = "listen", "tcp"
    for at, rule in enumerate(policy.rules):
        if rule.action != action:
            continue
        if rule.meaning == "listen":
            for first, last, ports in Region.of(OFF_LOOPBACK, ("tcp",)).boxes("tcp", family):
                yield first, last, ports, (at, _IMPLIED)
        if rule.meaning is not None:
            continue
        for first, last, ports in rule.named.boxes(protocol, family):
            yield first, last, ports, (at, _NAMED)
        if rule.targets.otherwise:
            for first, last, ports in rule.otherwise.boxes(protocol, family):
                yield first, last, ports, (at, _OTHERWISE)
        if rule.exceptions.region and (
            rule.targets.symbols or (action == "listen" and rule.refuses)
        ):
            for first, last, ports in rule.exceptions.region.boxes(protocol, family):
                yield first, last, ports, (at, _EXCEPTED)
    for first, last in _FAMILY_LOOPBACK[family]:
        yield first, last, ANY_PORT, (_NOBODY, _EXEMPT)
