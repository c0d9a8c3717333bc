"""Random rules over a small universe, the files that hold them, and what the compiler makes of those."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from pathlib import Path

from hypothesis import strategies as st
from language_model import (
    Address,
    AnyRule,
    Connect,
    ConnectName,
    File,
    FileRule,
    Listen,
    Ports,
    Rule,
    Socket,
    Target,
)

from flowproof.diagnostics import Report
from flowproof.ir.model import Policy
from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load

VERBS = ("allow", "observe", "expect no", "deny", "never")

# Both sides of every border that a target below has
ADDRESSES: tuple[Address, ...] = tuple(
    ipaddress.ip_address(text)
    for text in (
        *("10.0.0.1", "10.0.0.2", "10.0.0.255", "10.0.1.0", "10.255.255.255", "11.0.0.0"),
        *("100.100.100.200", "100.64.0.1", "168.63.129.16", "192.0.2.1", "224.0.0.1", "239.1.1.1"),
        *("126.0.0.1", "127.0.0.1", "127.0.0.2", "127.255.255.255", "128.0.0.0"),
        *("169.254.169.254", "169.254.0.1", "255.255.255.255", "0.0.0.1"),
        *("::1", "::2", "fd00:ec2::254", "fd00::1", "fe80::1", "ff02::1", "2001:db8::1"),
        *("2001:db8:0:1::", "2001:db9::"),
    )
)
UNSPECIFIED = tuple(ipaddress.ip_address(text) for text in ("0.0.0.0", "::"))
MAPPED = ipaddress.ip_address("::ffff:10.0.0.1")
PORTS = (79, 80, 81, 443)
NAMES = ("api.example.com", "a.api.example.com", "example.com", "other.example")
SOCKETS = (
    Socket("connect unix:/run/x.sock", "/run/x.sock"),
    Socket("inside unix:/run/x.sock", "/run/x.sock", inside=True),
    Socket("connect unix:/run/y.sock", "/run/y.sock"),
    Socket("connect unix:@bus", "@bus"),
    Socket("socket packet"),
    Socket("socket other"),
    Socket("foreign connect"),
)
PATHS = ("/srv/a", "/srv/a/b", "/srv/keep/a", "/srv/x.txt", "/srv", "/srvx/a", "/tmp/a", "/etc/.c")

# What may be excepted from a host, besides the host itself with some of its ports
_INSIDE: dict[str, tuple[str, ...]] = {
    "10.0.0.0/8": ("10.0.0.0/24", "10.0.0.1", "::ffff:10.0.0.2"),
    "10.0.0.0/24": ("10.0.0.1", "10.0.0.128/25"),
    "0.0.0.0/0": ("10.0.0.0/8", "192.0.2.1", "128.0.0.0/1"),
    "::/0": ("fc00::/7", "2001:db8::1", "2001:db8::/48"),
    "private": ("10.0.0.0/8", "100.64.0.0/10", "fd00::/8", "10.0.0.1", "private"),
    "link-local": ("169.254.0.0/24", "fe80::1"),
    "metadata": ("169.254.169.254", "fd00:ec2::254"),
    "multicast": ("224.0.0.1", "255.255.255.255"),
    "loopback": ("127.0.0.1", "::1", "127.0.0.0/9", "0.0.0.0"),
    "127.0.0.0/8": ("127.0.0.2",),
    "anything": (
        "10.0.0.0/8",
        "private",
        "metadata",
        "loopback",
        "169.254.169.254",
        "2001:db8::/48",
    ),
    "anything else": ("10.0.0.0/8", "private", "metadata", "loopback", "192.0.2.1"),
}
_NETWORK_HOSTS = (
    *_INSIDE,
    *(
        "10.0.0.1",
        "10.0.0.2",
        "192.0.2.1",
        "127.0.0.1",
        "127.0.0.0/9",
        "126.0.0.0/7",
        "::1",
        "::/127",
    ),
    *(
        "::ffff:10.0.0.1",
        "::ffff:10.0.0.0/104",
        "169.254.169.254",
        "169.254.0.0/16",
        "0.0.0.0",
        "::",
    ),
    *("2001:db8::1", "2001:db8::/32", "fd00:ec2::254"),
)
_NAME_HOSTS = ("api.example.com", "*.example.com", "*.api.example.com")
_UNIX_HOSTS = ("unix:/run/x.sock", "unix:@bus")

_ports = st.sampled_from(
    ((), (), ((80, 80),), ((80, 80), (443, 443)), ((1, 80),), ((81, 65535),), ((79, 443),))
)


def _narrower(ports: Ports) -> st.SearchStrategy[Ports]:
    """Ports within *ports*, one of them at least."""
    if not ports:
        return _ports
    one: Ports = ((ports[0][0], ports[0][0]),)
    return st.sampled_from((ports, one))


@st.composite
def connect_rules(draw: st.DrawFn, rule_id: str) -> Rule:
    """A connect rule whose `except` lies inside its targets."""
    verb = draw(st.sampled_from(VERBS))
    protocols = draw(st.sampled_from(((), (), ("tcp",), ("udp",), ("tcp", "udp"))))
    hosts: list[str] = [*_NETWORK_HOSTS, *_NAME_HOSTS, *(() if protocols else _UNIX_HOSTS)]
    if verb == "allow":
        hosts.remove("anything else")
    chosen = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True))
    targets = tuple(
        Target(host, () if host.startswith("unix:") else draw(_ports)) for host in chosen
    )
    return Rule(
        rule_id, verb, "connect", targets, draw(_exceptions(targets, verb, protocols)), protocols
    )


@st.composite
def _exceptions(
    draw: st.DrawFn,
    targets: tuple[Target, ...],
    verb: str,
    protocols: tuple[str, ...],
    *,
    listen: bool = False,
) -> tuple[Target, ...]:
    found: list[Target] = []
    if not draw(st.booleans()):
        return ()
    for target in targets:
        inner = list(_INSIDE.get(target.host, ()))
        if target.host.startswith("unix:"):
            continue
        if not listen and target.host in {"anything", "anything else"}:
            inner += _NAME_HOSTS
            if verb != "allow" and not protocols and not target.ports:
                inner += _UNIX_HOSTS
        if target.host in {*_NAME_HOSTS, "anything", "10.0.0.1"}:
            inner += [target.host]
        if listen:
            inner = [host for host in inner if host != "0.0.0.0"]
        for host in (
            draw(st.lists(st.sampled_from(inner), max_size=2, unique=True)) if inner else ()
        ):
            ports = () if host.startswith("unix:") else draw(_narrower(target.ports))
            found.append(Target(host, ports))
    return tuple(dict.fromkeys(found))


@st.composite
def listen_rules(draw: st.DrawFn, rule_id: str) -> Rule:
    verb = draw(st.sampled_from(VERBS))
    hosts = [host for host in _NETWORK_HOSTS if verb != "allow" or host != "anything else"]
    chosen = draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True))
    targets = tuple(Target(host, draw(_ports)) for host in chosen)
    return Rule(rule_id, verb, "listen", targets, draw(_exceptions(targets, verb, (), listen=True)))


_UNDER: dict[str, tuple[str, ...]] = {
    "/srv": ("/srv/keep", "/srv/a"),
    "/srv/a": ("/srv/a/b",),
    "/": ("/srv", "/tmp"),
    "/tmp": (),
}
_AT = ("/srv/*", "/srv/*.txt", "/srv/**", "/**/a", "/srv/**/b", "/etc/*", "/*/a")


@st.composite
def file_rules(draw: st.DrawFn, rule_id: str) -> FileRule:
    verb: str = draw(st.sampled_from(VERBS))
    operations = draw(
        st.lists(
            st.sampled_from(("delete", "rename", "truncate", "write", "destroy")),
            min_size=1,
            max_size=2,
            unique=True,
        )
    )
    if "destroy" in operations and operations != ["destroy", "write"]:
        operations = ["destroy"]
    kinds = ["under", "under", "at", "anywhere"] + ["anywhere else"] * (verb != "allow")
    kind = draw(st.sampled_from(kinds))
    paths: tuple[str, ...] = ()
    inner: list[str] = []
    excepted_kind = ""
    excepted: tuple[str, ...] = ()
    if kind == "under":
        paths = tuple(
            draw(st.lists(st.sampled_from(list(_UNDER)), min_size=1, max_size=2, unique=True))
        )
        inner = [each for path in paths for each in _UNDER[path]]
    elif kind == "at":
        paths = tuple(draw(st.lists(st.sampled_from(_AT), min_size=1, max_size=2, unique=True)))
    else:
        inner = ["/srv", "/srv/keep", "/tmp"]
    narrowed: bool = draw(st.booleans())
    if inner and narrowed:
        excepted_kind, excepted = "under", (draw(st.sampled_from(inner)),)
    return FileRule(rule_id, verb, tuple(operations), kind, paths, excepted_kind, excepted)


@st.composite
def rule_lists(draw: st.DrawFn, *kinds: str, most: int = 5) -> list[AnyRule]:
    """Rules of the given *kinds* (connect, listen, files), ids in an order of their own."""
    makers: dict[str, Callable[[str], st.SearchStrategy[AnyRule]]] = {
        "connect": connect_rules,
        "listen": listen_rules,
        "files": file_rules,
    }
    ids = draw(st.permutations([f"r.{letter}" for letter in "abcdefg"[:most]]))
    count = draw(st.integers(1, most))
    return [draw(makers[draw(st.sampled_from(kinds))](rule_id)) for rule_id in ids[:count]]


addresses = st.sampled_from((*ADDRESSES, *UNSPECIFIED, MAPPED))
protocols = st.sampled_from(("tcp", "udp"))
connects = st.builds(Connect, protocols, addresses, st.sampled_from(PORTS))
CONNECTS: tuple[Connect | ConnectName | Socket, ...] = (
    *(
        Connect(p, a, port)
        for p in ("tcp", "udp")
        for a in (*ADDRESSES, *UNSPECIFIED, MAPPED)
        for port in PORTS
    ),
    *(ConnectName(p, name, port) for p in ("tcp", "udp") for name in NAMES for port in PORTS),
    *SOCKETS,
)
LISTENS = tuple(Listen(a, port) for a in (*ADDRESSES, *UNSPECIFIED, MAPPED) for port in PORTS)
FILES: tuple[File, ...] = (
    *(File(operation, path) for operation in ("delete", "truncate", "write") for path in PATHS),
    *(
        File("rename", path, to, replaces)
        for path in PATHS
        for to in PATHS
        for replaces in (False, True)
        if path != to
    ),
)


def rules_text(rules: Iterable[AnyRule], indent: str) -> str:
    # in double quotes, which no sentence here holds: `… to ::` would end as a key of YAML's
    return "".join(f'{indent}{rule.id}: "{rule.sentence}"\n' for rule in rules)


def flow_text(rules: Iterable[AnyRule], uses: Iterable[str] = (), control: str = "c") -> str:
    listed = ", ".join(uses)
    return (
        f"name: T\nagent:\n  command: 'true'\ncontrol:\n  id: {control}\n  uses: [{listed}]\n"
        f"  rules:\n{rules_text(rules, '    ') or '    {}'}"
    )


def pack_text(rules: Iterable[AnyRule], name: str = "pk") -> str:
    return f"policy: {name}\nrules:\n{rules_text(rules, '  ') or '  {}'}"


def write(folder: Path, **texts: str) -> None:
    """Write files; a keyword `x_flow` is the file `x.flow.yaml`."""
    for name, text in texts.items():
        (folder / (name.replace("_", ".") + ".yaml")).write_text(text, encoding="utf-8")


def policy_at(path: Path) -> tuple[Policy | None, Report]:
    """Return the policy of a flow or pack as `check` reads it, and what it had to say."""
    report = Report()
    suite = load(str(path), report)
    resolved = () if suite is None else resolve_suite(suite, report)
    return (resolved[0].policy if resolved else None), report
