"""The ``agent:`` of a flow: the command, and how it is run."""

from __future__ import annotations

import re

from flowproof.near import near_miss
from flowproof.source import keys, shapes
from flowproof.source.documents import Agent
from flowproof.source.nodes import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span
    from flowproof.source.documents import Text

    Node = Scalar | Sequence | Mapping

__all__ = ["DEFAULT_TIMEOUT", "read_agent", "seconds"]

DEFAULT_TIMEOUT = 600.0
"""Ten minutes, in seconds."""

_TIMEOUT = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)(s|m|h)")
_SHELL = frozenset(
    {*("|", "||", "&", "&&", ";"), *("<", "<<", ">", ">>", "2>", "2>>", "&>", "2>&1", ">&2")}
)
"""Words by which a shell joins and redirects, where they stand alone and without quotes."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float | None:
    """Return the seconds of a duration with its unit (`90s`, `10m`, `1.5h`), or None if it is none."""
    match = _TIMEOUT.fullmatch(text)
    length = float(match.group(1)) * _UNITS[match.group(2)] if match else 0.0
    return length or None


def read_agent(node: Node, key: Span, report: Report) -> Agent | None:
    """Return the agent of a flow, or None where nothing of it can be used."""
    found = keys.fields(node, keys.AGENT, "`agent`", key, report)
    if found is None:
        return None
    egress = None
    if "allow_egress" in found:
        egress = shapes.strings(found["allow_egress"][1], "`allow_egress`", report)
    cwd = shapes.string(found["cwd"][1], "`cwd`", report) if "cwd" in found else None
    if cwd is not None and (not cwd.value or "\0" in cwd.value):
        report.error("FP223", "`cwd` is no folder", cwd.span, "`.` is the folder of this file")
    return Agent(
        _command(found["command"][1], report) if "command" in found else (),
        cwd.value if cwd else None,
        _env(found["env"][1], report) if "env" in found else (),
        _timeout(found["timeout"][1], report) if "timeout" in found else DEFAULT_TIMEOUT,
        _expect_exit(found["expect_exit"][1], report) if "expect_exit" in found else 0,
        egress,
        found["allow_egress"][0].span if "allow_egress" in found else None,
        node.span,
    )


def _command(node: Node, report: Report) -> tuple[str, ...]:
    if isinstance(node, Sequence):
        texts = shapes.strings(node, "`command`", report)
        if not node.items:
            _empty(node.span, report)
        elif texts and not texts[0].value:
            _empty(texts[0].span, report)
        for text in texts:
            _no_zero(text, report)
        return tuple(text.value for text in texts)
    if isinstance(node, Mapping):
        way = "write the command line, or a list of its words"
        report.error("FP222", "`command` is a string or a list", node.span, way)
        return ()
    line = shapes.string(node, "`command`", report)
    if line is None:
        return ()
    return _split(line, report)


def _split(line: Text, report: Report) -> tuple[str, ...]:
    import shlex  # noqa: PLC0415  only where a command is written as one string

    _no_zero(line, report)
    try:
        words = tuple(shlex.split(line.value))
    except ValueError:
        _open(line, report)
        return ()
    if not words or not words[0]:
        _empty(line.span, report)
    _no_shell(line, report)
    return words


def _no_shell(line: Text, report: Report) -> None:
    """Warn of a word that only a shell would not hand to the program."""
    import shlex  # noqa: PLC0415  only where a command is written as one string

    try:
        bare = shlex.split(line.value, posix=False)  # a quoted word keeps its quotes, and is meant
    except ValueError:  # quotes inside of words are read otherwise here
        return
    found = next((word for word in bare if word in _SHELL), None)
    if found is not None:
        report.warning(
            "FP227",
            f"`{found}` is a word of the command: no shell reads it",
            line.span,
            "for a shell write a list: `[sh, -c, …]`; to hand the sign to the program, quote it",
        )


def _open(line: Text, report: Report) -> None:
    """Report the quote that a command leaves open, or its last backslash."""
    quote, at, escaped = "", 0, False
    for index, char in enumerate(line.value):
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote, at = char, index
    if quote:
        report.error(
            "FP224",
            f"the command opens a `{quote}` that is not closed",
            line.at(at, at + 1),
            "close it, or write the command as a list of words",
        )
    else:
        last = len(line.value) - 1
        report.error(
            "FP224",
            "the command ends with a backslash that escapes nothing",
            line.at(last, last + 1),
            "take it out, or write the command as a list of words",
        )


def _empty(span: Span, report: Report) -> None:
    report.error("FP224", "the command is empty", span, "name the program to run")


def _no_zero(text: Text, report: Report) -> None:
    if "\0" in text.value:
        report.error("FP224", "a word of a command holds no zero byte", text.span, "take it out")


def _env(node: Node, report: Report) -> tuple[tuple[str, str], ...]:
    if not isinstance(node, Mapping):
        if not getattr(node, "broken", False):
            report.error(
                "FP222", "`env` is a mapping of name to value", node.span, "as in `TZ: UTC`"
            )
        return ()
    found = []
    for key, value in node.entries:
        name = key.text.value
        text = shapes.string(value, f"the variable `{name}`", report)
        if not key.broken and (not name or "=" in name or "\0" in name):
            report.error(
                "FP223",
                f"`{name}` is no name of a variable",
                key.span,
                "a name holds no `=`: `NAME: value`",
            )
        elif text is not None and "\0" in text.value:
            report.error("FP223", f"the variable `{name}` holds a zero byte", text.span)
        elif text is not None:
            found.append((name, text.value))
    return tuple(found)


def _timeout(node: Node, report: Report) -> float:
    way = "write a number and its unit, `s`, `m` or `h`: `90s`, `10m`"
    text = shapes.string(node, "`timeout`", report, way)
    if text is None:
        return DEFAULT_TIMEOUT
    length = seconds(text.value)
    if length is None:
        if re.fullmatch(r"[0-9]{1,7}", text.value) and int(text.value):
            way = f"`{text.value}s` are seconds, `{text.value}m` minutes"
        report.error("FP223", f"`{text.value}` is no timeout", text.span, way)
        return DEFAULT_TIMEOUT
    return length


def _expect_exit(node: Node, report: Report) -> int | None:
    way = "write a number from 0 to 255, or `any`"
    text = shapes.string(node, "`expect_exit`", report, way)
    if text is None:
        return 0
    value = text.value
    if value == "any":
        return None
    if re.fullmatch(r"0|[1-9][0-9]{0,2}", value) and int(value) <= 255:
        return int(value)
    near = near_miss(value, ("any",))
    way = f"did you mean `{near}`? or {way}" if near else way
    report.error("FP223", f"`{value}` is no exit code", text.span, way)
    return 0
