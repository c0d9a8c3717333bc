"""``flowproof doctor``: what this host can enforce and observe, tried on the spot."""

from __future__ import annotations

import sys

from flowproof.cli.answers import exit_data, json_text
from flowproof.cli.console import printable
from flowproof.exit_codes import ExitCode
from flowproof.record.codes import ADVICE, Code
from flowproof.record.lanes import LANES
from flowproof.run.selftest import self_test
from flowproof.run.steps import NOT_REACHED, Capability, cost, first_failure, lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.run.extras import Extra

__all__ = ["run"]

_CARRIED = {"connect": "enforced", "files": "observed"}
"""The lanes that this version carries, and how well."""
_INDENT = " " * 10


def run(arguments: Arguments, console: Console) -> int:
    """Run the self-test that precedes every run, and print each step with its reason."""
    capabilities = self_test()
    beyond = _extras()
    missing = [row for row in capabilities if cost(row) is not None]
    code = ExitCode.CAPABILITY if missing else ExitCode.OK
    lanes = {lane: _tier(lane, capabilities) for lane in LANES if lane != "faults"}
    if arguments.json:
        because = [f"{_code(row)}: {row.detail}" for row in missing]
        console.out(
            json_text(
                {
                    "lanes": lanes,
                    "capabilities": [_as_data(row) for row in capabilities],
                    "extras": [_extra_as_data(row) for row in beyond],
                    "exit": exit_data(code, because),
                }
            )
        )
        return code
    for lane, tier in lanes.items():
        console.out(f"{lane} ({LANES[lane]}): {tier}")
    width = max(len(identity) for identity in _ids(capabilities, beyond))
    for line in _told(capabilities, beyond, width):
        console.out(line)
    return code


def _ids(capabilities: tuple[Capability, ...], beyond: tuple[Extra, ...]) -> list[str]:
    return [row.id for row in capabilities] + [row.id for row in beyond]


def _extras() -> tuple[Extra, ...]:
    if not sys.platform.startswith("linux"):
        return ()
    from flowproof.run.extras import extras
    from flowproof.run.kernel import Kernel

    return extras(Kernel())


def _tier(lane: str, capabilities: tuple[Capability, ...]) -> str:
    if lane not in _CARRIED:
        return "none (this version does not carry it)"
    failure = first_failure(capabilities)
    if failure is not None:
        return f"none ({_code(failure)})"
    lacks = lacking(capabilities)
    if Code.NOT_SECLUDED in lacks:
        return "none (NOT_SECLUDED)"
    if lacks:
        return "observed (NOT_SHIELDED)" if _CARRIED[lane] == "enforced" else _CARRIED[lane]
    return _CARRIED[lane]


def _told(
    capabilities: tuple[Capability, ...], beyond: tuple[Extra, ...], width: int
) -> Iterator[str]:
    for row in capabilities:
        yield _line("ok" if row.ok else "not ok", row.id, width, _reason(row))
        price = cost(row)
        if price is not None:
            yield f"{_INDENT}cost: {price}"
            if row.code is not None:
                yield f"{_INDENT}help: {ADVICE[row.code]}"
    if beyond:
        yield "besides, and no verdict rests on these alone:"
    for extra in beyond:
        yield _line("ok" if extra.ok else "absent", extra.id, width, extra.detail)
        if not extra.ok:
            yield f"{_INDENT}cost: {extra.cost}"
            yield f"{_INDENT}help: {extra.help}"


def _line(state: str, identity: str, width: int, detail: str) -> str:
    return f"  {state:6}  {identity:{width}}  {printable(detail)}"


def _reason(row: Capability) -> str:
    if row.code is None or row.detail == NOT_REACHED:
        return row.detail
    return f"{row.code.value}: {row.detail}"


def _code(row: Capability) -> str:
    return row.code.value if row.code else row.id


def _as_data(row: Capability) -> dict[str, object]:
    price = cost(row)
    return {
        "id": row.id,
        "ok": row.ok,
        "code": row.code.value if row.code else None,
        "detail": row.detail,
        "cost": price,
        "help": ADVICE[row.code] if row.code and price else None,
    }


def _extra_as_data(row: Extra) -> dict[str, object]:
    return {
        "id": row.id,
        "ok": row.ok,
        "detail": row.detail,
        "cost": None if row.ok else row.cost,
        "help": None if row.ok else row.help,
    }
