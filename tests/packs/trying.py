"""A pack tried for real: its attempts made under it in a namespace with servers, and what differs, by line."""

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

from evidence import Record, newest_record
from pack_lines import Label, labels, owned
from product import CHECKOUT, Product
from tries import HOME, NAMES, TRIES, Attempt, Try

__all__ = ["World", "shipped"]

HERE = Path(__file__).parent
HARNESS = HERE.parent / "enforce" / "harness"
READY_SECONDS = 20.0
RUN_SECONDS = 60.0


def shipped(name: str) -> str:
    """Return the text of a pack as it is in the checkout."""
    path = CHECKOUT / "policies" / f"{name}.policy.yaml"
    return path.read_text(encoding="utf-8")


class World:
    """A namespace with a server for every attempt of every pack; raises OSError where there is none."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.folder = Path(tempfile.mkdtemp(prefix="flowproof-packs-"))
        self.folder.chmod(0o755)
        shutil.copy(HERE / "attempts.py", self.folder)
        self._user = os.geteuid() != 0
        words = ["unshare", "--net", "--mount"]
        if self._user:
            words += ["--user", "--map-root-user"]
        self._holder = subprocess.Popen(
            [*words, "--", sys.executable, str(HERE / "pack_world.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HARNESS)},
        )
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(json.dumps(self._wanted()) + "\n")
        self._holder.stdin.flush()
        ready, _, _ = select.select([self._holder.stdout], [], [], READY_SECONDS)
        if not ready or self._holder.stdout.readline() != "ready\n":
            self._holder.kill()
            _, errors = self._holder.communicate()
            shutil.rmtree(self.folder)
            raise OSError(f"no namespace for packs: {errors.strip().rpartition(chr(10))[2]}")

    def _wanted(self) -> dict[str, object]:
        attempts = [attempt for each in TRIES.values() for attempt in each.attempts]
        places = {(_address(a), a.port) for a in attempts if a.kind == "tcp"}
        places |= {(_address(a), 1) for a in attempts if a.kind == "listen"}  # the address at least
        sockets = {a.host for a in attempts if a.kind == "unix"}
        return {
            "names": NAMES,
            "places": sorted(places),
            "sockets": sorted(sockets),
            "folder": str(self.folder),
        }

    def close(self) -> None:
        """End the servers, and the namespace with them."""
        self._holder.kill()
        self._holder.communicate()
        shutil.rmtree(self.folder)

    def _inside(self, words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", f"--target={self._holder.pid}", "--net", "--mount"]
        if self._user:
            enter += ["--user", "--preserve-credentials"]
        return subprocess.run(
            [*enter, "--", "env", "-C", str(self.folder), "--", *words],
            env={**self.product.environment(Path(HOME)), "TMPDIR": str(self.folder), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS,
        )

    def bare(self, name: str) -> list[str]:
        """Return how the attempts on a pack end where no pack is in force."""
        env, words = self._attempts(TRIES[name])
        done = self._inside(words, env)
        assert done.returncode == 0, done.stderr
        return self._report(len(TRIES[name].attempts))

    def _attempts(self, wanted: Try) -> tuple[dict[str, str], list[str]]:
        (self.folder / "report.json").unlink(missing_ok=True)
        listed = [[a.kind, _address(a), a.port] for a in wanted.attempts]
        env = {
            "PACK_ATTEMPTS": json.dumps(listed),
            "PACK_REPORT": str(self.folder / "report.json"),
            **dict(wanted.env),
        }
        return env, [self.product.python, str(self.folder / "attempts.py")]

    def _report(self, count: int) -> list[str]:
        path = self.folder / "report.json"
        if not path.exists():
            return ["nothing"] * count
        found: list[str] = json.loads(path.read_text(encoding="utf-8"))
        assert len(found) == count
        return found

    def failures(self, name: str, text: str) -> dict[Label, str]:
        """Return what is wrong with *text* as the pack *name*, by the label of the line that is at fault."""
        packs = self.folder / "policies"
        shutil.rmtree(packs, ignore_errors=True)
        shutil.copytree(CHECKOUT / "policies", packs)
        path = packs / f"{name}.policy.yaml"
        path.write_text(text, encoding="utf-8")
        records = self.folder / "records"
        shutil.rmtree(records, ignore_errors=True)
        env, words = self._attempts(TRIES[name])
        options = ["--record", str(records), "--expect-exit", "any"]
        done = self._inside(self.product.flowproof("run", str(path), *options, "--", *words), env)
        record = newest_record(records)
        if (
            record is None
        ):  # refused as it is written; what is not there at all says more than where
            missing = _structure(name, text, loads=False)
            return missing or _refused(path.name, text, done.stderr)
        found = self._report(len(TRIES[name].attempts))
        return _structure(name, text, loads=True) or _differences(name, found, record)


def _address(attempt: Attempt) -> str:
    return NAMES.get(attempt.host, attempt.host)


def _structure(name: str, text: str, *, loads: bool) -> dict[Label, str]:
    """Return the first line that a reader of the pack (*loads*) or the tool wants and that is not there.

    Of a pack that loads the attempts say whether its rules and sets are there.
    """
    wanted = TRIES[name]
    needed: list[Label] = [("source", source) for source in wanted.sources]
    needed += [("top", key) for key in ("policy", "title", "description")]
    rules = dict.fromkeys(a.rule for a in wanted.attempts if a.rule and a.rule != "rules")
    sets = dict.fromkeys(a.rule for a in wanted.attempts if a.rule and a.line)
    needed += [("top", "sets")] * bool(sets) + [("top", "rules" if rules else "uses")]
    if not loads:
        needed += [*(("set", key) for key in sets), *(("rule", key) for key in rules)]
    there = set(labels(text))
    first = next((label for label in needed if label not in there), None)
    if first:
        return {first: f"no line `{' '.join(first)}`"}
    return _reasons(rules, text) if loads else {}


def _reasons(rules: dict[str, None], text: str) -> dict[Label, str]:
    blocks = dict(
        re.findall(
            r"^  ([a-z-]+): (.*\n(?:    .*\n)*)", text.partition("\nrules:")[2], re.MULTILINE
        )
    )
    bare = [rule for rule in rules if "because" not in blocks.get(rule, "because")]
    return {("because", rule): f"rule `{rule}` gives no reason" for rule in bare}


def _refused(file: str, text: str, errors: str) -> dict[Label, str]:
    """Return the rule that the tool's diagnostic is about: the pack did not even load."""
    place = re.search(rf"{re.escape(file)}:(\d+):\d+: error", errors)
    assert place, errors
    kind, key = labels(text)[int(place.group(1)) - 1]
    kind = "sentence" if kind in {"rule", "because"} else kind
    return {(kind, key): errors.splitlines()[0]}


def _differences(name: str, found: list[str], record: Record) -> dict[Label, str]:
    wrong: dict[Label, str] = {}
    failed: dict[str, list[bool]] = {}
    for attempt, ended in zip(TRIES[name].attempts, found, strict=True):
        difference = _difference(attempt, ended, record)
        failed.setdefault(attempt.rule or "", []).append(bool(difference))
        if difference:
            label = ("item", attempt.line) if attempt.line else ("rule", attempt.rule or "")
            wrong[label] = difference
    for rule, each in failed.items():
        if rule and all(each):  # no member of its set does what it is there for
            wrong |= dict.fromkeys(owned(shipped(name), rule), f"nothing of `{rule}` holds")
    return wrong


def _difference(attempt: Attempt, ended: str, record: Record) -> str | None:
    what = f"{attempt.kind} {attempt.host}:{attempt.port}"
    if attempt.by is None:
        return None if ended == "ok" else f"{what} should be let through, and ended with {ended}"
    if ended not in {"ECONNREFUSED", "EPERM"}:
        return f"{what} should be refused by `{attempt.by}`, and ended with {ended}"
    rules = [
        _by(event)
        for event in record.lane("connect") + record.lane("listen")
        if _is(event, attempt)
    ]
    if attempt.by not in rules:
        return f"{what} should be refused by `{attempt.by}`, and was by {rules}"
    return None


def _by(event: dict[str, object]) -> object:
    by = event.get("by")
    return by.get("rule") if isinstance(by, dict) else None


def _is(event: dict[str, object], attempt: Attempt) -> bool:
    if event.get("handling") != "refused":
        return False
    if attempt.kind == "unix":
        # a record has no home folder of anybody in it
        return str(event.get("destination")).replace("${home}", HOME) == attempt.host
    return (event.get("destination"), event.get("port")) == (_address(attempt), attempt.port)
