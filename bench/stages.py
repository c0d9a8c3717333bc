"""Seconds of processor that the stages of a compile take: ``python -m bench.stages FLOW`` prints JSON."""

from __future__ import annotations

import gc
import json
import sys
from time import process_time

from flowproof.artifact.model import Artifact
from flowproof.cli.proving import finished
from flowproof.diagnostics import Report
from flowproof.ir.resolve import resolve_flow
from flowproof.lower.backend import compile_policy
from flowproof.source.suite import load


def main() -> None:
    """Compile the flow of the command line for one target."""
    gc.disable()  # as `flowproof compile` does
    report = Report()
    began = process_time()
    suite = load(sys.argv[1], report)
    assert suite is not None
    read = process_time()
    resolved = resolve_flow(suite.flows[0], report)
    assert resolved is not None
    meant = process_time()
    artifact = compile_policy(resolved.policy, "linux-x86_64")
    lowered = process_time()
    assert isinstance(finished(resolved.policy, artifact), Artifact)
    proved = process_time()
    seconds = {
        "document": read - began,
        "ir": meant - read,
        "target": lowered - meant,
        "proof": proved - lowered,
    }
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
