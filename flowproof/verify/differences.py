"""What an artifact lists as done otherwise on its target, against what was found to be.

A list that leaves out a cell would let a reader believe in it; one that holds more would hide the next.
"""

from __future__ import annotations

from flowproof.ir.cells import cell_words
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.regions import Region, union_all
from flowproof.verify.found import Counterexample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from flowproof.ir.model import Policy, Rule

    Kind = tuple[str, str, str | None, tuple[str, ...]]
    Placed = tuple[str, str, str | None, tuple[str, ...], str]
    Listed = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]

__all__ = ["Differing", "listed_otherwise"]

_MEANING = "meaning:"
_STATED = ("over-blocks", "not-applicable", "over-permits", "unsupported")


class Differing:
    """The cells that differ, by kind: (how, subject of the fidelity that states it, the rule that handles by
    the policy, the rules of the filters that decide, lane).
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._regions: dict[Placed, list[Region]] = {}

    @property
    def kinds(self) -> int:
        """How many kinds of cells differ."""
        return len(self._regions)

    def add(self, kind: Placed, family: int, first: int, last: int, ports: tuple[int, int]) -> None:
        """Take in the cell of addresses *first* to *last* and of *ports*."""
        region = Region.of(((family, first, last),), ("tcp",), (ports,))
        self._regions.setdefault(kind, []).append(region)

    def listed(self) -> Iterator[Listed]:
        """Yield each kind as an artifact has to list it: (kind, subject, where, rules, cells)."""
        for (how, subject, by, rules, where), regions in self._regions.items():
            concerned = tuple(sorted({*rules, *(() if by is None else (by,))}))
            cells = cell_words(union_all(regions), addresses="any" not in where)
            yield how, subject, where, concerned, cells


def listed_otherwise(
    policy: Policy, artifact: Mapping[str, Any], differing: Differing
) -> Counterexample | None:
    """Return the first difference that *artifact* (JSON) does not list, or lists and is none."""
    ids = [rule["id"] for rule in artifact["rules"]]
    listed = sorted(
        (
            one["kind"],
            one["subject"],
            one["where"],
            tuple(ids[at] for at in one["rules"]),
            tuple(one["cells"]),
        )
        for one in artifact["differences"]
    )
    wanted = sorted((*differing.listed(), *_unseen(policy)))
    meanings = [one for one in listed if one[1].startswith(_MEANING)]
    rows = {
        row["subject"]: row["refusing"]
        for row in artifact["fidelity"]
        if row["subject"].startswith(_MEANING) and row["refusing"] in _STATED
    }
    told = {one[1]: one[0] for one in meanings if one[2] == "meaning" and one[4]}
    if len(told) != len(meanings) or told != rows:
        odd = min(told.items() ^ rows.items(), default=("meaning", "stands twice"))
        return _odd(f"{odd[0]}: {odd[1]}", odd in rows.items(), policy, ())
    others = [one for one in listed if not one[1].startswith(_MEANING)]
    if others == wanted:
        return None
    first = min(one for one in (*others, *wanted) if others.count(one) != wanted.count(one))
    how, subject, where, rules, cells = first
    event = f"{where} {cells[0] if cells else subject}: {how}, as {subject} states"
    return _odd(event, wanted.count(first) > others.count(first), policy, rules)


def _odd(event: str, left_out: bool, policy: Policy, rules: tuple[str, ...]) -> Counterexample:
    rule = next((rule for rule in policy.rules if rule.id in rules), None)
    origin = rule.origin if rule else None
    return Counterexample(
        event,
        "does not list it" if left_out else "lists it",
        "it is a difference" if left_out else "it is none",
        rule.id if rule else None,
        f"{origin.file}:{origin.line}:{origin.column}" if origin else None,
        "differences",
    )


def _unseen(policy: Policy) -> Iterator[Listed]:
    """Yield what no cell of address and port shows: unix sockets, exceptions that need a binding, the
    counting of listens by address, and attempts at files.
    """
    for rule in policy.rules:
        if rule.meaning is not None:
            continue
        paths = sorted({*rule.targets.unix, *rule.exceptions.unix})
        if paths:
            yield "not-applicable", rule.id, "unix", (rule.id,), tuple(f"unix:{p}" for p in paths)
        symbols = set(rule.exceptions.symbols)
        if rule.exceptions.region:
            symbols.update(rule.targets.symbols)
        if symbols:
            names = sorted({_symbol(one.kind, one.value) for one in symbols})
            yield "unsupported", rule.id, "binding", (rule.id,), tuple(names)
        counts = rule.action == "listen" and (rule.asserts or rule.verb == "observe")
        if counts and _by_address(rule):
            yield "unsupported", rule.id, "counting", (rule.id,), ("listens by address",)
        if rule.action == "files" and rule.verb in ("observe", "expect no"):
            yield "unsupported", rule.id, "counting", (rule.id,), tuple(sorted(rule.operations))


def _by_address(rule: Rule) -> bool:
    """Tell whether a rule about listens is about some addresses only, and not about ports."""
    for region in (rule.named, rule.otherwise):
        ports = {held for _, _, _, _, held in region}
        if region and (len(ports) != 1 or region != Region.of(OFF_LOOPBACK, ("tcp",), ports.pop())):
            return True
    return False


def _symbol(kind: str, value: str) -> str:
    return {"variable": f"${{{value}}}", "wildcard": f"*.{value}"}.get(kind, value)
