"""``flowproof doctor``: what this host can enforce and observe, tried on the spot."""

from __future__ import annotations

import sys

from flowproof.cli.answers import exit_data, json_text
from flowproof.cli.console import printable
from flowproof.exit_codes import ExitCode
from flowproof.record.codes import ADVICE, Code
from flowproof.record.lanes import LANES
from flowproof.run.selftest import Capability, first_failure, self_test

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console

__all__ = ["run"]

_CARRIED = {"connect": "enforced", "files": "observed"}
"""The lanes that this version carries, and how well."""


def run(arguments: Arguments, console: Console) -> int:
    """Run the self-test that precedes every run, and print each step with its reason."""
    capabilities = self_test()
    capabilities += (_seclusion(),)
    failure = first_failure(capabilities)
    code = ExitCode.OK if failure is None else ExitCode.CAPABILITY
    lanes = {lane: _tier(lane, failure) for lane in LANES if lane != "faults"}
    if arguments.json:
        because = [] if failure is None else [f"{_code(failure)}: {failure.detail}"]
        console.out(
            json_text(
                {
                    "lanes": lanes,
                    "capabilities": [_as_data(capability) for capability in capabilities],
                    "exit": exit_data(code, because),
                }
            )
        )
        return code
    for lane, tier in lanes.items():
        console.out(f"{lane} ({LANES[lane]}): {tier}")
    width = max(len(capability.id) for capability in capabilities)
    for capability in capabilities:
        console.out(_line(capability, width))
    if failure is not None and failure.code is not None:
        console.out(f"  help: {ADVICE[failure.code]}")
    return code


def _seclusion() -> Capability:
    """Return whether something keeps a command off the other processes of its user."""
    from flowproof.run.kernel import Kernel

    found = Kernel().seclusion() if sys.platform == "linux" else None
    if found is None:
        detail = "nothing keeps a command off the other processes of its user"
        return Capability("process.seclusion", False, Code.NOT_SECLUDED, detail)
    return Capability(
        "process.seclusion", True, None, f"{found} keeps a command off what is outside"
    )


def _tier(lane: str, failure: Capability | None) -> str:
    if lane not in _CARRIED:
        return "none (this version does not carry it)"
    return _CARRIED[lane] if failure is None else f"none ({_code(failure)})"


def _line(capability: Capability, width: int) -> str:
    state = "ok    " if capability.ok else "not ok"
    code = "" if capability.code is None else f"{capability.code.value}: "
    return f"  {state}  {capability.id:{width}}  {code}{printable(capability.detail)}"


def _code(capability: Capability) -> str:
    return capability.code.value if capability.code else capability.id


def _as_data(capability: Capability) -> dict[str, object]:
    return {
        "id": capability.id,
        "ok": capability.ok,
        "code": capability.code.value if capability.code else None,
        "detail": capability.detail,
        "help": ADVICE[capability.code] if capability.code else None,
    }
