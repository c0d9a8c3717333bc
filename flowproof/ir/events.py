"""Events: single attempts, as ``explain`` and policy tests write them."""

from __future__ import annotations

from flowproof.addresses import canonical, format_address, parse_address
from flowproof.ir.model import OPERATIONS
from flowproof.near import near_miss
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span

__all__ = [
    "FAMILIES",
    "Connect",
    "ConnectName",
    "Event",
    "Family",
    "FileAttempt",
    "Foreign",
    "Listen",
    "NetworkEvent",
    "Unix",
    "parse_event",
]

FAMILIES = ("packet", "raw", "vsock", "sctp", "mptcp", "dccp", "xdp", "bluetooth", "other")
"""Families of sockets that events name; ``other`` is any that has no name here."""

_FORMS = (
    "connect tcp 10.0.0.9:443",
    "connect udp [2001:db8::1]:53",
    "connect unix:/run/x.sock",
    "inside unix:/run/x.sock",
    "probe udp 10.0.0.9:53",
    "listen tcp 0.0.0.0:8080",
    "socket packet",
    "foreign connect",
    "delete /srv/a.txt",
    "rename /srv/a.txt -> /srv/b.txt (replaces)",
    "truncate /srv/a.txt",
    "write /srv/a.txt",
)


class Connect(Value):
    """A TCP connect, or a UDP datagram or connect that would leave; *probe*: a refused UDP connect.

    The address is canonical: v4-mapped is v4, ``0.0.0.0`` and ``::`` are the loopback that they reach.
    """

    protocol: str
    family: int
    address: int
    port: int
    probe: bool = False

    def __str__(self) -> str:
        word = "probe" if self.probe else "connect"
        return f"{word} {self.protocol} {_endpoint(self.family, self.address)}:{self.port}"


class ConnectName(Value):
    """A connect by a name that is judged as unbound: any address of that name."""

    protocol: str
    name: str
    port: int
    probe: bool = False

    def __str__(self) -> str:
        return f"{'probe' if self.probe else 'connect'} {self.protocol} {self.name}:{self.port}"


class Unix(Value):
    """A connect to a unix socket; *inside*: a process of the run holds it bound."""

    path: str
    inside: bool = False

    def __str__(self) -> str:
        return f"{'inside' if self.inside else 'connect'} unix:{self.path}"


class Family(Value):
    """A socket of a family, type or protocol that the language does not judge by address."""

    name: str

    def __str__(self) -> str:
        return f"socket {self.name}"


class Foreign(Value):
    """A system call by a foreign ABI."""

    def __str__(self) -> str:
        return "foreign connect"


class Listen(Value):
    """A TCP listen. ``0.0.0.0`` is every IPv4 address, ``::`` every address."""

    family: int
    address: int
    port: int

    def __str__(self) -> str:
        return f"listen tcp {_endpoint(self.family, self.address)}:{self.port}"


class FileAttempt(Value):
    """An attempt at a file. *operation* is delete, rename, truncate or write; *destination* is a rename's
    other end, *replaces* says that something was there.
    """

    operation: str
    path: str
    destination: str | None = None
    replaces: bool = False

    def __str__(self) -> str:
        to = f" -> {self.destination}" if self.destination else ""
        return f"{self.operation} {self.path}{to}{' (replaces)' if self.replaces else ''}"


NetworkEvent = Connect | ConnectName | Unix | Family | Foreign | Listen
Event = NetworkEvent | FileAttempt


def _endpoint(family: int, address: int) -> str:
    text = format_address(family, address)
    return f"[{text}]" if family == 6 else text


class _NoEventError(Exception):
    """The text is no event; the message says why."""


def parse_event(text: str, report: Report, span: Span | None = None) -> Event | None:
    """Return the event that *text* writes, or None with an error in *report* at *span*."""
    try:
        return _parse(text)
    except _NoEventError as problem:
        report.error("FP520", str(problem), span, _way_out(text))
        return None


def _way_out(text: str) -> str:
    """Return the forms of the event that *text* begins like, or all of them."""
    first = text.partition(" ")[0]
    begins = dict.fromkeys(form.partition(" ")[0] for form in _FORMS)
    meant = first if first in begins else near_miss(first, begins)
    forms = [form for form in _FORMS if meant is None or form.partition(" ")[0] == meant]
    written = "; ".join(f"`{form}`" for form in forms)
    way = f"write one of: {written}" if len(forms) > 1 else f"write it as {written}"
    return way if meant in (None, first) else f"did you mean `{meant}`? {way}"


def _parse(text: str) -> Event:
    words = text.split()
    match words:
        case ["connect" | "probe" as word, "tcp" | "udp" as protocol, endpoint]:
            return _connect(word, protocol, endpoint)
        case ["connect" | "inside" as word, path] if path.startswith("unix:") and path != "unix:":
            return Unix(_path(path.removeprefix("unix:")), word == "inside")
        case ["socket", family] if family in FAMILIES:
            return Family(family)
        case ["socket", family]:
            known = ", ".join(f"`{name}`" for name in FAMILIES)
            raise _NoEventError(f"`{family}` is no family of sockets that events name: {known}")
        case ["foreign", "connect"]:
            return Foreign()
        case ["listen", "tcp", endpoint]:
            return Listen(*_address(endpoint))
        case [operation, *_] if operation in OPERATIONS:
            return _file(operation, text.split(maxsplit=1)[-1])
        case _:
            raise _NoEventError(f"`{text}` is no event" if text.strip() else "the event is empty")


def _connect(word: str, protocol: str, endpoint: str) -> Event:
    probe = word == "probe"
    if probe and protocol == "tcp":
        raise _NoEventError("only udp has probes: a refused UDP connect sends nothing")
    host, _, port = endpoint.rpartition(":")
    if host and not host.startswith("[") and ":" not in host and parse_address(host) is None:
        number = _port(port, endpoint)
        name = host.lower().rstrip(".")
        if not all(
            part and part.replace("-", "").replace("_", "").isalnum() for part in name.split(".")
        ):
            raise _NoEventError(f"`{host}` is no name and no address")
        if name.rsplit(".", 1)[-1].isdigit():
            raise _NoEventError(f"`{host}` is no address: four octets of 0 to 255 are one")
        if not name.isascii():
            name = name.encode("idna").decode("ascii")
        if name == "localhost":
            return Connect(protocol, 4, 0x7F000001, number, probe)
        return ConnectName(protocol, name, number, probe)
    family, value, number = _address(endpoint)
    if value == 0:  # Linux connects 0.0.0.0 and :: to the loopback address
        value = 0x7F000001 if family == 4 else 1
    return Connect(protocol, family, value, number, probe)


def _address(endpoint: str) -> tuple[int, int, int]:
    host, _, port = endpoint.rpartition(":")
    number = _port(port, endpoint)
    bracketed = host.startswith("[") and host.endswith("]")
    text = host[1:-1].partition("%")[0] if bracketed else host
    parsed = parse_address(text)
    if parsed is None:
        raise _NoEventError(f"`{host}` is no address")
    if (parsed[0] == 6) is not bracketed:
        way = (
            f"of IPv6 is in brackets: `[{host}]`"
            if parsed[0] == 6
            else "of IPv4 is not in brackets"
        )
        raise _NoEventError(f"`{endpoint}`: an address {way}")
    return (*canonical(*parsed), number)


def _port(text: str, endpoint: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535:
        return int(text)
    raise _NoEventError(f"`{endpoint}` has no port of 0 to 65535")


def _file(operation: str, rest: str) -> Event:
    rest = rest.strip()
    if operation != "rename":
        if not rest or rest == operation:
            raise _NoEventError(f"`{operation}` needs a path")
        return FileAttempt(operation, _path(rest))
    replaces = rest.endswith("(replaces)")
    source, arrow, destination = rest.removesuffix("(replaces)").partition(" -> ")
    if not arrow or not source.strip() or not destination.strip():
        raise _NoEventError("`rename` needs two paths, parted by `->`")
    return FileAttempt(operation, _path(source.strip()), _path(destination.strip()), replaces)


def _path(path: str) -> str:
    """Return *path* normalised as rules have it: `//`, `.` and a trailing `/` gone."""
    if path.startswith("@"):
        return path
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/"):
        return "/" + "/".join(parts)
    if path.startswith(("~/", "${")):
        return "/".join(parts)
    return "/".join(("${cwd}", *parts))
