"""Listings that stay still: a rule more changes the lines that are about it, and no others.

What may change without naming the rule is listed here and nowhere else: the digest of the meaning, where later
rules are written, the program with its summary where the dispatch tree is another one, the fixed meanings that
come into force or go, counts, and rows of decisions that lie where a decision changed or border on it.
"""

from __future__ import annotations

import difflib
import ipaddress
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from authored import FIRST_RULE, policy, resolved
from comparison import random_policy, random_sentence

from flowproof.addresses import LAST
from flowproof.artifact.model import Artifact
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy
from flowproof.lower.listing import decided
from flowproof.lower.rows import rows_of
from flowproof.lower.seccomp.listing import listing as linux_listing
from flowproof.lower.wfp.listing import listing as windows_listing

TARGETS = ("linux-x86_64", "windows")
POLICIES = 100
PLANES = {
    "connect, IPv4": {"tcp": "tcp4", "udp": "udp4"},
    "connect, IPv6": {"tcp": "tcp6", "udp": "udp6"},
    "listen, IPv4": {"": "listen4"},
    "listen, IPv6": {"": "listen6"},
    "listen on 0.0.0.0 (every IPv4 address)": {"": "listen-any4"},
    "listen on :: (every address)": {"": "listen-any6"},
}
ROW = re.compile(
    r"(?P<protocols>(?:tcp|udp|tcp udp)(?= )|)\s*(?P<where>anywhere|\S+ - \S+|\S+)\s+"
    r"(?P<ports>any port|ports? \d+(?:-\d+)?)\s+(?P<words>(?:refused|let through) by .+)"
)
Box = tuple[int, int, int, int]  # first and last address, first and last port
Sections = dict[str, list[str]]


def _listing(artifact: Artifact) -> str:
    return (windows_listing if artifact.target == "windows" else linux_listing)(artifact)


def _sections(text: str) -> Sections:
    """Return the lines of each section, those of decisions by plane."""
    found: Sections = {}
    for block in text.split("\n\n"):
        head, *lines = block.rstrip("\n").split("\n")
        name = head.split(" ", maxsplit=1)[0].rstrip(",:")
        if name == "control":
            found["heading"] = [head, *lines]
            continue
        found[f"{name} head"] = [head]
        for line in lines:
            if name == "Decisions" and not line.startswith("    "):
                head = line.strip()
            found.setdefault(head if name == "Decisions" else name, []).append(line)
    return found


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield what a reader of a diff sees: lines taken out and put in, moved ones too."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, low, high, start, end in matcher.get_opcodes():
        if kind != "equal":
            yield from before[low:high]
            yield from after[start:end]


def _box(row: re.Match[str], family: int) -> Box:
    where, ports = row["where"], row["ports"]
    first, last = 0, LAST[family]
    if " - " in where:
        first, last = (int(ipaddress.ip_address(end)) for end in where.split(" - "))
    elif where != "anywhere":
        network = ipaddress.ip_network(where)
        first, last = int(network[0]), int(network[-1])
    if ports == "any port":
        return first, last, 0, 65535
    low, _, high = ports.split()[1].partition("-")
    return first, last, int(low), int(high or low)


def _plane_words(artifact: Artifact, name: str) -> Iterator[tuple[Box, str]]:
    words = [
        decided(entry.decide(artifact.rules), artifact.rules) for entry in artifact.tables.entries
    ]
    plane = artifact.tables.planes[name]
    ends = (*plane.starts[1:], LAST[int(name[-1])] + 1)
    for first, end, cell in zip(plane.starts, ends, plane.cells, strict=True):
        table = artifact.tables.ports[cell]
        for low, stop, entry in zip(
            table.starts, (*table.starts[1:], 65536), table.entries, strict=True
        ):
            yield (first, end - 1, low, stop - 1), words[entry]


def _differing(before: Artifact, after: Artifact, name: str) -> list[Box]:
    """Return the boxes of a plane in which the decisions differ."""
    held = [list(_plane_words(artifact, name)) for artifact in (before, after)]
    return [
        (max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), min(a[3], b[3]))
        for a, said in held[0]
        for b, says in held[1]
        if said != says and a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]
    ]


def _touches(one: Box, other: Box, border: int) -> bool:
    """Tell whether two boxes share a point, or with a *border* of 1 lie side by side."""
    return (
        one[0] <= other[1] + border
        and other[0] <= one[1] + border
        and one[2] <= other[3] + border
        and other[2] <= one[3] + border
    )


class _Two:
    """A policy and the one with a rule more, for one target."""

    def __init__(self, before: Policy, after: Policy, target: str) -> None:
        self.artifacts = compile_policy(before, target), compile_policy(after, target)
        self.sections = tuple(_sections(_listing(artifact)) for artifact in self.artifacts)
        ids = [{rule.id for rule in artifact.rules} for artifact in self.artifacts]
        self.new = ids[0] ^ ids[1]  # the rule, and what is implied where it is there or not
        programs = [
            None
            if (held := artifact.program) is None
            else ([(s.code, s.jt, s.jf, s.k) for s in held.instructions], held.fixed)
            for artifact in self.artifacts
        ]
        self.same_program = programs[0] == programs[1]
        self.seen: Counter[str] = Counter()

    def check(self) -> None:
        for name in {**self.sections[0], **self.sections[1]}:
            before, after = (held.get(name, []) for held in self.sections)
            for line in _changed(before, after):
                kind = self._kind(name, line, after)
                assert kind, f"{name}: {line.strip()}\nis about none of {sorted(self.new)}"
                self.seen[kind] += 1

    def _kind(self, section: str, line: str, after: Sequence[str]) -> str | None:
        """Return why *line* may change, or None."""
        if any(re.search(rf"(?<![\w.-]){re.escape(one)}(?![\w-]|\.\w)", line) for one in self.new):
            return "names the rule"
        match section:
            case "heading":
                return "digest" if line.startswith("meaning ") else None
            case "Written":
                return "place"
            case "Fidelity":
                return "fixed meaning" if " meaning:" in line or ".implied." in line else None
            case "Differences" if " meaning:" in line:
                return "fixed meaning"
            case "Differences":
                return "difference" if self._about_listens() else None
            case "Program" | "Program head" | "In" | "Answered" | "Answered head":
                return None if self.same_program else "dispatch tree"
            case "Filters" if any(
                derived in line for derived in ("no rule (", "RECV_ACCEPT", ".implied.listen:")
            ):
                # one filter lets in for all listens, and only where something is refused
                return "layer" if self._layer(line.split(maxsplit=1)[0]) else None
            case "Filters" if line.endswith("protocol 0-5 | 7-16 | 18-255"):
                return "decision" if self._special() else None  # other protocols are other families
            case "Filters" if line.strip().startswith("layer "):
                return "section"  # the heads of columns: there was no filter before
            case "Filters head":
                return "count"
            case (
                "Rules head"
                | "Fidelity head"
                | "Differences head"
                | "Decisions head"
                | "Bound head"
                | "Written head"
            ):
                return "section" if not self._both(section) else None
            case _ if section in PLANES:
                return self._decision(section, line, after)
            case "besides" | "unix sockets":
                return "decision" if line.strip() in PLANES or self._special() else None
        return None

    def _both(self, section: str) -> bool:
        return all(section in held for held in self.sections)

    def _about_listens(self) -> bool:
        """Tell whether a rule about listens is new or gone, one of the compiler's among them: what a target
        makes of listens that it cannot tell apart is another thing then.
        """
        return any(
            rule.action == "listen" and rule.id in self.new
            for artifact in self.artifacts
            for rule in artifact.rules
        )

    def _layer(self, name: str) -> bool:
        """Tell whether what a layer is there for has changed: its rules, the listens, or the fixed meanings."""
        about: list[set[str]] = []
        for artifact in self.artifacts:
            assert artifact.filters is not None
            filters = artifact.filters["filters"]
            assert isinstance(filters, list | tuple)
            about.append({one["layer"] for one in filters})
            about[-1] |= {row.subject for row in artifact.fidelity if "meaning:" in row.subject}
            about[-1] |= {
                rule.id
                for rule in artifact.rules
                if rule.id in self.new and rule.action == "listen" and "CONNECT" not in name
            }
            about[-1] |= {
                rule
                for one in filters
                if one["layer"] == name
                for rule in one["rules"]
                if rule in self.new
            }
        return about[0] != about[1]

    def _special(self) -> bool:
        """Tell whether what has no address is decided otherwise."""
        told = []
        for held in self.artifacts:
            words = [decided(entry.decide(held.rules), held.rules) for entry in held.tables.entries]
            told.append(
                (
                    {name: words[at] for name, at in held.tables.special.items()},
                    [(row.path, words[row.outside], words[row.inside]) for row in held.tables.unix],
                )
            )
        return told[0] != told[1]

    def _decision(self, section: str, line: str, after: Sequence[str]) -> str | None:
        if line.strip() == section:
            return "section" if not self._both(section) else None
        row = ROW.fullmatch(line.strip())
        assert row is not None, line
        planes = PLANES[section]
        family = 4 if "IPv4" in section else 6
        box = _box(row, family)
        # a row of both protocols is one of each when one of them is decided otherwise
        boxes = [one for name in planes.values() for one in _differing(*self.artifacts, name)]
        if any(_touches(box, one, 0) for one in boxes):
            return "decided otherwise"
        if any(_touches(box, one, 1) for one in boxes):
            return "cut or joined by the rule"
        usual = [[one for one in held[section] if " anywhere " in one] for held in self.sections]
        return "anywhere" if usual[0] != usual[1] else None


def _policies() -> Iterator[tuple[Policy, Policy, str]]:
    """Yield random policies, each with a random rule more and the place that it is put in."""
    for seed in range(POLICIES):
        rng = random.Random(seed)
        before = random_policy(rng)
        rules = {rule.id: rule.sentence for rule in before.rules if rule.kind == "authored"}
        if not rules:
            continue
        for _ in range(20):
            at = rng.randint(0, len(rules))
            named = f"{rng.choice('amz')}{'x' * rng.randint(0, 30)}.new"
            listed = list(rules.items())
            listed.insert(at, (named, random_sentence(rng)))
            held = dict(listed)
            after, _ = resolved(held)
            known, _ = resolved(rules)
            if after is not None and known is not None:
                yield known, after, held[named]
                break


@pytest.mark.timeout(300)
@pytest.mark.parametrize("target", TARGETS)
def test_a_rule_more_changes_only_lines_that_are_about_it(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: Counter[str] = Counter()
    count = 0
    for before, after, sentence in _policies():
        two = _Two(before, after, target)
        try:
            two.check()
        except AssertionError as wrong:
            raise AssertionError(f"{sentence}: {wrong}") from wrong
        seen += two.seen
        count += 1
    assert count > POLICIES // 2
    with capsys.disabled():
        told = ", ".join(f"{times} {kind}" for kind, times in seen.most_common())
        print(f"\n{target}: {count} policies with a rule more; lines that changed: {told}")


def test_one_address_more_is_four_lines_more_and_a_digest() -> None:
    rules = {
        "api": "allow connect tcp to 10.0.0.0/24:443",
        "rest": "deny connect to anything else",
        "srv": "allow listen on anything:8080",
    }
    more = {"api": rules["api"], "cc-the-database": "allow connect tcp to 10.9.0.1:5432", **rules}
    before, after = (
        _listing(compile_policy(policy(held), "linux-x86_64")).splitlines()
        for held in (rules, more)
    )
    lines = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    moved = [line for line in lines if re.fullmatch(r"[+-]   \S+: p\.policy\.yaml:\d+:\d+", line)]
    others = [line for line in lines if line not in moved and not line[2:].startswith("meaning ")]
    (place,) = (line for line in moved if "cc-the-database" in line)
    assert f" p.policy.yaml:{FIRST_RULE + 1}:" in place
    assert [" ".join(line.split()) for line in others] == [
        "+ none authored cc-the-database: allow connect tcp to 10.9.0.1:5432 [connect]",
        "+ exact — cc-the-database",
        "+ tcp 10.9.0.1 port 5432 let through by cc-the-database",
    ]


def _first_fit(lines: Sequence[str], family: int, protocol: str, address: int, port: int) -> str:
    for line in lines:
        row = ROW.fullmatch(line)
        assert row is not None, line
        first, last, low, high = _box(row, family)
        ours = protocol in row["protocols"].split() or not protocol
        if ours and first <= address <= last and low <= port <= high:
            return row["words"]
    raise AssertionError("no row fits")


@pytest.mark.timeout(120)
def test_the_first_row_that_fits_says_what_the_tables_say() -> None:
    compared = 0
    for seed in range(POLICIES):
        artifact = compile_policy(random_policy(random.Random(seed)), "linux-x86_64")
        known = artifact.rules
        words = [decided(entry.decide(known), known) for entry in artifact.tables.entries]
        for section, planes in PLANES.items():
            family = 4 if "IPv4" in section else 6
            lines = list(rows_of(artifact.tables, [(n, p) for p, n in planes.items()], words))
            for protocol, name in planes.items():
                for (first, last, low, high), said in _plane_words(artifact, name):
                    for address, port in ((first, low), (last, high), (first, high), (last, low)):
                        compared += 1
                        assert _first_fit(lines, family, protocol, address, port) == said
    assert compared > 10_000


def test_a_policy_of_many_rules_has_a_line_for_each_in_every_part() -> None:
    rules = {f"r{at:03}": f"never connect to 10.0.{at}.1" for at in range(200)}
    text = _listing(compile_policy(policy(rules), "linux-x86_64"))
    found = _sections(text)
    for section in ("Rules", "Fidelity", "Written"):
        held = found[section]
        for rule in rules:
            assert sum(f"{rule}:" in f"{line}:" for line in held) == 1, (section, rule)
    rows = [line for line in found["connect, IPv4"] if "counted by r" in line]
    assert len(rows) == len(rules)
    assert all(left != right for left, right in pairwise(rows))
