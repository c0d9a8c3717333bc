"""The language page once more, in the plainest terms: points, membership, and its steps in order.

Nothing here imports the compiler, and nothing was copied from it: `test_precedence.py` writes random rules
as files, lets the compiler read them, and compares what it says of an event with what is said here.
Addresses are asked one by one through `ipaddress`; sets are predicates.
"""

from __future__ import annotations

import fnmatch
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Ports = tuple[tuple[int, int], ...]

# "metadata is …; private is RFC 1918, RFC 6598 and fc00::/7; …"
CLASSES: dict[str, tuple[Network, ...]] = {
    word: tuple(ipaddress.ip_network(text) for text in networks.split())
    for word, networks in {
        "metadata": "169.254.169.254 fd00:ec2::254 168.63.129.16 100.100.100.200",
        "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7",
        "link-local": "169.254.0.0/16 fe80::/10",
        "multicast": "224.0.0.0/4 255.255.255.255 ff00::/8",
        "loopback": "127.0.0.0/8 ::1",
    }.items()
}
REFUSING = ("deny", "never")
ASSERTING = ("never", "expect no")


@dataclass(frozen=True)
class Target:
    """A host as written, without brackets, and its ports (none: any)."""

    host: str
    ports: Ports = ()

    def __str__(self) -> str:
        host = self.host
        if not self.ports:
            return host
        if host.count(":") > 1:
            host = f"[{host}]"
        listed = [str(low) if low == high else f"{low}-{high}" for low, high in self.ports]
        return f"{host}:{listed[0]}" if len(listed) == 1 else f"{host}:{{{','.join(listed)}}}"

    def takes(self, port: int) -> bool:
        return not self.ports or any(low <= port <= high for low, high in self.ports)


@dataclass(frozen=True)
class Rule:
    """A rule about connect or listen."""

    id: str
    verb: str
    action: str
    targets: tuple[Target, ...]
    exceptions: tuple[Target, ...] = ()
    protocols: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        words = [self.verb, self.action]
        if self.action == "connect":
            words += [", ".join(self.protocols)] * bool(self.protocols) + ["to"]
        else:
            words.append("on")
        words.append(", ".join(map(str, self.targets)))
        if self.exceptions:
            words += ["except", ", ".join(map(str, self.exceptions))]
        return " ".join(words)


@dataclass(frozen=True)
class FileRule:
    """A rule about files. *kind* is under, at, anywhere or anywhere else."""

    id: str
    verb: str
    operations: tuple[str, ...]
    kind: str
    paths: tuple[str, ...] = ()
    excepted_kind: str = ""
    excepted: tuple[str, ...] = ()
    action = "files"

    @property
    def sentence(self) -> str:
        words = [self.verb, ", ".join(self.operations), self.kind, ", ".join(self.paths)]
        if self.excepted_kind:
            words += ["except", self.excepted_kind, ", ".join(self.excepted)]
        return " ".join(word for word in words if word)

    @property
    def covers(self) -> set[str]:
        """The operations it is a rule of: `destroy` is a rule of each of its three."""
        named = set(self.operations)
        return named - {"destroy"} | (
            {"delete", "rename", "truncate"} if "destroy" in named else set()
        )


AnyRule = Rule | FileRule


@dataclass(frozen=True)
class Said:
    """What the page says of an event. *by* is ``?`` where the page does not say who."""

    handling: str
    by: str | None
    asserting: tuple[str, ...] = ()


def _first(rules: Iterable[AnyRule]) -> str:
    """`never` comes before `deny`, then the smaller id."""
    return min(rules, key=lambda rule: (rule.verb not in {"never", "allow"}, rule.id)).id


def network(host: str) -> Network | None:
    """Return the network that a host in text form is, v4-mapped ones as what they stand for."""
    try:
        found = ipaddress.ip_network(host)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Network) and found.network_address.ipv4_mapped:
        mapped = found.network_address.ipv4_mapped
        return ipaddress.ip_network(f"{mapped}/{found.prefixlen - 96}")
    return found


def within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == net.version and address in net for net in networks)


def is_loopback(address: Address) -> bool:
    return within(address, CLASSES["loopback"])


def _networks(host: str, action: str) -> tuple[Network, ...]:
    """Return what *host* names by text."""
    if host in CLASSES:
        return CLASSES[host]
    if host in {"anything", "anything else"}:
        return (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
    if action == "connect" and host in {"0.0.0.0", "::"}:
        return (ipaddress.ip_network("127.0.0.1" if host == "0.0.0.0" else "::1"),)
    if action == "listen" and host in {"0.0.0.0", "::"}:
        every = ("0.0.0.0/0",) if host == "0.0.0.0" else ("0.0.0.0/0", "::/0")
        return tuple(ipaddress.ip_network(text) for text in every)
    found = network(host)
    return () if found is None else (found,)


def _inside_loopback(networks: tuple[Network, ...]) -> bool:
    def inside(net: Network) -> bool:
        return is_loopback(net[0]) and is_loopback(net[-1])

    return bool(networks) and all(inside(net) for net in networks)


def names_address(target: Target, verb: str, action: str, address: Address) -> bool:
    """Tell whether a target covers an address, as the fixed meanings have it."""
    networks = _networks(target.host, action)
    if not within(address, networks):
        return False
    if is_loopback(address) and not _inside_loopback(networks):
        return False  # "wider CIDRs, `anything` and `anything else` never cover loopback"
    if verb == "allow" and action == "connect" and within(address, CLASSES["metadata"]):
        # "the word `metadata` or the exact address does"
        exact = len(networks) == 1 and networks[0].num_addresses == 1
        return target.host == "metadata" or exact
    return True


# connect ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Connect:
    protocol: str
    address: Address
    port: int
    probe: bool = False

    def __str__(self) -> str:
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{'probe' if self.probe else 'connect'} {self.protocol} {host}:{self.port}"

    def reached(self) -> Address:
        """Return the address that it comes to: Linux connects the unspecified ones to loopback."""
        address = self.address
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if int(address) == 0:
            return ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        return address


@dataclass(frozen=True)
class ConnectName:
    protocol: str
    name: str
    port: int

    def __str__(self) -> str:
        return f"connect {self.protocol} {self.name}:{self.port}"


@dataclass(frozen=True)
class Socket:
    """A unix socket, a socket of another family (`socket packet`), or a foreign call."""

    text: str
    path: str = ""
    inside: bool = False

    def __str__(self) -> str:
        return self.text


NetworkEvent = Connect | ConnectName | Socket


def _scoped(rule: Rule, target: Target, event: Connect | ConnectName) -> bool:
    return (not rule.protocols or event.protocol in rule.protocols) and target.takes(event.port)


def _matches_name(host: str, name: str) -> bool:
    if host.startswith("*."):
        return name.endswith(host[1:]) and len(name) > len(host) - 1
    return host == name


def _bare(rule: Rule, host: str) -> bool:
    return not rule.protocols and any(t.host == host and not t.ports for t in rule.targets)


def excepts(rule: Rule, event: NetworkEvent) -> bool:
    match event:
        case Connect():
            address = event.reached()
            return any(
                within(address, _networks(e.host, "connect")) and _scoped(rule, e, event)
                for e in rule.exceptions
            )
        case ConnectName():
            return any(
                (e.host == "anything" or _matches_name(e.host, event.name))
                and _scoped(rule, e, event)
                for e in rule.exceptions
            )
        case Socket():
            return bool(event.path) and any(e.host == f"unix:{event.path}" for e in rule.exceptions)


def named(rule: Rule, event: NetworkEvent) -> bool:
    """Tell whether a named target of *rule* contains the event."""
    match event:
        case Connect():
            address = event.reached()
            hit = any(
                t.host != "anything else"
                and names_address(t, rule.verb, "connect", address)
                and _scoped(rule, t, event)
                for t in rule.targets
            )
        case ConnectName():
            hit = any(
                (t.host == "anything" or _matches_name(t.host, event.name))
                and _scoped(rule, t, event)
                for t in rule.targets
            )
        case Socket():
            by_path = bool(event.path) and any(t.host == f"unix:{event.path}" for t in rule.targets)
            if event.inside:
                hit = by_path and rule.verb != "allow"
            else:
                hit = by_path or (rule.verb != "allow" and _bare(rule, "anything"))
    return hit and not excepts(rule, event)


def caught(rules: list[Rule], rule: Rule, event: NetworkEvent) -> bool:
    """Tell whether `anything else` of *rule* contains the event."""
    if excepts(rule, event):
        return False
    if any(allow.verb == "allow" and named(allow, event) for allow in rules):
        return False
    match event:
        case Connect():
            return not is_loopback(event.reached()) and any(
                t.host == "anything else" and _scoped(rule, t, event) for t in rule.targets
            )
        case ConnectName():
            return any(t.host == "anything else" and _scoped(rule, t, event) for t in rule.targets)
        case Socket():
            return not event.inside and _bare(rule, "anything else")


def connect(control: str, every: list[AnyRule], event: NetworkEvent) -> Said:
    """Return what the page says of a connect."""
    rules = [rule for rule in every if isinstance(rule, Rule) and rule.action == "connect"]
    probe = isinstance(event, Connect) and event.probe
    asserting = tuple(
        sorted(
            rule.id
            for rule in rules
            if rule.verb in ASSERTING
            and (named(rule, event) or caught(rules, rule, event))
            and not probe
        )
    )
    return Said(*_handle_connect(control, rules, every, event), asserting)


def _handle_connect(
    control: str, rules: list[Rule], every: list[AnyRule], event: NetworkEvent
) -> tuple[str, str | None]:
    refusing = [rule for rule in rules if rule.verb in REFUSING]
    if found := [rule for rule in refusing if named(rule, event)]:
        return "refused", _first(found)
    if found := [rule for rule in rules if rule.verb == "allow" and named(rule, event)]:
        return "let-through", _first(found)
    if isinstance(event, Connect) and is_loopback(event.reached()):
        return "let-through", None
    if isinstance(event, Socket) and event.inside:
        return "let-through", None
    if found := [rule for rule in refusing if caught(rules, rule, event)]:
        return "refused", _first(found)
    # "an excepted `unix:` path is let through by that rule's leave"
    leaving = [rule for rule in refusing if isinstance(event, Socket) and excepts(rule, event)]
    if leaving:
        return "let-through", _first(leaving)
    if any(rule.verb == "allow" for rule in rules):
        return "refused", f"{control}.default.connect"
    if isinstance(event, Socket):
        if event.text == "foreign connect":
            trapped = bool(every)  # "as soon as any lane is trapped"
            return (
                ("refused", f"{control}.implied.foreign-abi") if trapped else ("let-through", None)
            )
        if refusing:
            word = "unix" if event.path else "families"
            return "refused", f"{control}.implied.{word}"
    return "let-through", None


# listen ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listen:
    address: Address
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"listen tcp {host}:{self.port}"

    def listened(self, universe: Iterable[Address]) -> Iterator[Address]:
        """Yield every address of the universe that it would listen on."""
        address = self.address
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if int(address) == 0:
            yield from (a for a in universe if address.version == 6 or a.version == 4)
        else:
            yield address


def listen(
    control: str, every: list[AnyRule], event: Listen, universe: tuple[Address, ...]
) -> Said:
    """Return what the page says of a listen."""
    rules = [rule for rule in every if isinstance(rule, Rule) and rule.action == "listen"]
    denies = any(
        isinstance(rule, Rule)
        and rule.action == "connect"
        and rule.verb not in {"observe", "expect no"}
        for rule in every
    )  # an `allow` of connect brings its default, which is a deny
    points = list(event.listened(universe))

    def covers(rule: Rule, targets: tuple[Target, ...], address: Address) -> bool:
        return any(
            t.host != "anything else"
            and names_address(t, rule.verb, "listen", address)
            and t.takes(event.port)
            for t in targets
        )

    def excepted(rule: Rule, address: Address) -> bool:
        return any(
            within(address, _networks(e.host, "listen")) and e.takes(event.port)
            for e in rule.exceptions
        )

    def holds(rule: Rule, address: Address) -> bool:
        return covers(rule, rule.targets, address) and not excepted(rule, address)

    allows = [rule for rule in rules if rule.verb == "allow"]

    def otherwise(rule: Rule, address: Address) -> bool:
        return (
            any(t.host == "anything else" and t.takes(event.port) for t in rule.targets)
            and not is_loopback(address)
            and not excepted(rule, address)
            and not any(holds(allow, address) for allow in allows)
        )

    asserting = tuple(
        sorted(
            rule.id
            for rule in rules
            if rule.verb in ASSERTING and any(holds(rule, a) or otherwise(rule, a) for a in points)
        )
    )
    refusing = [rule for rule in rules if rule.verb in REFUSING]
    wide = [a for a in points if not is_loopback(a)] or points
    if found := [rule for rule in refusing if any(holds(rule, a) for a in points)]:
        return Said("refused", _first(found), asserting)
    if found := [rule for rule in allows if all(holds(rule, a) for a in wide)]:
        return Said("let-through", _first(found), asserting)
    if all(is_loopback(a) for a in points):
        return Said("let-through", None, asserting)
    if found := [rule for rule in refusing if any(otherwise(rule, a) for a in points)]:
        return Said("refused", _first(found), asserting)
    if allows:
        return Said("refused", f"{control}.default.listen", asserting)
    if denies:
        if any(all(excepted(rule, a) for a in wide) for rule in refusing):
            return Said("let-through", "?", asserting)
        return Said("refused", f"{control}.implied.listen", asserting)
    return Said("let-through", None, asserting)


# files -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    operation: str
    path: str
    destination: str = ""
    replaces: bool = False

    def __str__(self) -> str:
        to = f" -> {self.destination}" if self.destination else ""
        return f"{self.operation} {self.path}{to}{' (replaces)' if self.replaces else ''}"


def glob_matches(glob: str, path: str) -> bool:
    """`*` matches inside a component, `**` any number of components, none included."""
    return _components(glob.strip("/").split("/"), path.strip("/").split("/"))


def _components(glob: list[str], path: list[str]) -> bool:
    if not glob:
        return not path
    if glob[0] == "**":
        return any(_components(glob[1:], path[at:]) for at in range(len(path) + 1))
    if not path:
        return False
    pattern = glob[0].replace("[", "[[]")
    return fnmatch.fnmatchcase(path[0], pattern) and _components(glob[1:], path[1:])


def _in_places(kind: str, paths: tuple[str, ...], path: str) -> bool:
    match kind:
        case "under":
            return any(path == p or path.startswith(p.rstrip("/") + "/") for p in paths)
        case "at":
            return any(glob_matches(p, path) for p in paths)
        case "anywhere":
            return True
        case _:
            return False


def place_named(rule: FileRule, path: str) -> bool:
    return _in_places(rule.kind, rule.paths, path) and not _in_places(
        rule.excepted_kind, rule.excepted, path
    )


def place_caught(rules: list[FileRule], rule: FileRule, operation: str, path: str) -> bool:
    """Tell whether `anywhere else` of *rule* holds *path*: it is in no `allow` of that operation."""
    return (
        rule.kind == "anywhere else"
        and not _in_places(rule.excepted_kind, rule.excepted, path)
        and not _allowed(rules, operation, path)
    )


def _allowed(rules: list[FileRule], operation: str, path: str) -> bool:
    return any(r.verb == "allow" and operation in r.covers and place_named(r, path) for r in rules)


@dataclass(frozen=True)
class Attempt:
    """One operation that an event amounts to. *leaves* is where a moved file goes, out of the targets."""

    operation: str
    paths: tuple[str, ...]
    leaves: str = ""

    def inside(self, holds: dict[str, bool], verb: str) -> bool:
        if self.leaves:
            return holds[self.paths[0]] and not holds[self.leaves]
        wanted = all if verb == "allow" else any
        return wanted(holds[path] for path in self.paths)


def amounts_to(event: File) -> list[Attempt]:
    """Return the operations of an event, in the order delete, rename, truncate, write."""
    match event.operation:
        case "rename":
            ends = (event.path, event.destination)
            found = [Attempt("delete", (event.destination,))] * event.replaces
            found.append(Attempt("delete", (event.path,), event.destination))
            return [*found, Attempt("rename", ends), Attempt("write", ends)]
        case "write":
            return [Attempt("write", (event.path,))]
        case other:
            return [Attempt(other, (event.path,)), Attempt("write", (event.path,))]


def files(control: str, every: list[AnyRule], event: File) -> Said:
    """Return what the page says of an attempt at a file."""
    rules = [rule for rule in every if isinstance(rule, FileRule)]
    attempts = amounts_to(event)

    def hit(rule: FileRule, attempt: Attempt, *, catching: bool) -> bool:
        if attempt.operation not in rule.covers:
            return False
        ends = (*attempt.paths, attempt.leaves)
        holds = {
            path: place_caught(rules, rule, attempt.operation, path)
            if catching
            else place_named(rule, path)
            for path in ends
        }
        return attempt.inside(holds, rule.verb)

    def handle(attempt: Attempt) -> tuple[str, str | None]:
        refusing = [r for r in rules if r.verb in REFUSING]
        if found := [r for r in refusing if hit(r, attempt, catching=False)]:
            return "refused", _first(found)
        allows = [r for r in rules if r.verb == "allow"]
        if found := [r for r in allows if hit(r, attempt, catching=False)]:
            return "let-through", _first(found)
        if found := [r for r in refusing if hit(r, attempt, catching=True)]:
            return "refused", _first(found)
        if any(attempt.operation in r.covers for r in allows):
            # "refused when any `allow` of that action exists"; but a move within what is left over is
            # no delete at all
            default = f"{control}.default.{attempt.operation}"
            rest = FileRule(default, "deny", (attempt.operation,), "anywhere else")
            if not attempt.leaves or hit(rest, attempt, catching=True):
                return "refused", default
        return "let-through", None

    asserting = tuple(
        sorted(
            rule.id
            for rule in rules
            if rule.verb in ASSERTING
            and any(hit(rule, a, catching=False) or hit(rule, a, catching=True) for a in attempts)
        )
    )
    own: str | None = None
    for attempt in attempts:
        handling, by = handle(attempt)
        if handling == "refused":
            return Said(handling, by, asserting)
        if attempt.operation == event.operation:
            own = by
    return Said("let-through", own, asserting)
