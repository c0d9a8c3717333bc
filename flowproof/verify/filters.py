"""A filter set against the decision tables, cell by cell: Windows against what Linux decides by.

The tables were compared with the policy before. The set goes through the simulator of the platform's own
arbitration: lines of addresses and ports are cut where a condition or a table changes, and each combination
of the filters that match there and of the table's entry is classified once, by those filters alone. What
differs has to be stated by the artifact's fidelity, and is listed; any other difference is a counterexample.
"""

from __future__ import annotations

from flowproof.addresses import LAST, LOOPBACK, format_address, parse_address
from flowproof.ir import ports as port_sets
from flowproof.ir.ports import ANY_PORT
from flowproof.values import Value
from flowproof.verify.found import Counterexample
from flowproof.verify.reading import Line
from flowproof.verify.sweep import address_cells, port_cells
from flowproof.verify.wfp import TCP, UDP, Ambiguous, Attempt, classify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.ports import PortSet
    from flowproof.verify.reading import Read
    from flowproof.verify.sweep import Box, Member
    from flowproof.verify.wfp import Ruling

    Wanted = Callable[[int, bool], tuple[bool, int | None]]

__all__ = ["Filtered", "compare_filters"]

_OTHERS = (0, 1, 5, 7, 16, 18, 132, 255)  # both sides of TCP and UDP, ICMP, SCTP, the ends
_FILTER = "filter"
_EXEMPT = "exempt"
_STATED = ("over-blocks", "not-applicable", "over-permits", "unsupported")
_TAKEN = {
    ("ALE_USER_ID", "EQUAL", "SECURITY_DESCRIPTOR"),
    ("FLAGS", "FLAGS_ANY_SET", "UINT32"),
    ("IP_PROTOCOL", "EQUAL", "UINT8"),
    ("IP_PROTOCOL", "RANGE", "RANGE"),
    *(
        (f"IP_{side}_PORT", match, kind)
        for side in ("LOCAL", "REMOTE")
        for match, kind in (("EQUAL", "UINT16"), ("RANGE", "RANGE"))
    ),
    *(
        (f"IP_{side}_ADDRESS", "EQUAL", kind)
        for side in ("LOCAL", "REMOTE")
        for kind in ("V4_ADDR_MASK", "V6_ADDR_MASK", "@name", "@variable")
    ),
}
_LAYERS = tuple(
    f"ALE_AUTH_{layer}_V{family}"
    for layer in ("CONNECT", "LISTEN", "RECV_ACCEPT")
    for family in (4, 6)
)


class Filtered(Value):
    """How far the comparison went: *cells* classified, those that differ as is *stated*, one line each, and
    the first *difference* that is not.
    """

    cells: int
    stated: tuple[str, ...]
    difference: Counterexample | None


class _Lane(Value):
    """One layer and protocol to compare: where its address and port stand, and what is wanted there."""

    layer: str
    protocol: int
    family: int
    side: str
    port_side: str
    line: Line
    wanted: Wanted
    wildcard: bool = False


def compare_filters(
    policy: Policy,
    filters: Mapping[str, Any],
    fidelity: Sequence[Mapping[str, Any]],
    read: Read,
) -> Filtered:
    """Return whether *filters* (JSON) permit what *read* lets through, but for what *fidelity* states."""
    if not _shaped(filters):
        return Filtered(0, (), _about("installing", "no filter set", "a filter set", "filters"))
    comparison = _Comparison(policy, filters, fidelity, read)
    difference = next(comparison.differences(), None)
    stated = tuple(sorted(comparison.stated))
    return Filtered(comparison.cells, stated, difference)


class _Comparison:
    def __init__(
        self,
        policy: Policy,
        filters: Mapping[str, Any],
        fidelity: Sequence[Mapping[str, Any]],
        read: Read,
    ) -> None:
        self._policy = policy
        self._set = filters
        self._filters: list[Mapping[str, Any]] = filters["filters"]
        self._read = read
        self._rows = {
            row["subject"]: row["refusing"] for row in fidelity if row["refusing"] in _STATED
        }
        self._denies = any(
            rule.action == "connect" and rule.meaning is None and rule.refuses
            for rule in policy.rules
        )
        self._lines: Sequence[Line] = read.ports
        self.cells = 0
        self.stated: set[str] = set()

    def differences(self) -> Iterator[Counterexample]:
        yield from self._set_wide()
        for at, one in enumerate(self._filters):
            yield from self._sound(at, one)
        yield from self._symbolic()
        for lane in self._lanes():
            yield from self._lane(lane)

    # --- what holds for the set and for each filter

    def _set_wide(self) -> Iterator[Counterexample]:
        session, sublayer = self._set.get("session", {}), self._set.get("sublayer", {})
        if session.get("dynamic") is not True:
            yield _about("the end of a run", "filters stay", "filters go", "filters.session")
        if sublayer.get("key") != "@run" or sublayer.get("weight") != 0x8000:
            yield _about("any attempt", "another sublayer", "the run's own", "filters.sublayer")
        keys = [one["key"] for one in self._filters]
        if len(set(keys)) != len(keys):
            yield _about("installing", "two filters of one key", "a key each", "filters")

    def _sound(self, at: int, one: Mapping[str, Any]) -> Iterator[Counterexample]:
        part = f"filter {at}, {one['name']}"
        if one["layer"] not in _LAYERS or one["action"] not in ("permit", "block"):
            yield _about("installing", f"{one['layer']} {one['action']}", "a known layer", part)
            return
        if not isinstance(one["weight"], int) or not 0 <= one["weight"] <= 15:
            yield _about("installing", f"weight {one['weight']}", "a weight of 0 to 15", part)
        fields: list[str] = []
        for condition in one["conditions"]:
            if (condition["field"], condition["match"], condition["type"]) not in _TAKEN:
                yield _about(
                    "installing", f"a condition {condition}", "one that the platform takes", part
                )
                return
            if not fields or fields[-1] != condition["field"]:
                fields.append(condition["field"])
            if not _sensible(condition):
                yield _about("installing", f"a condition {condition}", "a value of its type", part)
                return
        if len(set(fields)) != len(fields):
            yield _about("any attempt", "conditions of one field stand apart", "together", part)
        users = [c["value"] for c in one["conditions"] if c["field"] == "ALE_USER_ID"]
        if users != ["@run"] and (one["action"] == "block" or users):
            yield _about(
                "an attempt by another identity", f"{one['action']} for {users}", "let be", part
            )

    def _symbolic(self) -> Iterator[Counterexample]:
        """Compare the filters of names and variables, whose addresses a run puts in."""
        has = sorted(
            _shape(one)
            for one in self._filters
            if any(c["type"].startswith("@") for c in one["conditions"])
        )
        wanted = sorted(
            (
                f"ALE_AUTH_CONNECT_V{family}",
                *(("permit", 8) if rule.verb == "allow" else ("block", 15)),
                (rule.id,),
                f"@{symbol.kind} {symbol.value}",
                tuple(sorted(TCP if name == "tcp" else UDP for name in symbol.protocols)),
                symbol.ports,
            )
            for rule in self._policy.rules
            if rule.action == "connect" and (rule.refuses or rule.verb == "allow")
            for symbol in rule.targets.symbols
            if symbol.kind != "wildcard"
            for family in (4, 6)
        )
        if has != wanted:
            odd = next(one for one in (*has, *wanted) if has.count(one) != wanted.count(one))
            yield _about(
                f"a connect to {odd[4]} once it is bound",
                f"{has.count(odd)} filters {odd}",
                f"{wanted.count(odd)} of them",
                "filters of names and variables",
            )

    # --- lanes

    def _lanes(self) -> Iterator[_Lane]:
        planes = self._read.planes
        flat = Line([0], [len(self._lines)])
        self._lines = [*self._lines, Line([0], [0])]
        for family in (4, 6):
            connect = f"ALE_AUTH_CONNECT_V{family}"
            for name, protocol in (("tcp", TCP), ("udp", UDP)):
                line = planes[f"{name}{family}"]
                yield _Lane(connect, protocol, family, "REMOTE", "REMOTE", line, self._decided)
            for protocol in _OTHERS:
                yield _Lane(connect, protocol, family, "REMOTE", "REMOTE", flat, self._other)
            listen = f"ALE_AUTH_LISTEN_V{family}"
            line = planes[f"listen{family}"]
            yield _Lane(listen, TCP, family, "LOCAL", "LOCAL", line, self._decided)
            line = planes[f"listen-any{family}"]
            yield _Lane(listen, TCP, family, "LOCAL", "LOCAL", line, self._decided, wildcard=True)
            accept = f"ALE_AUTH_RECV_ACCEPT_V{family}"
            line = planes["listen-any6"]
            yield _Lane(accept, TCP, family, "REMOTE", "LOCAL", line, self._accepted)
            for protocol in (UDP, *_OTHERS):
                yield _Lane(accept, protocol, family, "REMOTE", "LOCAL", flat, self._stranger)

    def _decided(self, entry: int, _loopback: bool) -> tuple[bool, int | None]:
        outcome = self._read.outcomes[entry]
        return not outcome.refused, outcome.by

    def _other(self, _entry: int, _loopback: bool) -> tuple[bool, int | None]:
        return not self._denies, None

    def _accepted(self, entry: int, loopback: bool) -> tuple[bool, int | None]:
        """A listener on every address accepts off loopback where it may listen."""
        outcome = self._read.outcomes[entry]
        return loopback or not outcome.refused, None if loopback else outcome.by

    def _stranger(self, _entry: int, loopback: bool) -> tuple[bool, int | None]:
        """What is no stream is let in off loopback unless a `connect` rule denies (meaning:inbound)."""
        return loopback or not self._denies, None

    def _lane(self, lane: _Lane) -> Iterator[Counterexample]:
        boxes: list[Box] = []
        for at, one in enumerate(self._filters):
            if one["layer"] == lane.layer:
                boxes += _boxes(at, one, lane)
        for kin, first, last in LOOPBACK:
            if kin == lane.family:
                boxes.append((first, last, ANY_PORT, (-1, _EXEMPT)))
        seen: set[tuple[tuple[Member, ...], int]] = set()
        for first, last, table, holders in address_cells(boxes, lane.line, LAST[lane.family]):
            address = first
            if lane.wildcard and first:
                return
            if lane.side == "LOCAL" and not lane.wildcard and not first:
                if last == 0:
                    continue
                address = 1
            for port, entry, members in port_cells(holders, self._lines[table]):
                self.cells += 1
                if (members, entry) not in seen:
                    seen.add((members, entry))
                    yield from self._cell(lane, address, port, members, entry)

    def _cell(
        self, lane: _Lane, address: int, port: int, members: tuple[Member, ...], entry: int
    ) -> Iterator[Counterexample]:
        point = (lane.family, address)
        attempt = Attempt(
            lane.layer,
            lane.protocol,
            remote=point if lane.side == "REMOTE" else None,
            remote_port=port if lane.port_side == "REMOTE" else None,
            local=point if lane.side == "LOCAL" else None,
            local_port=port if lane.port_side == "LOCAL" else None,
            wildcard=lane.wildcard,
        )
        matching = [self._filters[at] for at, role in members if role == _FILTER]
        loopback = any(role == _EXEMPT for _, role in members)
        permitted, by = lane.wanted(entry, loopback)
        rule = None if by is None else self._policy.rules[by]
        event = f"{lane.layer} protocol {lane.protocol} {format_address(*point)} port {port}"
        policy = f"{'let through' if permitted else 'refused'}{f' by {rule.id}' if rule else ''}"
        try:
            ruling = classify({"filters": matching}, attempt)
        except Ambiguous as ambiguous:
            yield _about(event, f"one weight, two answers: {ambiguous}", policy, "filters", rule)
            return
        agreed = ruling.permitted is permitted
        # what no filter matches is let through, which needs no rule; nor does an accept
        named = rule is None or lane.side != lane.port_side or rule.id in ruling.rules
        if agreed and (named or not ruling.matched):
            return
        does = (
            f"{'permitted' if ruling.permitted else 'blocked'} by"
            f" {', '.join(ruling.rules) or 'no rule'}"
        )
        stated = self._statement(permitted, rule, ruling)
        if stated is not None:
            self.stated.add(f"{event}: {does}, and {policy} by the policy ({stated})")
            return
        names = ", ".join(one["name"] for one in matching) or "no filter"
        yield _about(event, does, policy, f"filters: {names}", rule)

    def _statement(self, permitted: bool, rule: Rule | None, ruling: Ruling) -> str | None:
        """Return what of the fidelity states a difference: the rule that should have handled is not carried,
        or one that should not have, over-blocks.
        """
        if rule is not None and (stated := self._rows.get(rule.id)) is not None:
            return f"{rule.id}: {stated}"
        for subject in ruling.rules:
            stated = self._rows.get(subject)
            if stated == "unsupported" or (stated == "over-blocks" and permitted):
                return f"{subject}: {stated}"
        return None


_FILTER_TEXTS = ("key", "name", "layer", "action")
_CONDITION_TEXTS = ("field", "match", "type")


def _shaped(filters: Mapping[str, Any]) -> bool:
    """Tell whether *filters* has the members of a filter set: the codec leaves them as they are."""
    if not isinstance(filters.get("session"), dict) or not isinstance(
        filters.get("sublayer"), dict
    ):
        return False
    listed = filters.get("filters")
    return isinstance(listed, list) and all(
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in _FILTER_TEXTS)
        and "weight" in one
        and isinstance(one.get("rules"), list)
        and all(isinstance(rule, str) for rule in one["rules"])
        and isinstance(one.get("conditions"), list)
        and all(
            isinstance(condition, dict)
            and all(isinstance(condition.get(name), str) for name in _CONDITION_TEXTS)
            and "value" in condition
            for condition in one["conditions"]
        )
        for one in listed
    )


def _about(
    event: str, artifact: str, policy: str, part: str, rule: Rule | None = None
) -> Counterexample:
    origin = rule.origin if rule else None
    place = f"{origin.file}:{origin.line}:{origin.column}" if origin else None
    return Counterexample(event, artifact, policy, rule.id if rule else None, place, part)


def _sensible(condition: Mapping[str, Any]) -> bool:
    """Tell whether the value of a condition is one of its type."""
    value, kind = condition["value"], condition["type"]
    most = {"UINT8": 0xFF, "UINT16": 0xFFFF, "UINT32": 0xFFFFFFFF}
    if kind in most:
        return isinstance(value, int) and 0 <= value <= most[kind]
    if kind == "RANGE":
        limit = 0xFF if condition["field"] == "IP_PROTOCOL" else 0xFFFF
        ends = isinstance(value, list) and len(value) == 2 and all(type(v) is int for v in value)
        return ends and 0 <= value[0] <= value[1] <= limit
    if not isinstance(value, str):
        return False
    if kind in ("V4_ADDR_MASK", "V6_ADDR_MASK"):
        base, _, prefix = value.partition("/")
        parsed = parse_address(base)
        return (
            parsed is not None
            and parsed[0] == int(kind[1])
            and prefix.isdigit()
            and int(prefix) <= (32 if parsed[0] == 4 else 128)
        )
    return True


def _ports(one: Mapping[str, Any], side: str) -> PortSet:
    found = []
    for condition in one["conditions"]:
        if condition["field"] == f"IP_{side}_PORT":
            value = condition["value"]
            found.append((value, value) if condition["match"] == "EQUAL" else (value[0], value[1]))
    return port_sets.normal(found) if found else ANY_PORT


def _has(one: Mapping[str, Any], field: str) -> bool:
    return any(condition["field"] == field for condition in one["conditions"])


def _protocol(one: Mapping[str, Any], protocol: int) -> bool:
    held = [c for c in one["conditions"] if c["field"] == "IP_PROTOCOL"]
    return not held or any(
        c["value"] == protocol
        if c["match"] == "EQUAL"
        else c["value"][0] <= protocol <= c["value"][1]
        for c in held
    )


def _boxes(at: int, one: Mapping[str, Any], lane: _Lane) -> Iterator[Box]:
    """Yield where a filter matches attempts of *lane*; nowhere where it asks for a field they have not."""
    other = "LOCAL" if lane.side == "REMOTE" else "REMOTE"
    other_port = "LOCAL" if lane.port_side == "REMOTE" else "REMOTE"
    if _has(one, f"IP_{other}_ADDRESS") or _has(one, f"IP_{other_port}_PORT"):
        return
    if not _protocol(one, lane.protocol):
        return
    flags = [c["value"] for c in one["conditions"] if c["field"] == "FLAGS"]
    if flags and not (lane.wildcard and any(value & 8 for value in flags)):
        return
    ports = _ports(one, lane.port_side)
    networks = [c for c in one["conditions"] if c["field"] == f"IP_{lane.side}_ADDRESS"]
    spans: list[tuple[int, int]] = []
    for condition in networks:
        if condition["type"].startswith("@"):
            continue
        base, _, prefix = condition["value"].partition("/")
        parsed = parse_address(base)
        if parsed is None or parsed[0] != lane.family:
            continue
        size = 1 << ((32 if lane.family == 4 else 128) - int(prefix))
        low = parsed[1] & ~(size - 1)
        spans.append((low, low + size - 1))
    if not networks:
        spans = [(0, LAST[lane.family])]
    for first, last in _joined(spans):
        yield first, last, ports, (at, _FILTER)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return *spans* in order with what overlaps or touches joined: no box of a filter twice at a place."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _shape(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what counts of a filter with a symbol."""
    symbols = " ".join(
        f"{c['type']} {c['value']}" for c in one["conditions"] if c["field"] == "IP_REMOTE_ADDRESS"
    )
    protocols = sorted(
        c["value"]
        for c in one["conditions"]
        if c["field"] == "IP_PROTOCOL" and c["match"] == "EQUAL"
    )
    odd = [
        c["field"]
        for c in one["conditions"]
        if c["field"] in ("IP_LOCAL_ADDRESS", "IP_LOCAL_PORT", "FLAGS")
    ]
    odd += [
        f"range {c['value']}"
        for c in one["conditions"]
        if c["field"] == "IP_PROTOCOL" and c["match"] == "RANGE"
    ]
    return (
        one["layer"],
        one["action"],
        one["weight"],
        tuple(one["rules"]),
        " ".join((symbols, *odd)),
        tuple(protocols),
        _ports(one, "REMOTE"),
    )
