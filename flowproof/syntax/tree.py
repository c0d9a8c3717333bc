"""The syntax tree of a control sentence: frozen nodes, each with its span."""

from __future__ import annotations

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Span

__all__ = [
    "Action",
    "Address",
    "AddressClass",
    "Anything",
    "Call",
    "Cidr",
    "Connect",
    "Destination",
    "Execute",
    "Files",
    "Glob",
    "Host",
    "Listen",
    "Name",
    "PortRange",
    "Ports",
    "Sentence",
    "SetReference",
    "Unix",
    "Variable",
    "Where",
    "Wildcard",
]


class Name(Value):
    """A DNS name, normalised: lower case, no trailing dot, A-labels (IDNA 2008, UTS 46)."""

    name: str
    span: Span


class Wildcard(Value):
    """``*.name``: one or more labels in front of *name* (normalised as `Name`)."""

    name: str
    span: Span


class Address(Value):
    """One address; a v4-mapped one, and a CIDR of full length, is already the address it means."""

    family: int
    value: int
    span: Span


class Cidr(Value):
    """A network of more than one address: no host bits set, never v4-mapped."""

    family: int
    base: int
    prefix: int
    span: Span


class AddressClass(Value):
    """``loopback``, ``private``, ``link-local``, ``metadata`` or ``multicast``; `localhost` is loopback."""

    word: str
    span: Span


class Variable(Value):
    """``${NAME}``: one host, address or CIDR, read from the environment when a run starts."""

    name: str
    span: Span


class SetReference(Value):
    """``@name``: the members of a set of the same file."""

    name: str
    span: Span


class Anything(Value):
    """``anything``, or ``anything else`` with *otherwise*."""

    otherwise: bool
    span: Span


class Unix(Value):
    """``unix:`` and a path, normalised (`//`, `.`, trailing `/`), or ``@name`` for an abstract one.

    *path* may begin with ``~/``, ``${cwd}/``, ``${tmp}/`` or ``${NAME}/``; a relative one begins with
    ``${cwd}/`` already.
    """

    path: str
    span: Span


Host = Name | Wildcard | Address | Cidr | AddressClass | Variable | SetReference | Anything | Unix


class PortRange(Value):
    """Ports *low* to *high*, 1 to 65535, both included."""

    low: int
    high: int
    span: Span


class Ports(Value):
    """The ports written behind a host; the span is of what stands behind the colon."""

    ranges: tuple[PortRange, ...]
    span: Span


class Destination(Value):
    """A host and its ports (None: any port)."""

    host: Host
    ports: Ports | None
    span: Span


class Connect(Value):
    """``connect [protocols] to destinations [except destinations]``; no protocols means both."""

    protocols: tuple[str, ...]
    destinations: tuple[Destination, ...]
    exceptions: tuple[Destination, ...]
    span: Span


class Listen(Value):
    """``listen [on destinations] [except destinations]``; without ``on`` one `Anything`."""

    destinations: tuple[Destination, ...]
    exceptions: tuple[Destination, ...]
    span: Span


class Glob(Value):
    """A path or glob, normalised; see `Unix` for how it may begin."""

    text: str
    span: Span


class Where(Value):
    """``under`` or ``at`` some paths, or ``anywhere``/``anywhere else`` (then *paths* is empty)."""

    kind: str
    paths: tuple[Glob, ...]
    otherwise: bool
    span: Span


class Files(Value):
    """File operations at a place; `destroy` is kept as written, with the span of each operation."""

    operations: tuple[tuple[str, Span], ...]
    where: Where
    exceptions: Where | None
    span: Span


class Execute(Value):
    """``execute where``."""

    where: Where
    span: Span


class Call(Value):
    """``call tool {, tool}``; a tool may hold ``*``."""

    tools: tuple[Glob, ...]
    span: Span


Action = Connect | Listen | Files | Execute | Call


class Sentence(Value):
    """``verb action [because STRING]``. *verb* is allow, observe, expect no, deny or never."""

    verb: str
    action: Action
    reason: str | None
    span: Span
