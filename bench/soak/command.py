"""``python -m bench soak [--minutes N]``: mixed load under a run; 1 when something did not hold."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.soak.judge import RULES, Facts, judge
from bench.soak.samples import Sample, sample
from bench.soak.text import show
from bench.soak.world import World
from flowproof.record.evidence import verify_record

__all__ = ["main", "missing", "soak"]

TOOLS = ("gcc", "unshare", "nsenter", "setpriv", "env")
PACE = 240
"""Samples of a soak, but none in less than half a second."""
GRACE = 60.0
"""Seconds past its time in which a run has to end."""


def missing() -> str | None:
    """Return what this machine lacks for a soak."""
    if os.geteuid() != 0:
        return "root (the run itself is nobody's: root reads what it holds)"
    absent = [tool for tool in TOOLS if not shutil.which(tool)]
    return f"`{', '.join(absent)}`" if absent else None


def soak(world: World, seconds: int) -> Facts:
    """Run the load for *seconds* and return what came of it."""
    page, report = world.inner / "page", world.inner / "report.json"
    command = [str(world.folder / "load"), "run", str(page), str(report), str(seconds)]
    began = time.monotonic()
    recorder = world.start(RULES, command, seconds)
    samples: list[Sample] = []
    pause = max(0.5, seconds / PACE)
    try:
        while not _ended(recorder, pause):
            at = time.monotonic() - began
            found = sample(at, recorder.pid, page)
            if found is not None:
                samples.append(found)
            if at > seconds + GRACE:
                raise TimeoutError(f"the run did not end within {GRACE:.0f} s of its time")
    finally:
        recorder.send_signal(signal.SIGTERM)  # to one that goes on: it ends its tree then
        output, _ = recorder.communicate()
    if not report.exists():
        raise RuntimeError(f"the load left no report; exit {recorder.returncode}: {output[-2000:]}")
    load = json.loads(report.read_text(encoding="utf-8"))
    (folder,) = (world.inner / "records" / ".flowproof" / "runs").iterdir()
    stored = verify_record(str(folder))
    return Facts(
        seconds=seconds,
        samples=samples,
        load=load,
        arrivals=world.arrivals(),
        record=json.loads((folder / "record.json").read_text(encoding="utf-8")),
        problems=[f"{problem.kind}: {problem.detail}" for problem in stored.problems],
        exit_code=recorder.returncode,
        left=[pid for pid in load["survivors"] if Path(f"/proc/{pid}").exists()],
    )


def _ended(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def main(words: list[str]) -> int:
    """Soak for as long as the command line says; print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="how long the load works")
    seconds = round(parser.parse_args(words).minutes * 60)
    lacking = missing()
    if lacking is not None:
        print(f"not measured: this machine lacks {lacking}")
        return 3
    world = World()
    try:
        print(f"soaking for {seconds} s …", file=sys.stderr, flush=True)
        facts = soak(world, seconds)
        build = world.python_build()
    finally:
        world.close()
    checks = judge(facts)
    host = f"Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} processors"
    print(show(facts, checks, f"{host}; {build}"))
    return 0 if all(check.held for check in checks) else 1
