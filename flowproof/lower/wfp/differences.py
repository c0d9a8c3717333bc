"""Where a filter set does otherwise than the decision tables: every kind, with all of its cells.

What a set cannot carry is listens by address, told apart here by what its filters ask for: a port, and
whether the address is loopback. All else is beside the cells: what no filter sees, and what is not known
before a run binds it. `verify` finds the same by trying every cell, and refuses a list that is another.
"""

from __future__ import annotations

from itertools import pairwise

from flowproof.addresses import LAST, LOOPBACK
from flowproof.artifact.model import Difference
from flowproof.ir import ports as port_sets
from flowproof.ir.cells import cell_words
from flowproof.ir.ports import LAST_PORT
from flowproof.ir.regions import Region, union_all
from flowproof.lower.files import observed
from flowproof.lower.wfp.families import MAPPED
from flowproof.lower.wfp.filters import listen_ports, refused_listens
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flowproof.artifact.model import Fidelity, Plane, Tables
    from flowproof.ir.model import Policy, Rule, Symbol
    from flowproof.ir.ports import PortSet

    Held = tuple[tuple[str, PortSet], ...]  # a rule with its ports, for each that has some

__all__ = ["differences"]

_STATED = ("over-blocks", "not-applicable", "over-permits", "unsupported")
_LISTENS = ("listen4", "listen6", "listen-any4", "listen-any6")
_MEANING = "meaning:"
_MEANINGS = {  # fixed meaning → the attempts it is about, and what becomes of them on Linux
    "families": ("sockets of other families, types and protocols", "refused"),
    "foreign-abi": ("calls of another ABI", "refused where a rule needs to see them"),
    "io-uring": ("io_uring", "refused"),
    "unix": ("unix sockets outside the run that no rule names", "decided as what is left over"),
    "unreadable": ("addresses of no known kind", "refused"),
    "udp-connect": ("a connect of a datagram socket", "decided by its address"),
    "inbound": ("datagrams from off loopback that nobody asked for", "let through"),
}


def differences(
    policy: Policy, tables: Tables, fidelity: Iterable[Fidelity]
) -> tuple[Difference, ...]:
    """Return the differences of a filter set of *policy* (names that are bound already as addresses) from
    *tables*, as *fidelity* states them.
    """
    rows = {row.subject: row for row in fidelity if row.refusing in _STATED}
    return (
        *_listens(policy, tables, rows),
        *(found for at, rule in enumerate(policy.rules) for found in _beside(at, rule)),
        *_meanings(policy, rows),
    )


# --- listens


class _Ports(Value):
    """What the filters of listens ask for off loopback: denies, permits and blocks by port."""

    denies: Held
    permits: Held
    blocks: Held

    def decide(self, port: int, loopback: bool) -> tuple[bool, tuple[str, ...], bool]:
        """Return whether a listen passes, the rules whose filters decide, and whether any filter matches."""
        denied = () if loopback else _rules(self.denies, port)
        if denied:
            return False, denied, True
        permitted = _rules(self.permits, port)
        if permitted or (loopback and self.blocks):
            return True, permitted, True
        blocked = _rules(self.blocks, port)
        return not blocked, blocked, bool(blocked)


def _rules(held: Held, port: int) -> tuple[str, ...]:
    return tuple(sorted(rule for rule, ports in held if port_sets.has(ports, port)))


def _asked(policy: Policy) -> _Ports:
    rules = [rule for rule in policy.rules if rule.action == "listen" and rule.meaning is None]
    implied = next((rule for rule in policy.rules if rule.meaning == "listen"), None)
    blocks = [(rule.id, listen_ports(rule.otherwise)) for rule in rules if rule.refuses]
    if implied is not None:
        blocks.append((implied.id, refused_listens(policy)))
    return _Ports(
        _some((rule.id, listen_ports(rule.named)) for rule in rules if rule.refuses),
        _some((rule.id, listen_ports(rule.named)) for rule in rules if rule.verb == "allow"),
        _some(blocks),
    )


def _some(held: Iterable[tuple[str, PortSet | None]]) -> Held:
    return tuple((rule, ports) for rule, ports in held if ports)


def _listens(policy: Policy, tables: Tables, rows: Mapping[str, Fidelity]) -> Iterator[Difference]:
    listening = {rule.id for rule in policy.rules if "listen" in (rule.action, rule.meaning)}
    if not listening & rows.keys():
        return
    asked = _asked(policy)
    ids = [rule.id for rule in policy.rules]
    rules = policy.rules
    for where in _LISTENS:
        found: dict[tuple[str, str, bool, int | None, tuple[str, ...]], list[Region]] = {}
        for first, last, port, end, at in _cells(tables, where, asked):
            loopback = any(
                one[1] <= first <= one[2] for one in LOOPBACK if one[0] == int(where[-1])
            )
            passes, deciding, matched = asked.decide(port, loopback)
            refused, by = _decided(tables, at, rules)
            if passes is not refused and (not matched or by is None or ids[by] in deciding):
                continue
            subject = _stating(rows, None if by is None else ids[by], deciding, not refused)
            if subject is None:
                continue  # a mistake of the compiler, which the proof names
            kind = "other-rule" if passes is not refused else _kind(refused)
            key = (kind, subject, refused, by, deciding)
            region = Region.of(((int(where[-1]), first, last),), ("tcp",), ((port, end),))
            found.setdefault(key, []).append(region)
        for (kind, subject, refused, by, deciding), regions in found.items():
            concerned = {*(ids.index(rule) for rule in deciding), *(() if by is None else (by,))}
            yield Difference(
                kind,
                subject,
                where,
                tuple(sorted(concerned)),
                _does(refused, () if by is None else (ids[by],)),
                _does(refused if kind == "other-rule" else not refused, deciding),
                cell_words(union_all(regions), addresses="any" not in where),
            )


def _decided(tables: Tables, at: int, rules: tuple[Rule, ...]) -> tuple[bool, int | None]:
    """Return whether entry *at* refuses, and by which rule."""
    decision = tables.entries[at].decide(rules)  # type: ignore[arg-type]  # it reads verb and kind alone
    return decision.refused, decision.by


def _kind(refused: bool) -> str:
    return "over-permits" if refused else "over-blocks"


def _does(refused: bool, by: tuple[str, ...]) -> str:
    return f"{'refused' if refused else 'let through'} by {', '.join(by) or 'no rule'}"


def _stating(
    rows: Mapping[str, Fidelity], by: str | None, deciding: tuple[str, ...], permitted: bool
) -> str | None:
    """Return the row that states a difference: of the rule that handles, or of one that over-blocks."""
    if by is not None and by in rows:
        return by
    for rule in deciding:
        row = rows.get(rule)
        if row is not None and (
            row.refusing == "unsupported" or (row.refusing == "over-blocks" and permitted)
        ):
            return rule
    return None


def _cells(tables: Tables, where: str, asked: _Ports) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield (first, last, port, last port, entry) for every cell of a plane, cut where a filter changes."""
    plane = tables.planes[where]
    cuts = {0, LAST_PORT + 1}
    for held in (asked.denies, asked.permits, asked.blocks):
        cuts.update(end for _, ports in held for low, high in ports for end in (low, high + 1))
    for first, last, table in _intervals(plane, where):
        ports = tables.ports[table]
        ends = sorted({*cuts, *ports.starts})
        at = 0
        for low, end in pairwise(ends):
            while at + 1 < len(ports.starts) and ports.starts[at + 1] <= low:
                at += 1
            yield first, last, low, end - 1, ports.entries[at]


def _intervals(plane: Plane, where: str) -> Iterator[tuple[int, int, int]]:
    """Yield (first, last, port table): cut at loopback; address 0 is a plane of its own."""
    if "any" in where:
        yield 0, 0, plane.cells[0]
        return
    family = int(where[-1])
    cuts = {1, LAST[family] + 1, *plane.starts} - {0}
    if family == 6:
        cuts.update((MAPPED[0], MAPPED[1] + 1))
    for kin, first, last in LOOPBACK:
        if kin == family:
            cuts.update((first, last + 1))
    ends = sorted(cuts)
    at = 0
    for first, end in pairwise(ends):
        while at + 1 < len(plane.starts) and plane.starts[at + 1] <= first:
            at += 1
        if family == 4 or not MAPPED[0] <= first <= MAPPED[1]:  # those are IPv4, and cells of it
            yield first, end - 1, plane.cells[at]


# --- beside the cells


def _beside(at: int, rule: Rule) -> Iterator[Difference]:
    if rule.meaning is not None:
        return
    paths = sorted({*rule.targets.unix, *rule.exceptions.unix})
    if paths:
        yield Difference(
            "not-applicable",
            rule.id,
            "unix",
            (at,),
            "decided by path",
            "not seen",
            tuple(f"unix:{path}" for path in paths),
        )
    symbols = (
        *rule.exceptions.symbols,
        *(rule.targets.symbols if rule.exceptions.region else ()),
    )
    if symbols:
        yield Difference(
            "unsupported",
            rule.id,
            "binding",
            (at,),
            "exceptions taken out of what is bound",
            "exceptions not taken out",
            tuple(sorted({_written(symbol) for symbol in symbols})),
        )
    counts = rule.action == "listen" and (rule.asserts or rule.verb == "observe")
    if counts and any(
        region and listen_ports(region) is None for region in (rule.named, rule.otherwise)
    ):
        told = ("listens by address",)
        yield Difference("unsupported", rule.id, "counting", (at,), "counted", "not counted", told)
    if observed(rule):  # by what Linux does; here nothing sees a file
        seen = tuple(sorted(rule.operations))
        yield Difference(
            "unsupported", rule.id, "counting", (at,), "attempts seen", "not seen", seen
        )


def _written(symbol: Symbol) -> str:
    match symbol.kind:
        case "variable":
            return f"${{{symbol.value}}}"
        case "wildcard":
            return f"*.{symbol.value}"
        case _:
            return symbol.value


def _meanings(policy: Policy, rows: Mapping[str, Fidelity]) -> Iterator[Difference]:
    for subject, row in rows.items():
        if not subject.startswith(_MEANING):
            continue
        name = subject.removeprefix(_MEANING)
        attempts, does = _MEANINGS[name]
        implied = tuple(at for at, rule in enumerate(policy.rules) if rule.meaning == name)
        assert row.refusing is not None  # it is one of those that are stated
        told = row.reason or row.refusing
        yield Difference(row.refusing, subject, "meaning", implied, does, told, (attempts,))
