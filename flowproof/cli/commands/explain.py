"""``flowproof explain``: what a control does to an event and which rules say so, or a code's page."""

from __future__ import annotations

import os
import re

from flowproof.cli.answers import exit_data, json_text
from flowproof.cli.arguments import UsageError
from flowproof.cli.console import printable
from flowproof.exit_codes import ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.ir.evaluate import Evaluation
    from flowproof.ir.events import Event
    from flowproof.ir.model import Policy, Rule
    from flowproof.ir.resolve import Resolved

__all__ = ["run"]

_CODE = re.compile(r"[A-Za-z]{1,3}-?[0-9]{1,4}\Z")


def run(arguments: Arguments, console: Console) -> int:
    """Explain an event under a flow or pack, or a diagnostic code."""
    if len(arguments.words) == 1:
        (word,) = arguments.words
        if not _CODE.match(word):
            raise UsageError(
                "`flowproof explain` needs an event, or a code alone",
                f"write `flowproof explain {word} 'connect tcp 10.0.0.9:443'`",
            )
        return _page(word, arguments, console)
    return _event(arguments, console)


def _page(word: str, arguments: Arguments, console: Console) -> int:
    from flowproof.resources import data, data_path

    code = word.upper().replace("-", "")
    known = sorted(
        name.removesuffix(".md") for name in os.listdir(data_path("docs", "codes")) if "FP" in name
    )
    if code not in known:
        raise UsageError(  # a code two digits off is about something else: no near miss
            f"no diagnostic has the code `{word}`",
            "codes are FP and three digits, as messages print",
        )
    page = data("docs", "codes", f"{code}.md")
    if arguments.json:
        answer = {"code": code, "page": page, "exit": exit_data(ExitCode.OK, ())}
        console.out(json_text(answer))
    else:
        console.out(page)
    return ExitCode.OK


def _event(arguments: Arguments, console: Console) -> int:
    from flowproof.cli.inputs import read
    from flowproof.diagnostics import DiagnosticsError, Report, Source
    from flowproof.ir.evaluate import evaluate
    from flowproof.ir.events import parse_event

    path, *words = arguments.words
    text = " ".join(words)
    report = Report()
    source = Source("event", text)
    event = parse_event(text, report, source.span(0, len(text)))
    given = read(path, report)
    if report.errors or event is None:
        console.diagnose(report.errors)
        return DiagnosticsError(report.errors).exit
    if given.empty:
        console.complain(f"no flow in `{path}`", "a flow is a file `*.flow.yaml`")
        return ExitCode.EVIDENCE
    if len(given.resolved) > 1:
        files = ", ".join(f"`{resolved.file}`" for resolved in given.resolved)
        raise UsageError(
            f"`{path}` holds several flows, and an event has one answer in each", files
        )
    (resolved,) = given.resolved
    policy = resolved.policy
    evaluation = evaluate(policy, event)
    if arguments.json:
        console.out(json_text(_as_data(text, policy, evaluation)))
    else:
        lines = [
            *_as_text(event, policy, evaluation),
            *_bound_later(event, resolved),
            *_supposed(event, policy, evaluation),
        ]
        console.out("\n".join(map(printable, lines)))
    return ExitCode.OK


def _bound_later(event: Event, resolved: Resolved) -> Iterator[str]:
    """Yield that a path can be written in two ways, only one of which is compared before a run binds them."""
    from flowproof.ir.events import FileAttempt, Unix

    if not isinstance(event, Unix | FileAttempt):
        return
    agent = resolved.flow.agent if resolved.flow else None
    folder = os.path.dirname(os.path.abspath(resolved.file))
    cwd = os.path.join(folder, agent.cwd) if agent and agent.cwd is not None else os.getcwd()
    for short, long in (("${cwd}", cwd), ("~", os.path.expanduser("~"))):
        below = os.path.normpath(long) + "/"
        written = re.compile(rf"{re.escape(short)}(?:[/,\s]|\Z)")
        named = any(written.search(rule.sentence) for rule in resolved.policy.rules)
        if named and event.path.startswith(below):
            other = f"{short}/{event.path.removeprefix(below)}"
            yield f"  rules about `{short}` are bound when a run starts: ask for `{other}` as well"


def _supposed(event: Event, policy: Policy, evaluation: Evaluation) -> Iterator[str]:
    """Yield the other answers that hold where a name or a variable stands for the event's address or path."""
    from flowproof.ir.evaluate import evaluate
    from flowproof.ir.events import Unix
    from flowproof.ir.supposed import suppositions

    others: dict[Evaluation, list[str]] = {}
    for written, supposed in suppositions(policy, event):
        other = evaluate(supposed, event)
        if other != evaluation:
            others.setdefault(other, []).append(f"`{written}`")
    what = "path" if isinstance(event, Unix) else "address"
    for other, names in others.items():
        handled = other.handling.replace("-", " ")
        by = f" by `{other.by}`" if other.by else ""
        counting = [f"`{rule_id}`" for rule_id in other.asserting]
        counted = f", and counted by {', '.join(counting)}" if counting else ""
        more = [f"one of {len(names) - 3} more"] if len(names) > 3 else []
        known = " or ".join([*names[:3], *more])
        yield f"  but where {known} stands for this {what} when a run starts: {handled}{by}{counted}"


def _as_data(text: str, policy: Policy, evaluation: Evaluation) -> dict[str, object]:
    named = {*evaluation.asserting, *filter(None, [evaluation.by])}
    return {
        "event": text,
        "handling": evaluation.handling,
        "by": evaluation.by,
        "asserting": list(evaluation.asserting),
        "verdict": evaluation.verdict,
        "control": policy.control,
        "rules": {rule.id: _rule_data(rule) for rule in policy.rules if rule.id in named},
        "exit": exit_data(ExitCode.OK, ()),
    }


def _rule_data(rule: Rule) -> dict[str, object]:
    origin = rule.origin
    return {
        "verb": rule.verb,
        "claim": rule.claim,
        "kind": rule.kind,
        "sentence": rule.sentence,
        "because": rule.reason,
        "file": origin.file if origin else None,
        "line": origin.line if origin else None,
        "column": origin.column if origin else None,
        "pack": origin.pack if origin else None,
    }


def _as_text(event: Event, policy: Policy, evaluation: Evaluation) -> list[str]:
    rules = {rule.id: rule for rule in policy.rules}
    lines = [str(event)]
    if evaluation.by is not None:
        counts = " and counted" if evaluation.by in evaluation.asserting else ""
        handled = evaluation.handling.replace("-", " ")
        lines.append(f"  {handled}{counts} by {_shown(rules[evaluation.by])}")
    elif evaluation.handling == "let-through":
        lines.append("  let through: no rule refuses it")
    lines += [
        f"  counted by {_shown(rules[rule_id])}"
        for rule_id in evaluation.asserting
        if rule_id != evaluation.by
    ]
    control = f"control `{policy.control}`"
    fails = f"makes {control} fail"
    lines.append(f"  an attempt {fails if evaluation.asserting else f'leaves {control} as it is'}")
    return lines


def _shown(rule: Rule) -> str:
    origin = rule.origin
    if origin is None:
        place = "added by flowproof"
    else:
        place = f"{origin.file}:{origin.line}:{origin.column}"
        if origin.pack:
            place += f", pack `{origin.pack}`"
    return f"`{rule.id}` ({place}): {rule.sentence}"
