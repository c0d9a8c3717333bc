"""Attempts at the denied addresses, each run three ways: bare, contained, and with a disarmed artifact.

Under Y0 a scenario must reach the allowed addresses and never the denied ones; bare and disarmed it must
reach both. A scenario that cannot invert would show nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from missing import missing
from stage import Stage

__all__ = ["SCENARIOS", "Scenario"]

ALLOWED4, ALLOWED6, DENIED4, DENIED6 = "10.99.0.1", "fd00:99::1", "10.99.0.2", "fd00:99::2"

Command = Callable[[Stage, dict[str, Path]], list[str]]


class Scenario:
    """One attempt. *places* are the destinations that the lane must name as refused, under Y0."""

    def __init__(
        self,
        name: str,
        command: Command,
        *,
        places: tuple[str, ...] = (f"{DENIED4}:9000",),
        reaches: tuple[str, ...] = (ALLOWED4,),
        denied: tuple[str, ...] = (DENIED4,),
        cases: tuple[str, ...] = (),
        counted: bool = True,
    ) -> None:
        self.name, self.command = name, command
        self.places, self.reaches, self.denied = places, reaches, denied
        self.cases, self.counted = cases, counted

    def __repr__(self) -> str:
        return self.name


def _reach(*acts: str) -> Command:
    return lambda stage, _: stage.program("reach.py", *acts)


def _script(name: str, *words: str) -> Command:
    return lambda stage, _: stage.program(name, *words)


def _flip(call: str, times: int, how: str) -> Command:
    def words(stage: Stage, built: dict[str, Path]) -> list[str]:
        if "flip" not in built:
            missing("`gcc`, to build flip.c")
        return stage.built(built["flip"], call, ALLOWED4, DENIED4, "9000", str(times), how)

    return words


def _plain(kind: str, v6: bool, counted: bool = True) -> Scenario:
    allowed, denied = (ALLOWED6, DENIED6) if v6 else (ALLOWED4, DENIED4)
    return Scenario(
        f"{kind}{6 if v6 else 4}",
        _reach(kind, allowed, "9000", kind, denied, "9000"),
        places=(f"[{denied}]:9000" if v6 else f"{denied}:9000",),
        reaches=(allowed,),
        denied=(denied,),
        counted=counted,
    )


SCENARIOS = (
    _plain("tcp", v6=False),
    _plain("tcp", v6=True),
    _plain("udp", v6=False),
    _plain("udp", v6=True),
    # a refused UDP connect is a probe: nothing can follow it, so nobody counts it
    _plain("udp-connect", v6=False, counted=False),
    _plain("udp-connect", v6=True, counted=False),
    Scenario(
        "unspec", _script("unspec.py", DENIED4, "9000", ALLOWED4), reaches=(), cases=("C01", "C08")
    ),
    Scenario("mapped", _script("mapped.py", "9000", DENIED4, ALLOWED4), cases=("C03",)),
    Scenario("partial", _script("partial.py", ALLOWED4, DENIED4, "9000"), cases=("C05",)),
    Scenario("nonblocking", _script("nonblocking.py", "9000", ALLOWED4, DENIED4), cases=("C15",)),
    Scenario("fast-open", _script("fast_open.py", DENIED4, "9000"), reaches=(), cases=("C17",)),
    *(
        Scenario(
            f"flip-{call}-{how}", _flip(call, times, how), cases=("C02",), counted=call != "connect"
        )
        for call, times in (
            ("sendto", 5000),
            ("sendmsg", 20000),
            ("sendmmsg", 5000),
            ("connect", 5000),
        )
        for how in ("pinned", "free")
    ),
)
