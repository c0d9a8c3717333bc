"""Random policies, and one comparison of all that a policy becomes with what it means.

The meaning is `ir.evaluate`. What is compared with it has gone all the way: the artifact is read back from its
bytes, addresses are raw socket addresses, the program is interpreted instruction by instruction.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from struct import pack

from authored import FIRST_RULE, resolved

from flowproof.addresses import LAST, canonical
from flowproof.artifact import codec
from flowproof.artifact.model import Artifact, Decision, Program
from flowproof.canonical import canonical as canonical_bytes
from flowproof.canonical import digest
from flowproof.ir.evaluate import Evaluation, evaluate
from flowproof.ir.events import Connect, Event, Family, Foreign, Listen, Unix
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy, refusals
from flowproof.lower.hosts import bound as bind_hosts
from flowproof.run.bind import Bound, bind
from flowproof.run.decide import Decisions
from flowproof.run.sockaddr import Inet, parse
from flowproof.values import replace
from flowproof.verify import bpf
from flowproof.verify.wfp import Attempt, classify

ALLOW, NOTIFY, EPERM = 0x7FFF0000, 0x7FC00000, 0x00050001
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {
        "socket": 41,
        "connect": 42,
        "sendto": 44,
        "sendmsg": 46,
        "listen": 50,
        "socketpair": 53,
        "setsockopt": 54,
        "sendmmsg": 307,
    },
    "aarch64": {
        "socket": 198,
        "socketpair": 199,
        "listen": 201,
        "connect": 203,
        "sendto": 206,
        "setsockopt": 208,
        "sendmsg": 211,
        "sendmmsg": 269,
    },
}
IO_URING = (425, 426, 427)
ROUTING = {  # setsockopt: (level, option) by which what goes out takes another way than its address says
    *((0, 4), (41, 6), (41, 32), (41, 57)),  # routed by source
    *((1, 25), (1, 62), (0, 50), (41, 50), (41, 76)),  # bound to an interface
}
FAMILIES = {2: (1, 2), 10: (1, 2)}  # AF_INET, AF_INET6: SOCK_STREAM, SOCK_DGRAM
PROTOCOLS = {1: (0, 6), 2: (0, 17)}

HOSTS = (
    *("10.0.0.9", "10.0.0.8", "10.0.0.0/24", "10.0.0.0/8", "10.0.0.10/31", "192.0.2.1"),
    *("0.0.0.0/0", "127.0.0.1", "127.0.0.0/8", "127.0.0.8/29", "0.0.0.0", "169.254.169.254"),
    *("169.254.0.0/16", "255.255.255.255", "128.0.0.0/1", "100.64.0.0/10", "[::ffff:10.0.0.9]"),
    *("[2001:db8::1]", "[2001:db8::/32]", "[::/0]", "[::1]", "[::]", "[fd00:ec2::254]"),
    *("[8000::/1]", "loopback", "private", "link-local", "metadata", "multicast"),
)
NAMES = ("api.example.com", "db.example.com")
BOUND = {"api.example.com": ("10.0.0.9", "2001:db8::1"), "db.example.com": ("192.0.2.1",)}
PORTS = ("", "", "", ":443", ":80", ":1-1023", ":{80,443}", ":8080", ":65535", ":1", ":444-8079")
UNIX = ("unix:/run/x.sock", "unix:/run/y.sock", "unix:@session")
Told = tuple[bool, str | None, tuple[str, ...], tuple[str, ...]]
VERBS = ("allow", "allow", "observe", "expect no", "deny", "never")


def random_policy(rng: random.Random, names: bool = True, hosts: tuple[str, ...] = HOSTS) -> Policy:
    """Return a policy that an author could have written: rules with errors are taken out again."""
    rules = {
        f"r{at}": random_sentence(rng, names, hosts)
        for at in rng.sample(range(20), rng.randint(2, 8))
    }
    while True:
        found, report = resolved(rules)
        if found is not None:
            return found
        written = list(rules)
        for error in report.errors:
            assert error.span is not None, error
            rules.pop(written[error.span.line - FIRST_RULE], None)


def random_sentence(rng: random.Random, names: bool = True, hosts: tuple[str, ...] = HOSTS) -> str:
    """Return a rule, not always one that has a meaning."""
    verb = rng.choice(VERBS)
    listen = rng.random() < 0.25
    targets = [_target(rng, verb, listen, names, hosts) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    excepted = ""
    if rng.random() < 0.3:
        excepted = f" except {_target(rng, 'allow', listen, names, hosts)}"
    if listen:
        return f"{verb} listen on {', '.join(targets)}{excepted}"
    protocols = rng.choice(("", "", "", "tcp ", "udp ", "tcp, udp "))
    return f"{verb} connect {protocols}to {', '.join(targets)}{excepted}"


def _target(
    rng: random.Random, verb: str, listen: bool, names: bool, hosts: tuple[str, ...]
) -> str:
    ports = rng.choice(PORTS)
    kind = rng.random()
    if kind < 0.2:
        return f"anything{ports}"
    if kind < 0.4 and verb != "allow":
        return f"anything else{ports}"
    if kind < 0.5 and not listen:
        return rng.choice(UNIX)
    if kind < 0.6 and not listen and names:
        return rng.choice(NAMES) + ports
    host = rng.choice(hosts)
    return host.strip("[]") if host.startswith("[") and not ports else host + ports


class Seen:
    """What a number of policies amounted to."""

    def __init__(self) -> None:
        self.policies = 0
        self.events = 0
        self.windows = 0
        self.bound = 0
        self.programs: set[str] = set()
        self.tables: set[str] = set()
        self.checked: set[tuple[str, bool, bool, bool, bool, bool]] = set()

    def __str__(self) -> str:
        return (
            f"{self.policies} policies, {self.events} events; {len(self.programs)} distinct programs,"
            f" {len(self.tables)} distinct tables; {self.windows} filter sets compared,"
            f" {self.bound} bound by a run as at compile"
        )


def compare(policy: Policy, seen: Seen, rng: random.Random) -> None:
    """Compare everything that *policy* becomes with what it means; raises AssertionError."""
    seen.policies += 1
    judge = Judge(policy)
    artifacts = {}
    for arch in ARCH:
        artifact = codec.loads(codec.dumps(compile_policy(policy, f"linux-{arch}")))
        artifacts[arch] = artifact
        assert artifact.program is not None
        compare_program(artifact.program, policy, judge, seen)
    assert artifacts["x86_64"].tables == artifacts["aarch64"].tables
    artifact = artifacts["x86_64"]
    seen.tables.add(digest(canonical_bytes(codec.to_json(artifact)["tables"])))
    compare_tables(policy, artifact, Decisions(artifact.tables, artifact.rules), judge, seen)
    _compare_windows(policy, judge, seen, rng)
    if artifact.symbols:
        _compare_bound(policy, artifact, seen, rng)


class Judge:
    """The reference meaning, with observing rules told as asserting ones are."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        observing = any(rule.verb == "observe" for rule in policy.rules)
        self._watching = (
            replace(
                policy,
                rules=tuple(
                    replace(rule, verb="expect no") if rule.verb == "observe" else rule
                    for rule in policy.rules
                ),
            )
            if observing
            else None
        )

    def told(self, event: Event) -> Told:
        """Return (refused, by, asserting, observing) of an event."""
        judged, observing = self(event)
        return judged.handling == "refused", judged.by, judged.asserting, observing

    def __call__(self, event: Event) -> tuple[Evaluation, tuple[str, ...]]:
        judged = evaluate(self.policy, event)
        if self._watching is None:
            return judged, ()
        watched = evaluate(self._watching, event)
        return judged, tuple(sorted(set(watched.asserting) - set(judged.asserting)))


def _told(decision: Decision, ids: list[str]) -> Told:
    return (
        decision.refused,
        None if decision.by is None else ids[decision.by],
        tuple(ids[at] for at in decision.asserting),
        tuple(ids[at] for at in decision.observing),
    )


def _same(decision: Decision, artifact: Artifact, judge: Judge, event: Event) -> None:
    have = _told(decision, [rule.id for rule in artifact.rules])
    want = judge.told(event)
    assert have == want, f"{event}: the tables say {have}, the meaning is {want}"


# --- tables


def compare_tables(
    policy: Policy, artifact: Artifact, decisions: Decisions, judge: Judge, seen: Seen
) -> None:
    ids = [rule.id for rule in artifact.rules]
    for event, raws in events(policy, artifact):
        seen.events += 1
        want = judge.told(event)
        for raw in raws:
            decision = decisions.address(*_parsed(event, raw))
            have = _told(decision, ids)
            assert have == want, f"{event}: the tables say {have}, the meaning is {want}"
    if artifact.lanes:
        _compare_special(policy, artifact, decisions, judge)


def _parsed(event: Connect | Listen, raw: bytes) -> tuple[str, int, int]:
    """Return the plane, address and port that a raw address comes to."""
    parsed = parse(raw, bound=isinstance(event, Listen))
    assert isinstance(parsed, Inet), raw
    if isinstance(event, Listen):
        return f"listen{'' if parsed.value else '-any'}{parsed.family}", parsed.value, parsed.port
    return f"{event.protocol}{parsed.family}", parsed.value, parsed.port


def _compare_special(
    policy: Policy, artifact: Artifact, decisions: Decisions, judge: Judge
) -> None:
    _same(decisions.special("families"), artifact, judge, Family("packet"))
    _same(decisions.special("foreign-abi"), artifact, judge, Foreign())
    _same(decisions.special("unix"), artifact, judge, Unix("/run/none.sock"))
    if "connect" in policy.actions:
        # An address of no known kind counts as what has no address at all, and is refused always.
        judged, observing = judge(Foreign())
        written = judged.by if judged.by and ".implied." not in judged.by else None
        unreadable = decisions.special("unreadable")
        ids = [rule.id for rule in artifact.rules]
        assert unreadable.refused
        assert unreadable.by is not None
        assert ids[unreadable.by] == (written or f"{policy.control}.implied.unreadable")
        assert tuple(ids[at] for at in unreadable.asserting) == judged.asserting
        assert tuple(ids[at] for at in unreadable.observing) == observing
    for path, outside, inside in decisions.unix:
        _same(outside, artifact, judge, Unix(path))
        _same(inside, artifact, judge, Unix(path, inside=True))


def events(
    policy: Policy, artifact: Artifact
) -> Iterator[tuple[Connect | Listen, tuple[bytes, ...]]]:
    """Yield an event and the ways to write its raw address, at every boundary of every interval, of tables and IR both."""
    ports = sorted(_port_bounds(policy, artifact))
    for family in (4, 6):
        addresses = sorted(_address_bounds(policy, artifact, family))
        for value in addresses:
            place = canonical(family, value)
            for port in ports:
                raws: tuple[bytes, ...] = (_raw(family, value, port),)
                if family == 4:  # the same address as a v6 socket writes it
                    raws = (*raws, _raw(6, 0xFFFF << 32 | value, port))
                for protocol in ("tcp", "udp"):
                    reached = place
                    if place[1] == 0:  # Linux connects 0.0.0.0 and :: to loopback
                        reached = (place[0], 0x7F000001 if place[0] == 4 else 1)
                    yield Connect(protocol, *reached, port), raws
                yield Listen(*place, port), raws


def _raw(family: int, value: int, port: int) -> bytes:
    if family == 4:
        return pack("=H", 2) + pack(">H", port) + value.to_bytes(4, "big") + bytes(8)
    return pack("=H", 10) + pack(">HI", port, 0) + value.to_bytes(16, "big") + bytes(4)


def _address_bounds(policy: Policy, artifact: Artifact, family: int) -> set[int]:
    firsts = {0}
    for name, plane in artifact.tables.planes.items():
        if name[-1] == str(family):
            firsts.update(plane.starts)
    for rule in policy.rules:
        for region in (rule.targets.region, rule.exceptions.region):
            for _, kin, first, last, _ in region:
                if kin == family:
                    firsts.update((first, last + 1))
    return {
        value for first in firsts for value in (first - 1, first) if 0 <= value <= LAST[family]
    } | {LAST[family]}


def _port_bounds(policy: Policy, artifact: Artifact) -> set[int]:
    firsts = {0, 65536}
    for table in artifact.tables.ports:
        firsts.update(table.starts)
    for rule in policy.rules:
        for found in (rule.targets, rule.exceptions):
            parts = [*(ports for *_, ports in found.region)]
            parts += [scope.ports for scope in (*found.anything, *found.otherwise)]
            parts += [symbol.ports for symbol in found.symbols]
            firsts.update(end for ports in parts for low, high in ports for end in (low, high + 1))
    return {port for first in firsts for port in (first - 1, first) if 0 <= port <= 65535}


# --- the program


def compare_program(program: Program, policy: Policy, judge: Judge, seen: Seen) -> None:
    code = tuple((step.code, step.jt, step.jf, step.k) for step in program.instructions)
    named = digest(repr(code).encode())
    seen.programs.add(named)
    connect = "connect" in policy.actions
    refused = judge(Family("packet"))[0].handling == "refused"
    bare = [
        rule
        for rule in policy.rules
        if rule.action == "connect"
        and rule.verb != "allow"
        and (rule.targets.bare_anything or rule.targets.bare_otherwise)
    ]
    families = refused or bool(bare)
    listen = "listen" in policy.actions or refused
    for reply in program.fixed:
        if reply.special == "families":
            assert reply.errno == ("EPERM" if refused else None)
    wanted = (named, program.arch == "x86_64", connect, listen, families, refused)
    if wanted in seen.checked:  # the same program, and the same is wanted of it
        return
    bpf.check(code)
    for arch, number, arguments in _calls(program.arch):
        answer = bpf.run(code, bpf.data(number, arch, arguments))
        want = _wanted(program.arch, arch, number, arguments, connect, listen, families, refused)
        assert answer.action == want, (program.arch, hex(arch), hex(number), arguments, answer)
        reads = number in ({NUMBERS[program.arch]["sendto"]} if connect else set()) | (
            {NUMBERS[program.arch][call] for call in ("socket", "socketpair")}
            if families
            else set()
        ) | ({NUMBERS[program.arch]["setsockopt"]} if connect else set())
        assert answer.argument_read <= reads, (hex(number), answer)
    seen.checked.add(wanted)


def _wanted(
    native: str,
    arch: int,
    number: int,
    arguments: tuple[int, ...],
    connect: bool,
    listen: bool,
    families: bool,
    refused: bool,
) -> int:
    """Return what the page wants of a call."""
    if not connect and not listen:
        return ALLOW
    if arch != ARCH[native] or (native == "x86_64" and number >= 0x40000000):
        return NOTIFY
    calls = {held: name for name, held in NUMBERS[native].items()}
    if number in IO_URING:
        return EPERM
    match calls.get(number):
        case "connect" | "sendmsg" | "sendmmsg" if connect:
            return NOTIFY
        case "sendto" if connect:
            return NOTIFY if arguments[4] else ALLOW
        case "listen" if listen:
            return NOTIFY
        case "socket" | "socketpair" if families:
            return ALLOW if _passes(*(word & 0xFFFFFFFF for word in arguments[:3])) else NOTIFY
        case "setsockopt" if connect:
            level, option = (word & 0xFFFFFFFF for word in arguments[1:3])
            return EPERM if (level, option) in ROUTING else ALLOW
        case _:
            return ALLOW


def _passes(family: int, kind: int, protocol: int) -> bool:
    if family in FAMILIES:
        return kind & 15 in FAMILIES[family] and protocol in PROTOCOLS[kind & 15]
    return family == 1 or (family == 16 and protocol == 0)


def _calls(native: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield calls at every boundary: of numbers, of architectures, of the words of arguments."""
    edges = {0, 511, 512, 547, 548, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF}
    for number in (*NUMBERS["x86_64"].values(), *NUMBERS["aarch64"].values(), *IO_URING):
        edges.update((number - 1, number, number + 1, number | 0x40000000))
    ones = (1 << 64) - 1
    for number in sorted(edges):
        for arch in (*ARCH.values(), 0x40000003, 0x40000028, 0, 0xFFFFFFFF):
            yield arch, number, (0,) * 6
            yield arch, number, (ones,) * 6
    number = NUMBERS[native]["sendto"]
    for address in (0, 1, 1 << 31, 1 << 32, 1 << 63, 0xFFFFFFFF, 0xFFFFFFFF << 32):
        yield ARCH[native], number, (3, ones, ones, ones, address, ones)
    near = {option + step for _, option in ROUTING for step in (-1, 0, 1)}
    for level in (0, 1, 2, 40, 41, 42, 0xFFFFFFFF):
        for option in sorted({0, 0xFFFFFFFF, *near}):
            for high in (0, 1 << 32, ones ^ 0xFFFFFFFF):
                words = (ones, high | level, high | option)
                yield ARCH[native], NUMBERS[native]["setsockopt"], (*words, 0, 0, 0)
    for call in ("socket", "socketpair"):
        for family in (0, 1, 2, 3, 9, 10, 11, 15, 16, 17, 40, 44, 0xFFFFFFFF):
            for kind in (0, 1, 2, 3, 5, 6, 10, 17, 0x80801, 0x80802, 0x80803, 0xFFFFFFFF):
                for protocol in (0, 1, 5, 6, 7, 16, 17, 18, 58, 132, 136, 255, 262):
                    for high in (0, 1 << 32, ones ^ 0xFFFFFFFF):
                        words = (high | family, high | kind, high | protocol)
                        yield ARCH[native], NUMBERS[native][call], (*words, 0, 0, 0)


# --- Windows


def _compare_windows(policy: Policy, judge: Judge, seen: Seen, rng: random.Random) -> None:
    artifact = codec.loads(codec.dumps(compile_policy(policy, "windows")))
    if refusals(artifact) or any(
        row.refusing == "over-blocks" and not row.subject.startswith("meaning:")
        for row in artifact.fidelity
    ):
        return
    seen.windows += 1
    held = [event for event, _ in events(policy, artifact)]
    compare_filters(artifact, judge, rng.sample(held, min(120, len(held))))


def compare_filters(artifact: Artifact, judge: Judge, held: Iterable[Connect | Listen]) -> None:
    """Compare what the filter set of *artifact* does to the events *held* with what they mean."""
    assert artifact.filters is not None
    for event in held:
        judged, _ = judge(event)
        for attempt in _attempts(event):
            ruling = classify(artifact.filters, attempt)
            passes = judged.handling == "let-through"
            assert ruling.permitted is passes, (str(event), attempt, ruling, judged)
            if judged.by is not None:
                assert judged.by in ruling.rules, (str(event), attempt, ruling, judged)
            others = replace(attempt, sids=("S-1-5-18",))
            assert classify(artifact.filters, others).permitted


def _attempts(event: Connect | Listen) -> Iterator[Attempt]:
    """Yield the ways in which the platform may classify *event*: IPv4 of a dual-stack socket is seen at the
    IPv6 layer, and a listen on every address may have none.
    """
    places: list[tuple[int, int] | None] = [(event.family, event.address)]
    layers = [event.family]
    if event.family == 4:
        places.append((6, 0xFFFF << 32 | event.address))
        layers.append(6)
    if isinstance(event, Listen) and event.address == 0:
        places.append(None)
        layers.append(event.family)
    for place, layer in zip(places, layers, strict=True):
        if isinstance(event, Listen):
            name = f"ALE_AUTH_LISTEN_V{layer}"
            yield Attempt(name, 6, local=place, local_port=event.port)
        else:
            name = f"ALE_AUTH_CONNECT_V{layer}"
            protocol = 6 if event.protocol == "tcp" else 17
            yield Attempt(name, protocol, remote=place, remote_port=event.port)


# --- binding


def _compare_bound(policy: Policy, artifact: Artifact, seen: Seen, rng: random.Random) -> None:
    """Compare what a run binds with the policy in which the names are those addresses."""
    wanted, _ = bind_hosts(policy, BOUND)
    compiled = codec.loads(codec.dumps(compile_policy(policy, "linux-x86_64", hosts=BOUND)))
    judge = Judge(wanted)
    at_compile = Decisions(compiled.tables, compiled.rules)
    compare_tables(wanted, compiled, at_compile, judge, seen)
    _compare_windows(wanted, judge, seen, rng)
    bound = compile_policy(policy, "windows", hosts=BOUND)
    assert bound.filters == compile_policy(wanted, "windows").filters
    if any(symbol.kind != "name" for symbol in artifact.symbols):
        return
    run = bind(artifact, {}, lambda name: BOUND[name], cwd="/")
    assert isinstance(run, Bound), run
    seen.bound += 1
    for event, raws in events(wanted, compiled):
        place = _parsed(event, raws[0])
        have, want = run.decisions.address(*place), at_compile.address(*place)
        assert have == want, f"{event}: a run binds {have}, the compiler {want}"
