"""Named sets of destinations: every member parsed, references to other sets replaced by their members."""

from __future__ import annotations

from flowproof.ir import ports as port_sets
from flowproof.ir.ports import ANY_PORT
from flowproof.near import near_miss
from flowproof.syntax import tree
from flowproof.syntax.parse import parse_destinations
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.diagnostics import Report, Span
    from flowproof.ir.ports import PortSet
    from flowproof.source.documents import Text

__all__ = ["Part", "Sets"]

LIMIT = 35_000
"""How many members the references to sets of one file may come to, all together."""
DEPTH = 64
"""How deep sets may name each other."""


class Part(Value):
    """One destination without set references: a host, its ports, and the place where it is used."""

    host: tree.Host
    ports: PortSet
    span: Span


class Sets:
    """The sets of one file. Every member is parsed and every error reported, used or not."""

    def __init__(self, entries: Iterable[tuple[Text, tuple[Text, ...]]], report: Report) -> None:
        self._report = report
        self._members: dict[str, list[tree.Destination] | None] = {}
        self._spans: dict[str, Span] = {}
        for key, texts in entries:
            # a set that was read without members was refused then, and its error says so
            members: list[tree.Destination] | None = [] if texts else None
            for text in texts:
                before = report.failures
                parsed = parse_destinations(text, report)
                if not parsed or report.failures > before:
                    members = None
                elif members is not None:
                    members.extend(parsed)
            self._members[key.value] = members
            self._spans[key.value] = key.span
        self._parts: dict[str, list[Part] | None] = {}
        self._spent = 0
        for name in self._members:
            self._resolve(name, ())

    def expand(self, found: Iterable[tree.Destination]) -> list[Part] | None:
        """Return *found* with set references replaced, or None where one of them is broken."""
        return self._expand(found, ())

    def _expand(
        self, found: Iterable[tree.Destination], within: tuple[str, ...]
    ) -> list[Part] | None:
        parts: list[Part] = []
        sound = True
        for destination in found:
            ports = (
                port_sets.normal([(part.low, part.high) for part in destination.ports.ranges])
                if destination.ports
                else None
            )
            if not isinstance(destination.host, tree.SetReference):
                parts.append(Part(destination.host, ports or ANY_PORT, destination.span))
                continue
            members = self._reference(destination.host, within)
            if members is None:
                sound = False
                continue
            if ports is not None and any(part.ports != ANY_PORT for part in members):
                self._report.error(
                    "FP507",
                    f"the members of `@{destination.host.name}` carry ports already",
                    destination.ports.span if destination.ports else destination.span,
                    f"write `@{destination.host.name}` without ports, or take them out of the set",
                    related=((self._spans[destination.host.name], "the set"),),
                )
                sound = False
                continue
            if not self._afford(len(members), destination.host):
                return None
            parts.extend(Part(part.host, ports or part.ports, destination.span) for part in members)
        return parts if sound else None

    def _afford(self, count: int, host: tree.SetReference) -> bool:
        """Tell whether *count* more members may be written out, and say once that they may not."""
        before, self._spent = self._spent, self._spent + count
        if self._spent <= LIMIT:
            return True
        if before <= LIMIT:
            self._report.error(
                "FP509",
                f"with `@{host.name}` the sets of this file come to more than {LIMIT} destinations",
                host.span,
                "write networks instead of single addresses, or fewer rules that share the set",
            )
        return False

    def _reference(self, host: tree.SetReference, within: tuple[str, ...]) -> list[Part] | None:
        if host.name not in self._members:
            near = near_miss(host.name, self._members)
            known = ", ".join(f"`@{name}`" for name in self._members) or "none"
            self._report.error(
                "FP505",
                f"unknown set `@{host.name}`",
                host.span,
                f"did you mean `@{near}`?" if near else f"sets of this file: {known}",
            )
            return None
        if host.name in within:
            circle = " → ".join(f"`@{name}`" for name in (*within, host.name))
            self._report.error(
                "FP506",
                f"set `@{host.name}` contains itself: {circle}",
                host.span,
                "take one of the references out",
            )
            return None
        if len(within) >= DEPTH:
            self._report.error(
                "FP506",
                f"sets name each other more than {DEPTH} deep here",
                host.span,
                "name the destinations, or a set that does",
            )
            return None
        return self._resolve(host.name, within)

    def _resolve(self, name: str, within: tuple[str, ...]) -> list[Part] | None:
        if name not in self._parts:
            self._parts[name] = (
                None  # stands until the members are known: a circle is met only once
            )
            members = self._members[name]
            if members is not None:
                parts = self._expand(members, (*within, name))
                # what is named twice, by way of other sets too, is one member
                once = {(part.host, part.ports): part for part in parts or ()}
                self._parts[name] = None if parts is None else list(once.values())
        return self._parts[name]
