"""How a long run is getting on, told on a terminal only: whole lines, and more rarely the longer it takes."""

from __future__ import annotations

import sys

from flowproof.cli.console import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.console import Console
    from flowproof.run.recorder import Progress

__all__ = ["due_after", "progress"]

_EVERY = ((60.0, 10.0), (600.0, 60.0))
_RARELY = 600.0
"""Seconds from line to line: every ten in the first minute, every minute in the first ten, then every ten."""


def progress(file: str, console: Console) -> Progress | None:
    """Return what tells how the run of *file* gets on, or None where standard error is no terminal."""
    try:
        if sys.stderr is None or not sys.stderr.isatty():
            return None
    except ValueError:  # closed
        return None
    lines = _Lines(_EVERY[0][1])

    def tell(seconds: float, through: int, refused: int) -> None:
        if seconds < lines.due:
            return
        lines.due = due_after(seconds)
        # A line of its own: the command writes to the same terminal, and its lines stay whole.
        console.err(
            f"flowproof: {printable(file)}: {_elapsed(seconds)},"
            f" {through} let through, {refused} refused"
        )

    return tell


class _Lines:
    """When the next line is due, in seconds since the command began."""

    __slots__ = ("due",)

    def __init__(self, due: float) -> None:
        self.due = due


def due_after(seconds: float) -> float:
    """Return when the next line is due once *seconds* have passed."""
    for until, every in _EVERY:
        if seconds < until:
            return min(until, (seconds // every + 1) * every)
    return (seconds // _RARELY + 1) * _RARELY


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
