"""Throw input at the front of the compiler: `python -m tests.fuzz --minutes 10`, or `--count 500 --seed 7`.

Whatever the bytes, reading, resolving, printing and judging end with diagnostics or a policy: no exception,
no second per 100 kB, no 300 MB. A child does the work, so that a hang and a full memory are seen from
outside; an input that breaks a promise is written to a folder and named.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bombs import BOMBS, HEAD, Files  # noqa: E402  the path comes first

from flowproof.diagnostics import Report  # noqa: E402
from flowproof.ir.evaluate import evaluate  # noqa: E402
from flowproof.ir.events import parse_event  # noqa: E402
from flowproof.ir.resolve import resolve_suite  # noqa: E402
from flowproof.ir.serialize import digest  # noqa: E402
from flowproof.source.suite import load  # noqa: E402
from flowproof.syntax.tables import TABLES  # noqa: E402

SECONDS_PER_100_KB = 1.0
MEGABYTES = 300

EVENTS = [
    *(
        "connect tcp 10.0.0.9:443",
        "connect udp [2001:db8::1]:53",
        "connect tcp api.example.com:443",
    ),
    *("connect unix:/run/x.sock", "inside unix:@bus", "probe udp 10.0.0.9:53", "socket packet"),
    *("listen tcp 0.0.0.0:8080", "foreign connect", "delete /srv/a.txt", "truncate /srv/a"),
    *("rename /srv/a.txt -> /srv/b.txt (replaces)", "write ${cwd}/a"),
]


def allowed_seconds(files: Files) -> float:
    """Return how long the input may take: a second per 100 kB, and never less than one."""
    return SECONDS_PER_100_KB * max(1.0, sum(map(len, files.values())) / 100_000)


def examine(files: Files, folder: Path, events: list[str]) -> str:
    """Read and judge *files* as a command would; return in a word what came of it."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    path = str(folder / ("x.flow.yaml" if "x.flow.yaml" in files else min(files)))
    report = Report()
    suite = load(path, report)
    resolved = () if suite is None else resolve_suite(suite, report)
    for diagnostic in list(report):
        assert diagnostic.message, diagnostic
        assert diagnostic.message.isprintable(), diagnostic
        assert diagnostic.exit in {2, 3}, diagnostic
        for span in (diagnostic.span, *(place for place, _ in diagnostic.related)):
            if span is not None:
                assert 0 <= span.start <= span.end <= len(span.source.text), diagnostic
                assert span.line >= 1, diagnostic
                assert 1 <= span.column <= len(span.source.line(span.line)) + 2, diagnostic
    assert bool(resolved) or report.errors, "no policy and no error"
    for each in resolved:
        assert digest(each.policy).startswith("sha256:")
        for text in events:
            event = parse_event(text, Report())
            if event is not None:
                evaluate(each.policy, event)
    for text in events:
        parse_event(text, Report())
    return "policy" if resolved else "errors"


# Mutations -------------------------------------------------------------------------------------------

_BYTES = [
    b"\t",
    b"\r",
    b"\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b'"',
    b"'",
    b": ",
    b" #",
    b"- ",
    b"[",
    b"]",
]
_BYTES += [
    b"{",
    b"}",
    b"&a ",
    b"*a",
    b"!t ",
    b"|",
    b">",
    b"%",
    b"@",
    b"`",
    b"\\",
    b"?",
    b"\xc2\x85",
    b"  ",
]
_BYTES += [
    "\u2028".encode(),
    "é".encode(),
    "\ufeff".encode(),
    b"---\n",
    b"...\n",
    b"<<: ",
    b"~",
    b"null",
]
_TOKENS = [
    *TABLES.keywords,
    ",",
    ":443",
    ":{80,443}",
    "@crm",
    "${X}",
    "${cwd}/a",
    "unix:/x",
    "unix:@b",
]
_TOKENS += [
    "10.0.0.1",
    "10.0.0.0/8",
    "[::1]:443",
    "::1",
    "*.a.example",
    "a.example:1-9",
    '"db"',
    "/srv/**",
]
_TOKENS += [
    "~/x",
    "::ffff:10.0.0.1",
    "999.1.1.1",
    "0x1",
    "bücher.example",
    "xn--a",
    '"',
    "{",
    "}",
    "[",
    "?",
]


def mutate(data: bytes, choose: random.Random, pool: list[bytes]) -> bytes:
    """Return *data* with a few changes: bytes, tokens, lines, indentation, or a piece of another input."""
    for _ in range(choose.choice((1, 1, 1, 2, 3, 6))):
        at = choose.randint(0, len(data))
        match choose.randrange(9):
            case 0:
                data = data[:at] + choose.choice(_BYTES) + data[at + choose.choice((0, 0, 1)) :]
            case 1:
                data = data[:at] + bytes([choose.randrange(256)]) + data[at + 1 :]
            case 2:
                data = data[:at] + b" " + choose.choice(_TOKENS).encode() + b" " + data[at:]
            case 3:
                stop = at + choose.randint(0, 12)
                data = data[:at] + data[stop:]
            case 4:
                stop = at + choose.randint(0, 40)
                data = data[:stop] + data[at:stop] * choose.choice((1, 2, 40)) + data[stop:]
            case 5 | 6:
                lines = data.split(b"\n")
                here, there = choose.randrange(len(lines)), choose.randrange(len(lines))
                if choose.random() < 0.5:
                    lines[here], lines[there] = lines[there], lines[here]
                else:
                    lines[here] = b" " * choose.randrange(9) + lines[here].lstrip()
                data = b"\n".join(lines)
            case 7:
                words = data.split(b" ")
                here = choose.randrange(len(words))
                words[here] = choose.choice(_TOKENS).encode()
                data = b" ".join(words)
            case _:
                other = choose.choice(pool)
                begin = choose.randint(0, len(other))
                data = data[:at] + other[begin : begin + choose.randint(0, 200)] + data[at:]
    return data[:400_000]


def salad(choose: random.Random) -> bytes:
    """Return a flow whose sentences are words of the language in any order."""
    lines = []
    for at in range(choose.randint(1, 8)):
        words = [choose.choice(_TOKENS) for _ in range(choose.randint(1, 14))]
        start = choose.choice(
            (["allow", "connect", "to"], ["deny", "delete", "under"], ["never", "listen"], [])
        )
        lines.append(f"    r.{at}: {' '.join([*start, *words])}\n")
    sets = "  sets:\n    crm: 10.0.0.1:443, @crm\n" * choose.choice((0, 1))
    return (HEAD + sets + "  rules:\n" + "".join(lines)).encode()


def seeds() -> list[Files]:
    """Return the vectors and the corpus as input."""
    found: list[Files] = []
    for path in sorted((ROOT / "tests" / "vectors").glob("*.json")):
        for vector in json.loads(path.read_text(encoding="utf-8")):
            if "files" not in vector:
                continue
            files = {name: text.encode() for name, text in vector["files"].items()}
            files |= {n: base64.b64decode(t) for n, t in vector.get("files_b64", {}).items()}
            found.append({os.path.basename(name): data for name, data in files.items()})
    return found


def some_bombs(only: str) -> int:
    """Keep the bombs whose name holds *only*; return how many there are."""
    for name in [name for name in BOMBS if only not in name]:
        del BOMBS[name]
    return len(BOMBS)


def cases(seed: int) -> Iterator[tuple[str, Files, list[str]]]:
    """Yield names, input and events without end: bombs first, then mutations."""
    for name, build in BOMBS.items():
        yield f"bomb {name}", build(), ["delete /" + "a" * 60 + "/a" * 60]
    start = seeds()
    pool = [data for files in start for data in files.values()]
    at = 0
    while True:
        choose = random.Random(f"{seed}:{at}")
        files = dict(choose.choice(start))
        if choose.random() < 0.2:
            files["x.flow.yaml"] = salad(choose)
        name = choose.choice(sorted(files))
        if choose.random() < 0.85:
            files[name] = mutate(files[name], choose, pool)
        event = mutate(choose.choice(EVENTS).encode(), choose, pool).decode("utf-8", "replace")
        yield f"mutation {seed}:{at}", files, [choose.choice(EVENTS), event]
        at += 1


# Running ---------------------------------------------------------------------------------------------


def tried(files: Files, folder: Path, events: list[str]) -> tuple[str, float]:
    """Return what came of *files*, and the seconds of processor time that it took."""
    before = time.process_time()
    try:
        outcome = examine(files, folder, events)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the find
        outcome = "raised " + "".join(traceback.format_exception(error))[-3000:]
    return outcome, time.process_time() - before


def slowness() -> float:
    """Return how much slower than by itself this machine is now: others compute on it too."""
    before = time.process_time()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (time.process_time() - before) / 0.06)


def work(seed: int, skip: int, out: int) -> None:
    """Examine cases from number *skip* on, telling the parent of each beginning and end."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        for number, (name, files, events) in enumerate(cases(seed)):
            if number < skip:
                continue
            os.write(out, f"{number}\tbegin\t{allowed_seconds(files):.2f}\t{name}\n".encode())
            outcome, took = tried(files, folder, events)
            if took > allowed_seconds(files):  # by itself, or by who else uses the machine?
                again = [tried(files, folder, events)[1] / slowness() for _ in range(2)]
                took = min(took, *again)
                if took > allowed_seconds(files):
                    outcome = f"slow {took:.2f} s"
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            for file in folder.iterdir():
                file.unlink()
            os.write(out, f"{number}\tend\t{peak}\t{json.dumps(outcome)[:3500]}\n".encode())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Hunt:
    """Runs a child that works, watches its time and memory, and collects what breaks a promise."""

    def __init__(self, seed: int, keep: Path | None) -> None:
        self.seed = seed
        self.keep = keep
        self.done = 0
        self.outcomes: dict[str, int] = {}
        self.finds: list[str] = []
        self.peak = 0

    def run(self, count: int | None, until: float | None) -> None:
        while not self._over(count, until):
            self._child(count, until)

    def _over(self, count: int | None, until: float | None) -> bool:
        return (count is not None and self.done >= count) or (
            until is not None and time.monotonic() > until
        )

    def _child(self, count: int | None, until: float | None) -> None:
        """Let one child work until the end, or until a find that it does not survive."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            # twice what is promised: who takes more than that is stopped before the machine suffers
            resource.setrlimit(resource.RLIMIT_AS, (2 * MEGABYTES << 20, 2 * MEGABYTES << 20))
            work(self.seed, self.done, write)
            os._exit(0)
        os.close(write)
        try:
            self._watch(read, count, until)
        finally:
            os.close(read)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def _watch(self, read: int, count: int | None, until: float | None) -> None:
        buffer = b""
        current, wait = "the start", 10.0
        while not self._over(count, until):
            ready, _, _ = select.select([read], [], [], wait)
            more = os.read(read, 65536) if ready else b""
            if not more:
                self._find(current, f"hung for {wait:.0f} s" if not ready else "the process died")
                self.done += 1
                return
            buffer += more
            while b"\n" in buffer:
                line, buffer = buffer.split(b"\n", 1)
                _number, kind, figure, text = line.decode().split("\t", 3)
                if kind == "begin":
                    # wall time of a shared machine: tried three times, ten times what the processor may take
                    current, wait = text, 30 * float(figure) + 10
                    continue
                self.done += 1
                if self._judge(
                    current, int(figure), json.loads(text) if text.endswith('"') else text
                ):
                    return

    def _judge(self, name: str, peak: int, outcome: str) -> bool:
        """Count an outcome; tell whether the child is to be replaced."""
        word = outcome.split(maxsplit=1)[0]
        self.outcomes[word] = self.outcomes.get(word, 0) + 1
        if word in {"raised", "slow"}:
            self._find(name, outcome)
        if peak > MEGABYTES:
            self._find(name, f"took {peak} MB")
            return True
        self.peak = max(self.peak, peak)
        return False

    def _find(self, name: str, what: str) -> None:
        self.finds.append(f"{name}: {what}")
        print(f"FOUND {name}: {what}", flush=True)
        if self.keep is not None:
            files = next(files for each, files, _ in cases(self.seed) if each == name)
            folder = self.keep / "".join(c if c.isalnum() else "-" for c in name)
            folder.mkdir(parents=True, exist_ok=True)
            for file, data in files.items():
                (folder / file).write_bytes(data)


def main() -> int:
    """Run the fuzzer; exit 1 if anything broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long (default: by --count)")
    parser.add_argument("--count", type=int, help="how many inputs, bombs first (default 1000)")
    parser.add_argument(
        "--seed", type=int, default=None, help="default: the clock, and it is printed"
    )
    parser.add_argument("--only", default="", help="only bombs whose name holds this")
    parser.add_argument("--keep", type=Path, help="a folder for what breaks a promise")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int(time.time())
    until = time.monotonic() + 60 * given.minutes if given.minutes else None
    count = given.count if given.count or until else 1000
    if given.only:
        count = some_bombs(given.only)
    hunt = Hunt(seed, given.keep)
    hunt.run(count, until)
    shown = ", ".join(f"{word} {number}" for word, number in sorted(hunt.outcomes.items()))
    print(
        f"seed {seed}: {hunt.done} inputs ({shown}), peak {hunt.peak} MB, {len(hunt.finds)} finds"
    )
    return 1 if hunt.finds else 0


if __name__ == "__main__":
    sys.exit(main())
