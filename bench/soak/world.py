"""Where a soak happens: a network namespace, receivers in it that count, a run in it without capabilities."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.place import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "tests" / "enforce" / "harness"))
from product import NOBODY, Product, as_plain  # the tests' way to run it as nobody

__all__ = ["Arrival", "World", "counter_names"]

HERE = Path(__file__).parent
SOURCES = {"load": ("load.c", "traffic.c", "trouble.c"), "serve": ("serve.c", "traffic.c")}


class Arrival(NamedTuple):
    """What reached one receiver: connections or datagrams, bytes, and how many were out of their place."""

    protocol: str
    to: str
    times: int
    bytes: int
    wrong: int


def counter_names() -> tuple[str, ...]:
    """Return the names of the load's counters in the order of its page, from ``soak.h``."""
    text = (HERE / "soak.h").read_text(encoding="ascii")
    block = text[text.index("#define COUNTERS(X)") : text.index("#define ROW(name)")]
    return tuple(re.findall(r"X\((\w+)\)", block))


class World:
    """A temporary folder, the programs built in it, and the namespace; close it when done. Needs root."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="flowproof-soak-"))
        self.folder.chmod(0o755)
        for name, sources in SOURCES.items():
            files = [str(HERE / source) for source in sources]
            flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
            target = str(self.folder / name)
            subprocess.run(["gcc", *flags, "-o", target, *files], check=True)
        self.product = Product(self.folder / "product")
        self.inner = self.folder / "inner"
        self.inner.mkdir()
        os.chown(self.inner, NOBODY, NOBODY)
        self._server = subprocess.Popen(
            ["unshare", "--net", "--", str(self.folder / "serve")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._line() != "ready":
            self._server.kill()
            raise OSError(f"no receivers: {self._server.communicate()[1].strip()}")

    def _line(self) -> str:
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], 15.0)
        return self._server.stdout.readline().strip() if ready else ""

    def close(self) -> None:
        """End the receivers, and the namespace with them; remove the folder."""
        self._server.kill()
        self._server.communicate()
        shutil.rmtree(self.folder)

    def arrivals(self) -> list[Arrival]:
        """Return what arrived so far; whatever was sent before this call is in it."""
        assert self._server.stdin is not None
        self._server.stdin.write("\n")
        self._server.stdin.flush()
        return [Arrival(**row) for row in json.loads(self._line())]

    def python_build(self) -> str:
        """Return which Python runs it: version, how it was configured, and whose build."""
        code = (
            "import platform, sysconfig; print(platform.python_version(),"
            " '--enable-optimizations' in (sysconfig.get_config_var('CONFIG_ARGS') or ''))"
        )
        words = [self.product.python, "-c", code]
        ran = subprocess.run(words, check=True, capture_output=True, text=True)
        version, optimised = ran.stdout.split()
        whose = (
            "the distribution's"
            if os.path.realpath(self.product.python).startswith("/usr/bin/")
            else "an own build"
        )
        asked = "with" if optimised == "True" else "without"
        return f"Python {version}, {whose}, configured {asked} --enable-optimizations"

    def start(
        self, rules: dict[str, str], command: list[str], seconds: int
    ) -> subprocess.Popen[str]:
        """Start *command* under *rules* in the namespace as nobody; the process is the run's recorder."""
        flow = self.inner / "soak.flow.yaml"
        document = {
            "name": "a soak",
            "agent": {"command": command, "timeout": f"{seconds + 120}s"},
            "control": {"id": "soak", "rules": rules},
        }
        flow.write_text(json.dumps(document, indent=1), encoding="ascii")
        words = self.product.flowproof("run", str(flow), "--record", str(self.inner / "records"))
        enter = ["nsenter", f"--target={self._server.pid}", "--net", "--"]
        return subprocess.Popen(
            [*enter, *as_plain(), "env", "-C", str(self.inner), "--", *words],
            env=self.product.environment(self.inner),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
