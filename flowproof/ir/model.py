"""The intermediate representation of a control: rules over sets, free of any platform.

An invalid policy cannot be built. What the fixed meanings of the language change about a target (no
loopback in a wider network, no metadata under ``allow``) is resolved already in `Destinations.region`.
"""

from __future__ import annotations

from flowproof.addresses import LAST, LOOPBACK
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import EMPTY, Region, union_all
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from flowproof.addresses import Interval
    from flowproof.diagnostics import Span
    from flowproof.ir.places import Places
    from flowproof.ir.ports import PortSet

__all__ = [
    "CLAIMS",
    "MEANINGS",
    "OFF_LOOPBACK",
    "OPERATIONS",
    "VERBS",
    "Destinations",
    "Origin",
    "Policy",
    "Rule",
    "Scope",
    "Symbol",
]

CLAIMS: dict[str, str] = {
    "allow": "none",
    "observe": "report",
    "expect no": "behaviour",
    "deny": "containment",
    "never": "containment+behaviour",
}
"""Verb → the claim that it makes. A behaviour claim is never worded as a containment claim."""

VERBS = tuple(CLAIMS)
ACTIONS = ("connect", "listen", "files", "execute", "call")
OPERATIONS = ("delete", "rename", "truncate", "write")
"""File operations, in the order in which an event that amounts to several is refused."""
KINDS = ("authored", "short-form", "default", "implied")
MEANINGS = ("families", "foreign-abi", "io-uring", "unix", "listen", "unreadable")
"""The fixed meanings that refuse by themselves; an implied rule is `<control id>.implied.<meaning>`."""

_PROTOCOLS = ("tcp", "udp")

OFF_LOOPBACK: tuple[Interval, ...] = (
    (4, 0, LOOPBACK[0][1] - 1),
    (4, LOOPBACK[0][2] + 1, LAST[4]),
    (6, 0, LOOPBACK[1][1] - 1),
    (6, LOOPBACK[1][2] + 1, LAST[6]),
)
"""Every address but loopback."""


class Origin(Value):
    """Where a rule was written: the place of its sentence (or of the short form that it came from)."""

    file: str
    line: int
    column: int
    pack: str | None = None
    span: Span | None = None


class Scope(Value):
    """``anything`` or ``anything else`` with what narrows it: empty *protocols* where none are written,
    all ports where none are written.
    """

    protocols: tuple[str, ...]
    ports: PortSet = ANY_PORT

    def __post_init__(self) -> None:
        if not self.ports or not set(self.protocols) <= set(_PROTOCOLS):
            raise ValueError("a scope has ports, and protocols of tcp and udp")

    @property
    def bare(self) -> bool:
        """Whether neither protocol nor ports narrow it: then it holds families, foreign ABI and unix."""
        return not self.protocols and self.ports == ANY_PORT

    def holds(self, protocol: str, port: int) -> bool:
        """Tell whether an attempt with *protocol* and *port* is in the scope."""
        return (not self.protocols or protocol in self.protocols) and any(
            low <= port <= high for low, high in self.ports
        )


class Symbol(Value):
    """A destination that only a run can bind. *kind*: name, wildcard or variable."""

    kind: str
    value: str
    protocols: tuple[str, ...]
    ports: PortSet = ANY_PORT

    def __post_init__(self) -> None:
        if self.kind not in ("name", "wildcard", "variable") or not self.value or not self.ports:
            raise ValueError("a symbol is a name, a wildcard or a variable, with ports")

    def names(self, name: str, protocol: str, port: int) -> bool:
        """Tell whether an attempt by *name* is one of the symbol's (a variable is unbound here)."""
        if protocol not in self.protocols or not any(
            low <= port <= high for low, high in self.ports
        ):
            return False
        if self.kind == "wildcard":
            return name.endswith("." + self.value)
        return self.kind == "name" and name == self.value


class Destinations(Value):
    """A set of destinations. *region* holds addresses, those of *anything* included; *otherwise* is what
    ``anything else`` covers before the allows are taken out of it; *unix* are socket paths.
    """

    region: Region = EMPTY
    anything: tuple[Scope, ...] = ()
    otherwise: tuple[Scope, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    unix: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(
            self.region.planes or self.anything or self.otherwise or self.symbols or self.unix
        )

    @property
    def bare_anything(self) -> bool:
        """Whether it holds families, foreign ABI and outside unix sockets by ``anything``."""
        return any(scope.bare for scope in self.anything)

    @property
    def bare_otherwise(self) -> bool:
        """Whether it holds them by ``anything else``."""
        return any(scope.bare for scope in self.otherwise)


class Rule(Value):
    """One rule. *meaning* names the fixed meaning that an implied rule stands for.

    `connect` and `listen` have *targets* and *exceptions*. `files` and `execute` have *places* and
    *excepted_places* instead, `files` with its *operations* (``destroy`` spelt out); `call` has *tools*.
    *sentence* is canonical text for readers; neither it nor *origin* is part of the digest.
    """

    id: str
    verb: str
    action: str
    targets: Destinations
    exceptions: Destinations
    kind: str
    sentence: str
    reason: str | None = None
    origin: Origin | None = None
    meaning: str | None = None
    operations: tuple[str, ...] = ()
    places: Places | None = None
    excepted_places: Places | None = None
    tools: tuple[str, ...] = ()

    __slots__ = ("_named", "_otherwise")
    _named: ClassVar[Region | None]  # derived, on demand: slots, not fields
    _otherwise: ClassVar[Region | None]

    def __post_init__(self) -> None:
        if self.verb not in VERBS or self.action not in ACTIONS or self.kind not in KINDS:
            raise ValueError(f"rule {self.id}: no such verb, action or kind")
        if not (self.targets or self.places or self.tools) and self.meaning not in MEANINGS:
            raise ValueError(f"rule {self.id}: nothing to be about")
        if self.verb == "allow" and (
            self.targets.otherwise or (self.places and self.places.otherwise)
        ):
            raise ValueError(f"rule {self.id}: a complement under `allow`")
        if (self.action == "files") is not bool(self.operations) or (
            self.operations and not set(self.operations) <= set(OPERATIONS)
        ):
            raise ValueError(f"rule {self.id}: file operations are of a rule about files")
        object.__setattr__(self, "_named", None)
        object.__setattr__(self, "_otherwise", None)

    @property
    def claim(self) -> str:
        """The claim of the verb."""
        return CLAIMS[self.verb]

    @property
    def refuses(self) -> bool:
        """Whether the rule refuses what matches it."""
        return self.verb in ("deny", "never")

    @property
    def asserts(self) -> bool:
        """Whether an attempt that matches makes the control fail."""
        return self.verb in ("never", "expect no")

    @property
    def named(self) -> Region:
        """The addresses of the named targets, exceptions taken out."""
        if self._named is None:
            region = self.targets.region - self.exceptions.region
            object.__setattr__(self, "_named", region)
            return region
        return self._named

    @property
    def otherwise(self) -> Region:
        """The addresses that ``anything else`` may cover: no loopback, exceptions taken out, the allows
        of the action *not* taken out (`Policy.allowed`).
        """
        if self._otherwise is None:
            protocols = ("tcp",) if self.action == "listen" else _PROTOCOLS
            scopes = (
                Region.of(OFF_LOOPBACK, scope.protocols or protocols, scope.ports)
                for scope in self.targets.otherwise
            )
            region = union_all(scopes) - self.exceptions.region
            object.__setattr__(self, "_otherwise", region)
            return region
        return self._otherwise


class Policy(Value):
    """The control of one flow or pack, with the rules that the compiler added. Rules are by id.

    *sources* are (file, sha256) of what it was read from, packs included.
    """

    control: str
    title: str | None
    description: str | None
    rules: tuple[Rule, ...]
    sources: tuple[tuple[str, str], ...] = ()

    __slots__ = ("_allowed",)
    _allowed: ClassVar[dict[str, Region]]

    def __post_init__(self) -> None:
        ids = [rule.id for rule in self.rules]
        if ids != sorted(set(ids)):
            raise ValueError("rules are unique by id, and in order of id")
        object.__setattr__(self, "_allowed", {})

    def allowed(self, action: str) -> Region:
        """Return the union of the ``allow`` targets of *action*, exceptions taken out."""
        if action not in self._allowed:
            self._allowed[action] = union_all(
                rule.named for rule in self.rules if rule.action == action and rule.verb == "allow"
            )
        return self._allowed[action]

    @property
    def connect_denies(self) -> bool:
        """Whether some ``connect`` rule refuses, a default included."""
        return any(
            rule.action == "connect" and rule.refuses and not rule.meaning for rule in self.rules
        )

    @property
    def actions(self) -> frozenset[str]:
        """The actions that rules are about, implied rules left out."""
        return frozenset(rule.action for rule in self.rules if not rule.meaning)
