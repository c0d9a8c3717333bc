"""The exit codes of every command, and which one wins where several hold."""

from __future__ import annotations

from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ExitCode", "worst"]


class ExitCode(IntEnum):
    """The same table for every command; ``docs/exit-codes.md`` prints it."""

    OK = 0  # asked and answered, nothing objectionable
    NEGATIVE = 1  # a control failed, a lint finding, or the command itself did not end as expected
    USAGE = 2  # usage, or input that does not parse or validate
    CAPABILITY = 3  # could not enforce, observe, express or decide
    EVIDENCE = 4  # a record is missing, unwritable, torn or altered; nothing to judge
    BUG = 70  # a bug in flowproof (EX_SOFTWARE of sysexits.h)


_PRECEDENCE = (
    ExitCode.BUG,
    ExitCode.USAGE,
    ExitCode.EVIDENCE,
    ExitCode.NEGATIVE,
    ExitCode.CAPABILITY,
    ExitCode.OK,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that wins: 70 and 2 end a command at once; then 4, 1, 3, 0."""
    return min(codes, key=_PRECEDENCE.index, default=ExitCode.OK)
