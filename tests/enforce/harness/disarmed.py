"""Runs a flow with an artifact whose refusals were taken out: ``disarmed.py FLOW RECORDS HOW COMMAND…``.

HOW: ``none`` (the artifact as compiled: the control of the control), ``tables`` (no cell refuses),
``uncounted`` (no cell refuses and none counts), ``rows`` (no attempt at a file is counted), ``program`` (the
filter allows every call).
The last line printed is JSON: the exit code and each control's verdict. No back door of the product is
used: the artifact is plain data, and `flowproof.run` takes whatever it is given.
"""

from __future__ import annotations

import json
import os
import sys

from flowproof.artifact.model import Artifact, Entry, Instruction
from flowproof.diagnostics import Report
from flowproof.ir.resolve import resolve_flow
from flowproof.lower.backend import compile_policy
from flowproof.run.recorder import Command, run
from flowproof.source.suite import load
from flowproof.values import replace

ALLOW = Instruction(0x06, 0, 0, 0x7FFF0000)  # return SECCOMP_RET_ALLOW


def _refuses_nothing(entry: Entry) -> Entry:
    return replace(entry, refuse=(), otherwise=())


def _says_nothing(entry: Entry) -> Entry:
    return replace(entry, refuse=(), otherwise=(), watch=(), watch_otherwise=())


def disarm(artifact: Artifact, how: str) -> Artifact:
    """Return the artifact with its refusals taken out in the way of *how*."""
    if how == "none":
        return artifact
    if how == "program":
        assert artifact.program is not None
        return replace(artifact, program=replace(artifact.program, instructions=(ALLOW,)))
    if how == "rows":
        return replace(artifact, tables=replace(artifact.tables, files=()))
    change = _refuses_nothing if how == "tables" else _says_nothing
    entries = tuple(change(entry) for entry in artifact.tables.entries)
    return replace(artifact, tables=replace(artifact.tables, entries=entries))


def main() -> int:
    """Compile, disarm, run, and print what came of it."""
    flow, records, how, *argv = sys.argv[1:]
    report = Report()
    suite = load(flow, report)
    report.raise_errors()
    assert suite is not None
    resolved = resolve_flow(suite.flows[0], report)
    report.raise_errors()
    assert resolved is not None
    target = f"linux-{os.uname().machine}"
    artifact = disarm(compile_policy(resolved.policy, target), how)
    environment = {"PROBE_REPORT": os.environ["PROBE_REPORT"]}
    command = Command(
        argv=tuple(argv),
        cwd=os.getcwd(),
        env=environment,
        timeout=40.0,
        expect_exit=0,
        prompt=None,
        name="a probe",
    )
    outcome = run(artifact, command, record_root=records, proven=True, stdout_to_stderr=True)
    print(json.dumps({"exit": int(outcome.exit_code), "folder": str(outcome.folder)}))
    return int(outcome.exit_code)


sys.exit(main())
