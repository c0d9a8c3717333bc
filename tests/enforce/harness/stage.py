"""The stage of one test: a folder, an identity, and the two ways to run a program: bare and contained."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from evidence import Record, newest_record
from namespace import PLAIN, Arrival, Namespace
from product import NOBODY, Product

__all__ = ["CONTROL", "NEVER_ELSE", "Y0", "Ran", "Stage"]

CONTROL = "probe"
PROGRAMS = Path(__file__).parents[1] / "programs"

NEVER_ELSE = {"probe.rest": "never connect to anything else"}
Y0 = {"probe.api": "allow connect to 10.99.0.1, fd00:99::1", **NEVER_ELSE}
"""The default policy of the cases."""

LIMIT_SECONDS = 60.0


class Ran:
    """What came of one command: how it ended, what it wrote, what the program reported, what arrived."""

    def __init__(
        self,
        code: int,
        output: tuple[str, str],
        report: dict[str, object],
        arrivals: list[Arrival],
        ended: float,
    ) -> None:
        self.code = code
        self.stdout, self.stderr = output
        self.report = report
        self.arrivals = arrivals
        self.ended = ended  # time.monotonic() at its end
        self._record: Record | None = None

    @property
    def record(self) -> Record:
        """The record that the run left; a run that left none fails the test here."""
        assert self._record is not None, f"no record; exit {self.code}\n{self.stderr}"
        return self._record

    @property
    def has_record(self) -> bool:
        """Whether the run left a record."""
        return self._record is not None

    def keep(self, record: Record | None) -> None:
        """Attach the record that was found."""
        self._record = record

    def reached(self, *addresses: str, protocol: str | None = None) -> int:
        """Return how often anything arrived at one of *addresses* (any port), by the arrival log."""
        return sum(
            a.times
            for a in self.arrivals
            if a.to.rpartition(":")[0].strip("[]") in addresses
            and (protocol is None or a.protocol == protocol)
        )

    def __repr__(self) -> str:
        return (
            f"exit {self.code}; program: {self.report}; arrived: {self.arrivals}\n"
            f"stdout: {self.stdout[-2000:]}\nstderr: {self.stderr[-2000:]}"
        )


class Stage:
    """A folder that its identity owns, in a namespace."""

    def __init__(self, namespace: Namespace, product: Product, identity: str) -> None:
        self.namespace, self.product, self.identity = namespace, product, identity
        self.folder = Path(tempfile.mkdtemp(prefix="flowproof-stage-"))
        self.folder.chmod(0o755)
        self.programs = self.folder / "programs"
        shutil.copytree(PROGRAMS, self.programs, ignore=shutil.ignore_patterns("__pycache__"))
        self.report = self.folder / "report.json"
        self.own()

    def own(self) -> None:
        """Give the folder and all in it to the stage's identity."""
        if self.identity == PLAIN and os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)

    def program(self, name: str, *words: str) -> list[str]:
        """Return the command line of a probe program."""
        return [self.product.python, str(self.programs / name), *words]

    def older(self, abi: int) -> list[str]:
        """Return the words before a command that make flowproof see an older Landlock (`older_host.py`)."""
        copy = self.folder / "older_host.py"
        shutil.copy(Path(__file__).with_name("older_host.py"), copy)
        copy.chmod(0o644)
        return [self.product.python, str(copy), str(abi)]

    def built(self, binary: Path, *words: str) -> list[str]:
        """Return the command line of a compiled probe program."""
        return [str(binary), *words]

    def flow(
        self,
        rules: dict[str, str] | None,
        command: list[str],
        *,
        name: str = "probe.flow.yaml",
        agent: dict[str, object] | None = None,
        **top: object,
    ) -> Path:
        """Write a flow (JSON is YAML) and return its path. *rules* None leaves the control out."""
        document: dict[str, object] = {
            "name": "a probe",
            "agent": {
                "command": command,
                "env": {"PROBE_REPORT": str(self.report)},
                "timeout": "40s",
                **(agent or {}),
            },
        }
        if rules is not None:
            document["control"] = {"id": CONTROL, **({"rules": rules} if rules else {})}
        document |= top
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
        self.own()
        return path

    def environment(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        """Return the environment that commands on this stage get."""
        return {
            **self.product.environment(self.folder),
            "PROBE_REPORT": str(self.report),
            **(extra or {}),
        }

    def execute(
        self,
        words: list[str],
        *,
        env: dict[str, str] | None = None,
        limit: float = LIMIT_SECONDS,
    ) -> Ran:
        """Run *words* in the namespace as this stage's identity, and see what comes of it."""
        self.report.unlink(missing_ok=True)
        self.namespace.clear()
        started = subprocess.Popen(
            self.namespace.inside(self.identity, words, self.folder),
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            output = started.communicate()
            raise AssertionError(f"still running after {limit} s: {words}\n{output}") from None
        ended = time.monotonic()
        report: dict[str, object] = {}
        if self.report.exists() and self.report.stat().st_size:
            report = json.loads(self.report.read_text(encoding="utf-8"))
        return Ran(started.returncode, output, report, self.namespace.arrivals(), ended)

    def bare(self, command: list[str], **more: object) -> Ran:
        """Run a program uncontained."""
        return self.execute(command, **more)  # type: ignore[arg-type]  # forwarded as they are

    def contained(
        self,
        path: Path,
        *options: str,
        before: list[str] | None = None,
        env: dict[str, str] | None = None,
        records: Path | None = None,
        limit: float = LIMIT_SECONDS,
    ) -> Ran:
        """Run ``flowproof run PATH --format json`` behind the words *before*; its record is attached."""
        where = records or self.folder / "records"
        shutil.rmtree(where, ignore_errors=True) if records is None else None
        words = self.product.flowproof(
            "run", str(path), "--record", str(where), "--format", "json", *options
        )
        ran = self.execute([*(before or []), *words], env=env, limit=limit)
        ran.keep(newest_record(where))
        return ran
