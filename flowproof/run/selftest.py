"""The self-test before each run: every mechanism call for real, in a throwaway child.

What it finds decides the tier; a probe that only asks whether a call exists decides nothing. It runs in
processes of its own, so that an outer filter which kills or hangs a caller ends the probe and not the run.
"""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from contextlib import suppress

from flowproof.record.codes import Code
from flowproof.run import numbers as n
from flowproof.run.channel import Channel, send
from flowproof.run.kernel import Kernel
from flowproof.run.launch import error_text
from flowproof.run.probe import Probe, how_it_died
from flowproof.run.steps import NOT_REACHED, STEPS, Capability

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    Found = tuple[str, str, Code | None]

__all__ = ["self_test"]

_SECONDS = 5.0


def self_test(kernel: Kernel | None = None, seconds: float = _SECONDS) -> tuple[Capability, ...]:
    """Return what this host can do, step by step; after a failing step, the rest was not reached."""
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in n.SYSCALLS:
        return _rows([], f"this is {platform.system() or sys.platform} on {machine}", None)
    found: list[Found] = [("platform", f"Linux {platform.release()} on {machine}", None)]
    failure: tuple[str, Code | None] | None
    try:
        failure = _probe(kernel or Kernel(), seconds, found)
    except OSError as error:  # no process or pipe to be had
        failure = (error_text(error), Code.THREADS)
    if failure is None:
        return _rows(found, None, None)
    return _rows(found, *failure)


def _rows(found: list[Found], failure: str | None, code: Code | None) -> tuple[Capability, ...]:
    seen = {step: (text, lacks) for step, text, lacks in found}
    rows = []
    for step, own, shows in STEPS:
        if step in seen:
            text, lacks = seen[step]
            rows.append(Capability(step, lacks is None, lacks, text or shows))
        elif failure is not None:
            rows.append(Capability(step, False, code or own, failure))
            failure, code = None, None
        else:
            rows.append(Capability(step, False, Code.SELF_TEST, NOT_REACHED))
    return tuple(rows)


def _probe(kernel: Kernel, seconds: float, found: list[Found]) -> tuple[str, Code | None] | None:
    """Run the probe; add each step that passed to *found*, return what failed and its code."""
    results = Channel()
    pid = os.fork()
    if pid == 0:
        _run_supervisor(kernel, results, seconds)
    reports = results.reader()
    # The probe gives up by itself first, and then says at which step.
    deadline = time.monotonic() + seconds + 1.0
    failure: tuple[str, Code | None] | None = ("the probe said nothing", None)
    ended = False
    while (report := reports.receive(deadline)) is not None:
        what, text, code = report
        if what == "end":
            failure, ended = None, True
        elif what == "failed":
            failure, ended = (str(text), Code(code) if code else None), True
        else:
            found.append((str(what), str(text), Code(code) if code else None))
    reports.close()
    status = _end(pid)
    if not ended:
        return how_it_died(status), None
    return failure


def _end(pid: int) -> int:
    """End the probe and return its wait status; where it may not be ended, it ends by itself."""
    with suppress(PermissionError):  # kill(2) is refused: the step that shows it has said so
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _run_supervisor(kernel: Kernel, results: Channel, seconds: float) -> NoReturn:
    """Play the supervisor: go through the steps, report each. Never returns."""
    out = results.writer()
    try:
        failed = Probe(kernel, out, time.monotonic() + seconds).run()
        if failed is None:
            send(out, "end", "", None)
        else:
            send(out, "failed", failed.detail, failed.code.value if failed.code else None)
    finally:
        os._exit(0)
