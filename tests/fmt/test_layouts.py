"""Documents laid out at random: formatting keeps their meaning and their comments, and is done at once."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from flowproof.diagnostics import Report
from flowproof.fmt.document import formatted, meaning_of
from flowproof.source.suite import load

SENTENCES = (
    "deny  connect to 10.0.0.0/8:443,  API.example.com",
    "never connect to anything else",
    'deny connect to ::1 because "a: b #c"',
    "allow connect tcp,udp to " + ", ".join(f"10.{n}.0.0/16:{{80,443}}" for n in range(9)),
    'expect no delete under "a b", ${cwd}/x',
)


class Layout:
    """Writes one document, with every choice of layout taken at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def mark(self) -> str:
        return f"# c{self.random.randrange(10**9)}"

    def between(self, indent: int) -> str:
        kind = self.random.random()
        return f"{' ' * indent}{self.mark()}\n" if kind < 0.3 else "\n" if kind < 0.5 else ""

    def scalar(self, value: str, indent: int) -> str:
        behind = f"  {self.mark()}" if self.random.random() < 0.3 else ""
        margin = "\n" + " " * (indent + 2)
        plain = not re.search(': | #|"', value)
        doubled = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        chomp = self.random.choice(("", "-", "+"))
        return self.random.choice(
            (
                "'" + value.replace("'", "''") + "'" + behind,
                doubled + behind,
                margin + doubled + behind,
                f"|{chomp}{behind}{margin}{value}",
                f">{chomp}{behind}{margin}{margin.join(value.split()) if plain else value}",
                (margin.join(value.split()) if plain else doubled) + behind,
            )
        )

    def shuffled(self, entries: list[str], indent: int) -> str:
        self.random.shuffle(entries)
        return "".join(self.between(indent) + entry for entry in entries)

    def document(self) -> str:
        chosen = self.random.sample(SENTENCES, self.random.randrange(1, 5))
        rules = [f"    t.f.{n}: {self.scalar(s, 4)}\n" for n, s in enumerate(chosen)]
        titles = ("  title: on\n", "  title: |+\n    x\n\n\n", "  title: >\n    y\n    z\n")
        sets = f"    a: {self.scalar('10.0.0.1/32,LOCALHOST:80', 4)}\n    b:\n    - >\n      10.0.0.3\n"
        control = [
            "  id: t.f\n",
            self.random.choice(titles),
            "  rules:\n" + self.shuffled(rules, 4),
            "  sets:\n" + sets,
        ]
        agent = [
            "  command: x\n",
            "  cwd: |-\n    a\n",
            "  env: {A: b}\n",
            "  timeout: 5m # five\n",
        ]
        root = [
            "name: T\n",
            "control:\n" + self.shuffled(control, 2),
            "agent:\n" + self.shuffled(agent, 2),
            "steps:\n- prompt: |\n    hello\n",
        ]
        text = self.random.choice(("", "# head\n", "---\n")) + self.shuffled(root, 0)
        if self.random.random() < 0.2:
            text = text.rstrip("\n")
        return text.replace("\n", "\r\n") if self.random.random() < 0.2 else text


def form(path: Path) -> bytes:
    report = Report()
    suite = load(str(path), report)
    assert suite is not None
    meaning = meaning_of(suite.flows[0], report)
    assert meaning is not None
    assert not report.errors, list(report)
    return formatted(suite.flows[0], path.read_bytes(), meaning)


@pytest.mark.parametrize("seed", range(25))
def test_a_document_of_any_layout_is_formatted_once_and_for_all(seed: int, tmp_path: Path) -> None:
    text = Layout(seed).document()
    path = tmp_path / "x.flow.yaml"
    path.write_bytes(text.encode())
    once = form(path)
    path.write_bytes(once)
    assert form(path) == once
    comments = r"# (?:c[0-9]+|head|five)"
    found = once.decode()
    assert sorted(re.findall(comments, found)) == sorted(re.findall(comments, text))
    keys = re.findall(r"^(name|agent|control|steps):", found, re.MULTILINE)
    if text.endswith("\n"):
        assert keys == ["name", "agent", "control", "steps"]
