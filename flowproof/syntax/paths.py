"""Paths, globs and socket paths as a control writes them, normalised by text alone."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span

__all__ = ["normalise", "unix"]

_ROOT = re.compile(r"~(?=/|\Z)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}(?=/|\Z)")


def normalise(text: str, span: Span, report: Report) -> str | None:
    """Return *text* without ``//``, ``.`` and a trailing ``/``, a relative one under ``${cwd}``.

    The result begins with ``/``, ``~``, ``${cwd}``, ``${tmp}`` or ``${NAME}``. None, with an error,
    for ``..``, an empty path, or a variable that does not stand at the beginning.
    """
    if not text:
        report.error("FP306", "the path is empty", span, "`.` is the folder of the command")
        return None
    if "\0" in text:
        report.error("FP306", "the path holds a zero byte, which no path can", span, "take it out")
        return None
    root = _ROOT.match(text)
    head = root.group() if root else ""
    rest = text[len(head) :]
    if not head and text[0] == "~":
        report.error(
            "FP306",
            f"`{text}` is not expanded: `~/` is the only home folder that a control can name",
            span,
            f"write `~/…`, or `./{text}` for a file of that name",
        )
        return None
    if "${" in rest:
        report.error(
            "FP306",
            f"`{text}` holds `${{` where no variable can stand",
            span,
            "`${cwd}`, `${tmp}` and `${NAME}` stand at the beginning, followed by `/`",
        )
        return None
    parts = [part for part in rest.split("/") if part not in {"", "."}]
    if ".." in parts:
        report.error(
            "FP306",
            f"`{text}` holds `..`, which means another place when a folder is a link",
            span,
            "write the path that is meant",
        )
        return None
    if not head and rest[0] != "/":
        head = "${cwd}"
    joined = "/".join(parts)
    return f"{head}/{joined}" if joined else head or "/"


def unix(text: str, span: Span, report: Report) -> str | None:
    """Return the path of a ``unix:`` destination, or ``@name`` as it stands for an abstract one."""
    if text[:1] == "@":
        if len(text) == 1 or "\0" in text:
            report.error("FP306", "an abstract socket has a name", span, "as in `unix:@bus`")
            return None
        return text
    if "*" in text:
        report.warning(
            "FP308",
            f"`*` in `unix:{text}` is an ordinary character, not a pattern",
            span,
            "name each socket",
        )
    port = re.search(r":[0-9]+\Z", text)
    if port:
        report.warning(
            "FP308",
            f"`{port[0]}` at the end of `unix:{text}` is of the path: a unix socket has no port",
            span,
            f"write `unix:{text[: port.start()]}`",
        )
    return normalise(text, span, report)
