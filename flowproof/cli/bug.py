"""A failure of flowproof itself: said shortly, kept in full, never mistaken for an answer."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from flowproof import __version__
from flowproof.exit_codes import ExitCode

__all__ = ["report_bug"]


def report_bug(bug: Exception) -> int:
    """Tell of *bug* on standard error and return the exit code of bugs.

    The traceback goes to a file of its own, or with FLOWPROOF_TRACEBACK=1 to standard error.
    """
    text = "".join(traceback.format_exception(bug))
    last = traceback.format_exception_only(bug)[-1].strip()
    lines = [
        f"flowproof {__version__}: this is a bug in flowproof, not an answer: {last}",
        _kept(text),
        "  help: please report it with that traceback and what was asked for",
    ]
    try:
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody listens; the exit code still tells
        pass
    return ExitCode.BUG.value


def _kept(text: str) -> str:
    if os.environ.get("FLOWPROOF_TRACEBACK") == "1":
        return text.rstrip("\n")
    try:
        descriptor, path = tempfile.mkstemp(prefix="flowproof-bug-", suffix=".txt")
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return text.rstrip("\n")
    return f"  traceback: {path}"
