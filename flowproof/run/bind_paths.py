"""The paths of an artifact bound for one run: folders and variables put in, links resolved once."""

from __future__ import annotations

import os
import re

from flowproof.artifact.files import FileRow, PathSet
from flowproof.record.codes import Code
from flowproof.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.artifact.model import Rule

    Reason = tuple[Code, str]

__all__ = ["bound_rows", "spelt_out"]

_VARIABLE = re.compile(r"\$\{([^{}]+)\}(?:/|\Z)")


def spelt_out(path: str, environ: Mapping[str, str], cwd: str, reasons: list[Reason]) -> str | None:
    """Return *path* with its folder put in, absolute and with its links as they are; None with a reason.

    *cwd* is the command's start folder.
    """
    if path == "~" or path.startswith("~/"):
        return (environ.get("HOME") or os.path.expanduser("~")) + path[1:]
    match = _VARIABLE.match(path)
    if match is None:
        return os.path.join(cwd, path)
    rest = path[match.end() :]
    if match[1] == "cwd":
        return os.path.join(cwd, rest)
    if match[1] == "tmp":
        folder = environ.get("TMPDIR") or "/tmp"  # noqa: S108  what programs take for it
        return os.path.join(folder, rest)
    value = environ.get(match[1])
    if not value:
        state = "not set" if value is None else "empty"
        reasons.append((Code.VARIABLE_UNSET, f"`${{{match[1]}}}` is {state}"))
        return None
    if not value.startswith("/") or ".." in value.split("/") or "\0" in value:
        reasons.append((Code.VARIABLE_INVALID, f"`${{{match[1]}}}` is relative or holds `..`"))
        return None
    return os.path.join(value, rest)


def bound_rows(
    rows: tuple[FileRow, ...],
    rules: tuple[Rule, ...],
    environ: Mapping[str, str],
    cwd: str,
    reasons: list[Reason],
) -> tuple[FileRow, ...]:
    """Return *rows* with every path as an attempt's would read; where one cannot be bound, with a reason."""
    found = []
    for row in rows:
        # what takes attempts out (an exception, an `allow`) stands for no more than is written
        takes_out = rules[row.rule].verb == "allow"
        inside = _bound(row.inside, environ, cwd, reasons, widely=not takes_out)
        excepted = row.excepted
        if excepted is not None:
            excepted = _bound(excepted, environ, cwd, reasons, widely=takes_out)
        found.append(replace(row, inside=inside, excepted=excepted))
    return tuple(found)


def _bound(
    paths: PathSet,
    environ: Mapping[str, str],
    cwd: str,
    reasons: list[Reason],
    *,
    widely: bool,
) -> PathSet:
    found: set[str] = set()
    for path in paths.paths:
        whole = spelt_out(path, environ, cwd, reasons)
        if whole is None:
            continue
        if paths.kind == "under":
            found.add(os.path.realpath(whole))
            continue
        if whole.count("*") != path.count("*"):
            reasons.append(
                (Code.VARIABLE_INVALID, f"the folder that `{path}` begins with holds `*`")
            )
            continue
        found.update(_globs(whole, widely=widely))
    return PathSet(paths.kind, tuple(sorted(found)))


def _globs(glob: str, *, widely: bool) -> tuple[str, ...]:
    """Return the globs that *glob* comes to: the folders in front of its first star are resolved.

    Without a star it is one entry, and *widely* that is also what it leads to where it is a link: a delete
    is of the link, and a write is of what it leads to.
    """
    parts = glob.split("/")
    starred = next((at for at, part in enumerate(parts) if "*" in part), None)
    fixed = len(parts) - 1 if starred is None else starred
    folder = os.path.realpath("/".join(parts[:fixed]) or "/")
    entry = os.path.join(folder, *parts[fixed:]) if parts[fixed:] != [""] else folder
    if starred is None and widely:
        return (entry, os.path.realpath(glob))
    return (entry,)
