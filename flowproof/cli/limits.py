"""The limits of a run that the command line may set in place of the flow's: time, and the exit code."""

from __future__ import annotations

import re

from flowproof.cli.arguments import UsageError
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments

__all__ = ["ExpectedExit", "exit_of", "seconds_of"]

_UNITS = {"s": 1, "m": 60, "h": 3600}


class ExpectedExit(Value):
    """What ``--expect-exit`` says; *code* None is ``any``."""

    code: int | None


def seconds_of(arguments: Arguments) -> float | None:
    """Return ``--timeout`` in seconds, or None where it was not given."""
    text = arguments.get("--timeout")
    if text is None:
        return None
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not re.fullmatch(r"[0-9]{1,7}", number) or not int(number):
        raise UsageError(
            f"`{text}` is no timeout", "write a number and its unit: `30s`, `10m` or `1h`"
        )
    return float(int(number) * _UNITS[unit])


def exit_of(arguments: Arguments) -> ExpectedExit | None:
    """Return ``--expect-exit``, or None where it was not given."""
    text = arguments.get("--expect-exit")
    if text is None:
        return None
    if text == "any":
        return ExpectedExit(None)
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > 255:
        raise UsageError(f"`{text}` is no exit code", "write 0 to 255, or `any`")
    return ExpectedExit(int(text))
