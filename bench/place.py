"""A place to measure in: a compiled copy of flowproof, C workloads, flows, and the environment."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["CHECKOUT", "Ended", "Place"]

CHECKOUT = Path(__file__).resolve().parents[1]
SHIPPED = ("flowproof", "grammar", "schema", "policies", "docs", "pyproject.toml")


class Ended(NamedTuple):
    """A process that ended: seconds on the wall, seconds of processor, peak memory in KiB."""

    wall: float
    cpu: float
    memory: int


class Place:
    """A temporary folder with what the measurements need; close it when done.

    Bytecode is compiled and PYTHONDONTWRITEBYTECODE is unset: a start that compiles its modules
    anew measures the compiler.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="flowproof-bench-"))
        self.folder.chmod(0o755)
        copy = self.folder / "copy"
        copy.mkdir()
        for name in SHIPPED:
            source = CHECKOUT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, copy / name)
        compileall.compile_dir(str(copy), quiet=2)
        self.environment = {
            k: v for k, v in os.environ.items() if k not in {"PYTHONDONTWRITEBYTECODE", "CI"}
        } | {"PYTHONPATH": str(copy)}

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)

    def built(self, name: str) -> Path | None:
        """Return the compiled C program *name*, None where there is no gcc."""
        if not shutil.which("gcc"):
            return None
        target = self.folder / name
        if not target.exists():
            source = Path(__file__).with_name(f"{name}.c")
            subprocess.run(
                ["gcc", "-O2", "-Wall", "-pthread", "-o", str(target), str(source)], check=True
            )
        return target

    def write(self, name: str, document: dict[str, object]) -> Path:
        """Write a flow (JSON is YAML) and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
        return path

    def flowproof(self, *words: str) -> list[str]:
        """Return the command line of ``flowproof WORDS``."""
        return [sys.executable, "-m", "flowproof", *words]

    def run(self, words: list[str], *, expect: int = 0) -> Ended:
        """Run *words* in the folder, to the end."""
        began = time.perf_counter()
        started = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert started.stderr is not None
        errors = started.stderr.read()
        _, status, usage = os.wait4(started.pid, 0)
        took = time.perf_counter() - began
        started.stderr.close()
        started.returncode = os.waitstatus_to_exitcode(status)
        if started.returncode != expect:
            raise RuntimeError(
                f"{words[:6]} ended with {started.returncode}: {errors.decode()[-800:]}"
            )
        return Ended(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
