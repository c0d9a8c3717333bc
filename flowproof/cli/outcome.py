"""What a run came to, for its reader: verdicts, claims, and each refusal with the way to allow it."""

from __future__ import annotations

from flowproof.audit.claims import claim_words
from flowproof.cli.console import printable
from flowproof.record.codec import value_to_json
from flowproof.record.evidence import read
from flowproof.record.model import Hits, Verdict
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.cli.console import Console
    from flowproof.cli.rendering import Line
    from flowproof.record.model import RuleRow, RunRecord
    from flowproof.run.recorder import Outcome

__all__ = ["Attempt", "as_data", "attempts_of", "show", "wanted"]

_MOST = 20
"""Attempts that are shown; the record has them all."""

_ALIKE = 4
"""How many rules have to come to the same before they share a line."""

_DOMAIN = 53
"""The port of name servers (IANA, service `domain`)."""

_IN_SENTENCES = ("tcp", "udp", "unix")
"""The protocols whose destinations a sentence can name."""

_COLOURS = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.CAPABILITY_ERROR: "bold yellow",
}


class Attempt(Value):
    """Refused or counted attempts at one destination, as the lanes have them."""

    operation: str | None
    protocol: str | None
    destination: str | None
    port: int | None
    name: str | None
    program: str | None
    note: str | None
    refused: bool
    by: str | None
    counted: tuple[str, ...]
    times: int

    @property
    def target(self) -> str:
        """The destination as a sentence of the language writes it."""
        if self.destination is None:
            what = "files" if self.protocol == "file" else "destinations"
            return f"{what} beyond what is listed"
        if self.protocol == "file":
            return self.destination
        if self.protocol == "unix":
            home = "${home}/"  # as a record puts it back; a policy writes ~/, and `${home}` is a variable
            path = self.destination
            return f"unix:{'~/' + path.removeprefix(home) if path.startswith(home) else path}"
        host = f"[{self.destination}]" if ":" in self.destination else self.destination
        return host if self.port is None else f"{host}:{self.port}"


def attempts_of(lanes: Mapping[str, tuple[Mapping[str, object], ...]]) -> tuple[Attempt, ...]:
    """Return what the lanes list as refused or counted, like attempts together, first ones first."""
    found: dict[tuple[object, ...], Attempt] = {}
    for line in (*lanes.get("connect", ()), *lanes.get("files", ())):
        if line.get("kind") not in ("event", "more"):
            continue
        attempt = _attempt(line)
        alike = (attempt.operation, attempt.protocol, attempt.target, attempt.by, attempt.counted)
        key = (*alike, attempt.note if attempt.protocol == "file" else None)
        known = found.get(key)
        if known is not None:
            attempt = replace(known, times=known.times + attempt.times)
        found[key] = attempt
    return tuple(found.values())


def _attempt(line: Mapping[str, object]) -> Attempt:
    def text(key: str) -> str | None:
        value = line.get(key)
        return value if isinstance(value, str) else None

    def rule(value: object) -> str | None:
        found = value.get("rule") if isinstance(value, dict) else None
        return found if isinstance(found, str) else None

    protocol, destination = text("protocol"), text("destination")
    if "path" in line:
        protocol, destination = (
            "file",
            " -> ".join(filter(None, (text("path"), text("to")))) or None,
        )
    asserting = line.get("asserting")
    count, port = line.get("count", 1), line.get("port")
    return Attempt(
        operation=text("operation"),
        protocol=protocol,
        destination=destination,
        port=port if isinstance(port, int) else None,
        name=text("name"),
        program=text("program"),
        note=text("note"),
        refused=line.get("handling") == "refused",
        by=rule(line.get("by")),
        counted=tuple(
            found
            for found in map(rule, asserting if isinstance(asserting, list) else [])
            if found is not None
        ),
        times=count if isinstance(count, int) else 1,
    )


def wanted(attempt: Attempt, rules: Mapping[str, RuleRow], control: str) -> str | None:
    """Return what would let *attempt* through if it was wanted, or None where nothing can."""
    if attempt.destination is None or attempt.operation in ("socket", "foreign"):
        return None
    if attempt.protocol not in _IN_SENTENCES:
        return None  # another family, or an address that is none: no destination is written for it
    if not _is_sentence(f"allow {_action(attempt)} {attempt.target}"):
        return None  # port 0 is none to write down
    rule = rules.get(attempt.by or "")
    if rule is not None and not _catch_all(rule):
        if rule.place is not None and rule.place.pack:
            return f"pack `{rule.place.pack}` refuses it by name: a flow that wants it does not use the pack"
        if " except " in _rule_proper(rule):
            return f"`{rule.id}` names it: add `, {attempt.target}` to its `except`"
        return f"`{rule.id}` names it: add `except {attempt.target}` there"
    action = _action(attempt)
    target = attempt.target
    if attempt.name and attempt.port is not None:
        target = f"{attempt.name}:{attempt.port}"
    return f"add a rule: `{control}.{_slug(target)}: allow {action} {target}`"


def _action(attempt: Attempt) -> str:
    if attempt.operation == "listen":
        return "listen on"
    return "connect to" if attempt.protocol == "unix" else f"connect {attempt.protocol} to"


def _is_sentence(words: str) -> bool:
    """Say whether *words* are a sentence of the language: no other one is worth a hint."""
    from flowproof.diagnostics import Report, Source
    from flowproof.source.documents import Text
    from flowproof.syntax.parse import parse_sentence

    report, source = Report(), Source("hint", words)
    text = Text(words, source.span(0, len(words)), tuple(range(len(words) + 1)))
    return parse_sentence(text, report) is not None and not report.errors


def _catch_all(rule: RuleRow) -> bool:
    return rule.kind in ("default", "implied") or " else" in _rule_proper(rule)


def _rule_proper(rule: RuleRow) -> str:
    """Return the sentence without its reason, in which any word may stand."""
    return rule.sentence.partition(" because ")[0]


def _slug(text: str) -> str:
    parts = "".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split()
    return "-".join(parts)


def show(file: str, outcome: Outcome, console: Console, *, whole: bool = False) -> None:
    """Print the final report of a run to standard error: standard output is the command's.

    Rules that met nothing and came to the same are put together, unless the *whole* is wanted.
    """
    record = outcome.record
    console.err("")
    lanes = read(outcome.folder).lanes if outcome.folder else {}
    console.lines(_lines(record, attempts_of(lanes), whole=whole))
    said = {f"`{rule.id}`" for rule in record.rules}
    said |= {rule.code.value for rule in record.rules if rule.code}
    for reason in outcome.reasons:
        if reason.partition(": ")[0] not in said:
            console.err(f"  because {printable(reason)}")
    if outcome.folder:
        console.err(f"  record: {printable(outcome.folder)}")
    console.err(f"flowproof: {printable(file)}: exit {outcome.exit_code}")


def _lines(record: RunRecord, attempts: tuple[Attempt, ...], *, whole: bool) -> Iterator[Line]:
    rules = {rule.id: rule for rule in record.rules}
    for control in record.controls:
        yield (
            ("bold", f"{control.id}: "),
            (_COLOURS[control.verdict], control.verdict.value),
            ("", f" ({printable(control.title)})" if control.title else ""),
        )
    alike = {} if whole else _alike(record)
    for rule in record.rules:
        if rule.kind == "implied" and not rule.hits.refused and rule.verdict is Verdict.PASS:
            continue  # the fixed meanings are news only where they met something
        if rule.id not in alike:
            yield from _rule(rule, record)
    yield from _together(alike)
    yield from _codes(record)
    for attempt in attempts[:_MOST]:
        yield from _shown(attempt, rules, record.policy.control)
    if len(attempts) > _MOST:
        yield (("", f"  {len(attempts) - _MOST} more are in the record"),)
    for fault in record.faults:
        yield (("yellow", f"  fault {fault.code.value}: {fault.count}"),)


def _alike(record: RunRecord) -> dict[str, tuple[Verdict | None, str]]:
    """Return the rules that met nothing, with what they came to, where several came to the same.

    A rule that failed, was not shown, or met something always has a line of its own; where the command
    did not even start, what keeps all of them from being shown is said once.
    """
    found: dict[tuple[Verdict | None, str], list[str]] = {}
    for rule in record.rules:
        if rule.hits != Hits():
            continue
        held = rule.verdict in (None, Verdict.PASS) and rule.kind != "implied"
        if held or (record.blocked and rule.verdict is Verdict.CAPABILITY_ERROR):
            found.setdefault((rule.verdict, _came_to(rule, record)), []).append(rule.id)
    return {
        rule: came_to for came_to, rules in found.items() if len(rules) >= _ALIKE for rule in rules
    }


def _together(alike: Mapping[str, tuple[Verdict | None, str]]) -> Iterator[Line]:
    for came_to in dict.fromkeys(alike.values()):
        verdict, words = came_to
        count = sum(other == came_to for other in alike.values())
        style = _COLOURS[verdict] if verdict else ""
        said = "" if verdict is None else f" {verdict.value},"
        yield (
            ("", f"  {count} rules that met nothing:"),
            (style, said),
            ("", f" {printable(words)}"),
            ("dim", " (`--verbose` lists them)"),
        )


def _came_to(rule: RuleRow, record: RunRecord) -> str:
    return f"not shown ({rule.code.value})" if rule.code else claim_words(rule, record.through)


def _rule(rule: RuleRow, record: RunRecord) -> Iterator[Line]:
    """Yield one line for a rule that held, and its sentence as well for one that did not."""
    verdict = "" if rule.verdict is None else f" {rule.verdict.value},"
    style = _COLOURS[rule.verdict] if rule.verdict else ""
    words = _came_to(rule, record)
    place = f" ({_place(rule)})" if rule.place else ""
    yield (("", f"  {rule.id}:"), (style, verdict), ("", f" {printable(words)}"), ("dim", place))
    if rule.verdict is Verdict.FAIL:
        yield (("dim", f"      {printable(rule.sentence)}"),)


def _codes(record: RunRecord) -> Iterator[Line]:
    """Yield why something was not shown and what to do, once per code and not once per rule."""
    found = [(rule.code, rule.explanation) for rule in record.rules]
    found += [(control.code, control.explanation) for control in record.controls]
    for code, explanation in dict.fromkeys(found):
        if code is not None:
            yield (("yellow", f"  {code.value}: "), ("", printable(explanation)))


def _place(rule: RuleRow) -> str:
    assert rule.place is not None
    return f"{printable(rule.place.file)}:{rule.place.line}"


def _shown(attempt: Attempt, rules: Mapping[str, RuleRow], control: str) -> Iterator[Line]:
    what = "refused" if attempt.refused else "let through"
    operation = "" if attempt.operation in (None, "connect", "unix") else f"{attempt.operation} "
    protocol = f"{attempt.protocol} " if attempt.protocol in ("tcp", "udp") else ""
    name = f" ({attempt.name})" if attempt.name else ""
    if attempt.port == _DOMAIN and attempt.operation != "listen":
        name += " (DNS)"  # what fails then is a lookup, wherever the program meant to connect
    times = "" if attempt.times == 1 else f", {attempt.times} times"
    program = f" by {attempt.program}" if attempt.program else ""
    note = f", {attempt.note}" if attempt.note else ""
    line = f"{operation}{protocol}{attempt.target}{name}{program}{times}{note}"
    yield (("red" if attempt.refused else "yellow", f"  {what}: "), ("", printable(line)))
    for rule_id in dict.fromkeys(filter(None, (attempt.by, *attempt.counted))):
        rule = rules.get(rule_id)
        place = f"{_place(rule)}: " if rule is not None and rule.place else ""
        yield (("dim", f"      {place}`{rule_id}` {_what_it_does(rule_id, attempt)}"),)
    if attempt.refused:
        way = wanted(attempt, rules, control)
        if way:
            yield (("", f"      if it was wanted: {printable(way)}"),)


def _what_it_does(rule_id: str, attempt: Attempt) -> str:
    """Return what a rule that handled or counted *attempt* did with it."""
    if rule_id in attempt.counted:
        return "counts it"
    if attempt.operation == "probe":
        return "refuses it; a UDP connect by itself sends nothing and is not counted"
    return "refuses it" if attempt.refused else "lets it through"


def as_data(file: str, control_id: str, outcome: Outcome) -> dict[str, object]:
    """Return the outcome as JSON-shaped data; the record in full lies in its folder."""
    record = outcome.record
    rules = {rule.id: rule for rule in record.rules}
    lanes = read(outcome.folder).lanes if outcome.folder else {}
    control = record.controls[0]
    return {
        "file": file,
        "control": control_id,
        "folder": outcome.folder,
        "exit": {"code": int(outcome.exit_code), "because": list(outcome.reasons)},
        "run": record.run.id,
        "proof": record.policy.proof,
        "verdict": control.verdict.value,
        "code": control.code.value if control.code else None,
        "explanation": control.explanation,
        "rules": [
            {
                "id": rule.id,
                "claim": rule.claim,
                "verdict": rule.verdict.value if rule.verdict else None,
                "code": rule.code.value if rule.code else None,
                "shown": claim_words(rule, record.through),
                "hits": value_to_json(rule.hits),
                "place": value_to_json(rule.place),
            }
            for rule in record.rules
        ],
        "attempts": [
            {
                **{field: value_to_json(getattr(attempt, field)) for field in Attempt.__fields__},
                "wanted": wanted(attempt, rules, record.policy.control)
                if attempt.refused
                else None,
            }
            for attempt in attempts_of(lanes)
        ],
    }
