"""Bound tables and an event in, the decision out, by bisection over what was decided beforehand. Pure."""

from __future__ import annotations

from bisect import bisect_right

from flowproof.artifact.model import PLANES, Decision, Rule, Tables
from flowproof.run.decide_files import FileDecisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Ports = tuple[Sequence[int], Sequence[Decision]]

__all__ = ["Decisions"]


class Decisions:
    """Every decision that a run can come to, computed once; the tables must have every plane."""

    __slots__ = ("_planes", "_special", "files", "unix")

    def __init__(self, tables: Tables, rules: tuple[Rule, ...]) -> None:
        decided = [entry.decide(rules) for entry in tables.entries]
        ports: list[Ports] = [
            (table.starts, [decided[entry] for entry in table.entries]) for table in tables.ports
        ]
        self._planes: dict[str, tuple[Sequence[int], Sequence[Ports]]] = {
            name: (tables.planes[name].starts, [ports[cell] for cell in tables.planes[name].cells])
            for name in PLANES
        }
        self.files = FileDecisions(tables.files, rules)
        """What becomes of attempts at files."""
        self._special = {name: decided[entry] for name, entry in tables.special.items()}
        self.unix: tuple[tuple[str, Decision, Decision], ...] = tuple(
            (row.path, decided[row.outside], decided[row.inside]) for row in tables.unix
        )
        """(path, decision for an outside socket, for an inside one) of each unix path that a rule names."""

    def address(self, plane: str, value: int, port: int) -> Decision:
        """Return the decision for an address and port of a plane."""
        starts, cells = self._planes[plane]
        port_starts, decisions = cells[bisect_right(starts, value) - 1]
        return decisions[bisect_right(port_starts, port) - 1]

    def special(self, event: str) -> Decision:
        """Return the decision for families, foreign-abi, unreadable or unix."""
        return self._special[event]
