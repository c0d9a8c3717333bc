"""The tools beside which flowproof is measured: how each is installed, and how it runs a command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.flows import contained
from bench.peers.model import Model
from bench.place import Place

__all__ = ["Absent", "Peers"]

HERE = Path(__file__).parent
LIMIT = ["timeout", "--kill-after=5", "120"]
"""In front of a peer: one that hangs is one that cannot run the row."""

Wrap = Callable[[list[str]], list[str]]


class Absent(Exception):  # noqa: N818  a tool that is not there is no error of ours
    """A tool that this machine cannot install or run, and why."""


class Peers:
    """The wrappers by name: words of a command → words that run it under the tool. Close when done.

    *absent* tells why a tool is not among them.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._model = Model()
        self.absent: dict[str, str] = {}
        self.wraps: dict[str, Wrap] = {}
        self._offer("flowproof (this one)", lambda: self._ours)
        self._offer(*self._strace())
        try:
            venv, pinned = self._installed(), ""
        except Absent as why:
            venv, pinned = None, str(why)
        for name, version in requirements().items():
            title = f"{name} {version}"
            if venv is None:
                self.absent[title] = pinned
            else:
                make = self._sandlock if name == "sandlock" else self._original
                self._offer(title, partial(make, venv))

    def _offer(self, title: str, make: Callable[[], Wrap]) -> None:
        try:
            self.wraps[title] = make()
        except Absent as why:
            self.absent[title] = str(why)

    def close(self) -> None:
        """End what the tools were given."""
        self._model.close()

    def _ours(self, words: list[str]) -> list[str]:
        flow = self._place.write("ours.flow.yaml", contained(words))
        records = self._place.folder / "records"
        return self._place.flowproof("run", str(flow), "--record", str(records))

    @staticmethod
    def _strace() -> tuple[str, Callable[[], Wrap]]:
        found = shutil.which("strace")
        if found is None:

            def none() -> Wrap:
                raise Absent("there is no `strace` here")

            return "strace -f --seccomp-bpf", none
        told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        version = re.search(r"version (\S+)", told.stdout)
        options = ["-f", "--seccomp-bpf", "-qq", "-e", "trace=network", "-o", "/dev/null"]

        def wrap(words: list[str]) -> list[str]:
            return [*LIMIT, found, *options, *words]

        title = f"strace {version[1] if version else '?'} -f --seccomp-bpf -e trace=network"
        return title, lambda: wrap

    def _installed(self) -> Path:
        """Return the virtual environment with the pinned tools; `Absent` where they are not to be had."""
        venv = self._place.folder / "peers"
        words = [
            [sys.executable, "-m", "venv", str(venv)],
            [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps",
             "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")],
        ]  # fmt: skip
        for line in words:
            ran = subprocess.run(line, capture_output=True, text=True, check=False)
            if ran.returncode:
                last = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise Absent(f"not installed: {last}")
        return venv

    def _sandlock(self, venv: Path) -> Wrap:
        runner = [str(venv / "bin" / "python"), str(HERE / "sandboxed.py"), str(self._place.folder)]
        return lambda words: [*LIMIT, "env", "-u", "PYTHONPATH", *runner, *words]

    def _original(self, venv: Path) -> Wrap:
        """Return how the Rust project contains a command: while it records a flow with an egress rule."""
        place = self._place
        home = place.folder / "home"
        home.mkdir(exist_ok=True)
        setting = [
            "env",
            "-u",
            "PYTHONPATH",
            f"HOME={home}",
            f"FLOWPROOF_AGENT_UPSTREAM={self._model.url}",
            "OPENAI_API_KEY=none",
        ]

        def wrap(words: list[str]) -> list[str]:
            agent = " ".join([sys.executable, str(HERE / "agent.py"), *words])
            spec = place.write(
                "original.flow.yaml",
                {
                    "name": "a measured flow",
                    "app": "agent",
                    "agent": {"command": agent, "allow_egress": ["10.99.0.1:9000"]},
                    "steps": [{"prompt": "begin"}, "assert_no_egress"],
                },
            )
            record = [str(venv / "bin" / "flowproof"), "record", "--recording-detail", "off"]
            return [*LIMIT, *setting, *record, str(spec)]

        return wrap


def requirements() -> dict[str, str]:
    """Return the pinned tools, name by version."""
    text = (HERE / "requirements.txt").read_text(encoding="ascii")
    return dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
