"""A filter set against the decision tables, cell by cell: Windows against what Linux decides by.

The tables were compared with the policy before. The set goes through the simulator of the platform's own
arbitration: lines of addresses and ports are cut where a filter or a table changes, and each combination
of the filters that match there and of the table's entry is classified once, by those filters alone. What
differs has to be stated by the artifact's fidelity, and the artifact has to list it with all of its cells;
any other difference is a counterexample.
"""

from __future__ import annotations

from flowproof.addresses import LAST
from flowproof.values import Value
from flowproof.verify.differences import Differing, listed_otherwise
from flowproof.verify.filter_forms import incomparable, shaped
from flowproof.verify.filter_lanes import EXEMPT, FILTER, lanes
from flowproof.verify.filter_symbols import odd_symbol
from flowproof.verify.found import Counterexample, Unmodelled
from flowproof.verify.reading import Line
from flowproof.verify.sweep import address_cells, port_cells
from flowproof.verify.wfp import Ambiguous, classify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from flowproof.ir.model import Policy, Rule
    from flowproof.verify.differences import Kind
    from flowproof.verify.filter_lanes import Lane
    from flowproof.verify.reading import Read
    from flowproof.verify.sweep import Member
    from flowproof.verify.wfp import Ruling

    Combination = tuple[tuple[Member, ...], int]

__all__ = ["SUBLAYER_WEIGHT", "Filtered", "compare_filters"]

SUBLAYER_WEIGHT = 0xFFFF
"""The run's sublayer is asked first: a permit of another product that is hard would otherwise be final
before a block of the run is asked (*Filter Arbitration*)."""

_STATED = ("over-blocks", "not-applicable", "over-permits", "unsupported")


class Filtered(Value):
    """How far the comparison went: *cells* classified, the *kinds* of them that differ as is stated, and the
    first *difference* that is not, or that the artifact does not list.
    """

    cells: int
    kinds: int
    difference: Counterexample | None


def compare_filters(policy: Policy, artifact: Mapping[str, Any], read: Read) -> Filtered:
    """Return whether the filters of *artifact* (JSON) permit what *read* lets through, but for what its
    fidelity states and its differences list.
    """
    if not shaped(artifact["filters"]):
        return Filtered(0, 0, _about("installing", "no filter set", "a filter set", "filters"))
    comparison = _Comparison(policy, artifact, read)
    difference = next(comparison.differences(), None)
    return Filtered(comparison.cells, comparison.differing.kinds, difference)


class _Comparison:
    def __init__(self, policy: Policy, artifact: Mapping[str, Any], read: Read) -> None:
        self._policy = policy
        self._artifact = artifact
        self._set: Mapping[str, Any] = artifact["filters"]
        self._filters: list[Mapping[str, Any]] = self._set["filters"]
        self._read = read
        self._rows = {
            row["subject"]: row["refusing"]
            for row in artifact["fidelity"]
            if row["refusing"] in _STATED
        }
        self._denies = any(
            rule.action == "connect" and rule.meaning is None and rule.refuses
            for rule in policy.rules
        )
        self._lines: Sequence[Line] = [*read.ports, Line([0], [0])]
        self.differing = Differing(policy)
        self.cells = 0

    def differences(self) -> Iterator[Counterexample]:
        yield from self._set_wide()
        for at, one in enumerate(self._filters):
            problem = incomparable(one)
            if problem is not None:
                part = f"filter {at}, {one['name']}"
                yield _about("any attempt", problem, "filters that can be compared", part)
        odd = odd_symbol(self._policy, self._filters)
        if odd is not None:
            shape, has, wants = odd
            event = f"a connect to {shape[4]} once it is bound"
            wanted = f"{wants} of them"
            yield _about(event, f"{has} filters {shape}", wanted, "filters of names and variables")
        flat = Line([0], [len(self._lines) - 1])
        for lane in lanes(self._filters, self._read, flat):
            yield from self._lane(lane)
        unlisted = listed_otherwise(self._policy, self._artifact, self.differing)
        if unlisted is not None:
            yield unlisted

    def _set_wide(self) -> Iterator[Counterexample]:
        session, sublayer = self._set["session"], self._set["sublayer"]
        if session["dynamic"] is not True:
            yield _about("the end of a run", "filters stay", "filters go", "filters.session")
        if sublayer["key"] != "@run" or sublayer["weight"] != SUBLAYER_WEIGHT:
            yield _about("any attempt", "another sublayer", "the run's own", "filters.sublayer")
        keys = [one["key"] for one in self._filters]
        if len(set(keys)) != len(keys):
            yield _about("installing", "two filters of one key", "a key each", "filters")

    # --- lanes

    def _wanted(self, lane: Lane, entry: int, loopback: bool) -> tuple[bool, int | None]:
        """Return whether the policy lets a cell through, and by which rule."""
        match lane.wants:
            case "other":
                return not self._denies, None
            case (
                "stranger"
            ):  # what is no stream is let in off loopback unless a `connect` rule denies
                return loopback or not self._denies, None
            case "accepted":  # a listener on every address accepts off loopback where it may listen
                outcome = self._read.outcomes[entry]
                return loopback or not outcome.refused, None if loopback else outcome.by
            case _:
                outcome = self._read.outcomes[entry]
                return not outcome.refused, outcome.by

    def _lane(self, lane: Lane) -> Iterator[Counterexample]:
        judged: dict[Combination, Kind | None] = {}
        for first, _, table, holders in address_cells(lane.boxes(), lane.line, LAST[lane.family]):
            if not lane.holds(first):
                continue
            for port, entry, members in port_cells(holders, self._lines[table]):
                self.cells += 1
                if (members, entry) not in judged:
                    found = self._cell(lane, first, port, members, entry)
                    if isinstance(found, Counterexample):
                        yield found
                        found = None
                    judged[members, entry] = found
        if any(judged.values()):
            self._collect(lane, judged)

    def _collect(self, lane: Lane, judged: Mapping[Combination, Kind | None]) -> None:
        """Collect every cell of the kinds that differ, which were judged once each."""
        line, upto = lane.line, LAST[lane.family]
        for first, last, table, holders in address_cells(lane.boxes(), line, upto, every=True):
            if not lane.holds(first):
                continue
            cells = list(port_cells(holders, self._lines[table]))
            ends = [*(port - 1 for port, _, _ in cells[1:]), 65535]
            for (port, entry, members), end in zip(cells, ends, strict=True):
                kind = judged[members, entry]
                if kind is not None:
                    where, family, low, high = lane.cell(first, last, members)
                    self.differing.add((*kind, where), family, low, high, (port, end))

    def _cell(
        self, lane: Lane, address: int, port: int, members: tuple[Member, ...], entry: int
    ) -> Counterexample | Kind | None:
        """Return a difference that is not stated, the kind of one that is, or None for none."""
        matching = [self._filters[at] for at, role in members if role == FILTER]
        permitted, by = self._wanted(lane, entry, any(role == EXEMPT for _, role in members))
        rule = None if by is None else self._policy.rules[by]
        event = lane.event(address, port)
        policy = f"{'let through' if permitted else 'refused'}{f' by {rule.id}' if rule else ''}"
        try:
            ruling = classify({"filters": matching}, lane.attempt(address, port))
        except Ambiguous as ambiguous:
            does = f"one weight, two answers: {ambiguous}"
            return _about(event, does, policy, "filters", rule)
        except Unmodelled as unmodelled:
            return _about(event, f"nobody knows: {unmodelled}", policy, "filters", rule)
        agreed = ruling.permitted is permitted
        # what no filter matches is let through, which needs no rule; nor does an accept
        named = rule is None or lane.wants == "accepted" or rule.id in ruling.rules
        if agreed and (named or not ruling.matched):
            return None
        stated = self._statement(permitted, rule, ruling)
        if stated is not None:
            how = "other-rule" if agreed else "over-blocks" if permitted else "over-permits"
            return how, stated, None if rule is None else rule.id, ruling.rules
        does = (
            f"{'permitted' if ruling.permitted else 'blocked'} by"
            f" {', '.join(ruling.rules) or 'no rule'}"
        )
        names = ", ".join(one["name"] for one in matching) or "no filter"
        return _about(event, does, policy, f"filters: {names}", rule)

    def _statement(self, permitted: bool, rule: Rule | None, ruling: Ruling) -> str | None:
        """Return the row of the fidelity that states a difference: of the rule that should have handled and
        is not carried, or of one that should not have and over-blocks.
        """
        if rule is not None and rule.id in self._rows:
            return rule.id
        for subject in ruling.rules:
            stated = self._rows.get(subject)
            if stated == "unsupported" or (stated == "over-blocks" and permitted):
                return subject
        return None


def _about(
    event: str, artifact: str, policy: str, part: str, rule: Rule | None = None
) -> Counterexample:
    origin = rule.origin if rule else None
    place = f"{origin.file}:{origin.line}:{origin.column}" if origin else None
    return Counterexample(event, artifact, policy, rule.id if rule else None, place, part)
