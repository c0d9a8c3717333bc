"""Seconds of processor that each stage of a compile takes: ``python -m bench.stages FLOW`` prints JSON.

The stages are those of ``flowproof compile FLOW --target linux-x86_64 -o DIR``, one after the other in a
process of its own; what is not in any of them is the interpreter's start and its end.
"""

from __future__ import annotations

import gc
import json
import sys
from itertools import pairwise
from time import process_time

from flowproof.cli.proving import Proven, finished
from flowproof.diagnostics import Report
from flowproof.ir.resolve import resolve_flow
from flowproof.lower.backend import compile_policy
from flowproof.lower.seccomp.listing import listing
from flowproof.source.suite import load

__all__ = ["STAGES"]

STAGES = ("document", "ir", "target", "proof", "listing")
"""The stages, in order."""


def main() -> None:
    """Compile the flow of the command line for one target."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.stages FLOW")
    gc.disable()  # as `flowproof compile` does
    report = Report()
    marks = [process_time()]
    suite = load(sys.argv[1], report)
    if suite is None or not suite.flows:
        sys.exit(f"no flow that can be read at {sys.argv[1]}")
    marks.append(process_time())
    resolved = resolve_flow(suite.flows[0], report)
    assert resolved is not None
    marks.append(process_time())
    artifact = compile_policy(resolved.policy, "linux-x86_64")
    marks.append(process_time())
    proved = finished(resolved.policy, artifact)
    assert isinstance(proved, Proven)
    marks.append(process_time())
    listing(proved.artifact)
    marks.append(process_time())
    taken = (end - begin for begin, end in pairwise(marks))
    print(json.dumps(dict(zip(STAGES, taken, strict=True))))


if __name__ == "__main__":
    main()
