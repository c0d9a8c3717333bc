"""Markdown pages as examples that run: fenced YAML is a file, a fenced console what is typed and printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from flowproof.cli.main import main

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"# (\S+\.(?:flow|policy)\.yaml)\n")


class Block(NamedTuple):
    """A fenced block: its language, its text and its line in the page."""

    language: str
    text: str
    line: int


class Typed(NamedTuple):
    """A command of a console block, and what the page says that it prints (empty: anything)."""

    command: str
    printed: str


def blocks(page: str, offset: int = 0) -> Iterator[Block]:
    """Yield the fenced blocks of a page, or of a part of one that begins behind line *offset*."""
    for match in _FENCE.finditer(page):
        yield Block(match[1], match[2], offset + page.count("\n", 0, match.start()) + 1)


def parts(page: str) -> dict[str, str]:
    """Return the parts of a page of a code by their headings: Avoid, Prefer, Why."""
    pieces = re.split(r"^\*\*(Avoid|Prefer|Why)\*\*$", page, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def as_file(block: Block) -> tuple[str, str]:
    """Return the name and the content of the file that a YAML block is.

    A block may begin with its name. One that begins within a document (`rules:`, `control:`) gets what
    is missing at its end, so that its lines keep their numbers.
    """
    named = _NAME.match(block.text)
    if named:
        return named[1], block.text
    if re.match(r"(#.*\n)*(rules|sets|uses):", block.text):
        return "page.policy.yaml", block.text + "policy: page\n"
    if re.match(r"(#.*\n)*(control|agent|steps):", block.text):
        return "page.flow.yaml", block.text + "name: Page\n"
    is_pack = re.search(r"^policy:", block.text, re.MULTILINE)
    return ("page.policy.yaml" if is_pack else "page.flow.yaml"), block.text


def typed(block: Block) -> list[Typed]:
    """Return the commands of a console block: a line behind `$ `, and what stands below it."""
    found = []
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, printed = piece.partition("\n")
        found.append(Typed(command, printed))
    return found


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a typed command in *folder*; return its exit code and what it printed, errors included."""
    words = shlex.split(command)
    if words[0] != "flowproof" or ">" in words:
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        code = main(words[1:])
    printed.seek(0)
    return code, printed.read()


def write(found: list[Block], folder: Path) -> list[str]:
    """Write the files of a page's blocks; return the names of flows and packs."""
    names = []
    for block in found:
        if block.language == "yaml":
            name, content = as_file(block)
            names.append(name)
        elif block.language == "hosts":
            name, content = "hosts", block.text
        else:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return names


def checked(names: list[str]) -> str:
    """Return the command that checks the files of an example."""
    flows = [name for name in names if name.endswith(".flow.yaml")]
    if len(flows) > 1:
        return "flowproof check ."
    return f"flowproof check {(flows or names)[0]}"


def outcome(part: str, folder: Path) -> tuple[list[int], str]:
    """Return the exit codes and the prints of an example: of its commands, or of a check of its files."""
    found = list(blocks(part))
    names = write(found, folder)
    commands = [each for block in found if block.language == "console" for each in typed(block)]
    commands = commands or [Typed(checked(names), "")]
    codes, prints = [], []
    for command, expected in commands:
        code, printed = run(command, folder)
        if expected and printed != expected:
            pytest.fail(f"`{command}` prints\n{printed}\nand the page says\n{expected}")
        codes.append(code)
        prints.append(printed)
    return codes, "".join(prints)


def filled(page: str, folder: Path) -> str:
    """Return a page with what its commands print now below each of them."""

    def example(match: re.Match[str]) -> str:
        block = Block(match[1], match[2], 0)
        if block.language == "yaml":
            write([block], folder)
        if block.language != "console":
            return match[0]
        ran = [(each.command, run(each.command, folder)[1]) for each in typed(block)]
        return "```console\n" + "".join(f"$ {command}\n{text}" for command, text in ran) + "```"

    return _FENCE.sub(example, page)
