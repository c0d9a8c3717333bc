"""Every fenced example of the documentation is run, and prints what the page says that it prints."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from doc_pages import ROOT, Block, blocks, checked, filled, run, typed, write
from jsonschema import Draft202012Validator

from flowproof.diagnostics import Report
from flowproof.resources import data
from flowproof.source.nodes import Mapping, Scalar, Sequence
from flowproof.source.yaml_nodes import load

PAGES = ("policy-language.md", "editors.md", "packs.md")
SETS = "sets:\n  crm: 203.0.113.10\n"
UNCHECKED = {"text", "lua"}
"""The grammar as a whole, which the parser's own tables are made from; an editor's own language."""


def found(name: str) -> list[Block]:
    return list(blocks((ROOT / "docs" / name).read_text(encoding="utf-8")))


def sentences(block: Block) -> list[str]:
    """Return the sentences of a block, one in each line, without the comments behind them."""
    return [re.sub(r" {2,}#.*$", "", line) for line in block.text.splitlines() if line.strip()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which a `flowproof` that is typed in a shell is this one."""
    program = tmp_path / "bin" / "flowproof"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m flowproof "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.mark.parametrize("name", PAGES)
def test_every_example_is_what_the_page_says(
    name: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--bless"):
        path = ROOT / "docs" / name
        path.write_text(filled(path.read_text(encoding="utf-8"), folder), encoding="utf-8")
    examples = found(name)
    ran = 0
    for block, following in zip(examples, [*examples[1:], None], strict=True):
        where = f"docs/{name}:{block.line}"
        match block.language:
            case "yaml":
                names = write([block], folder)
                # what is typed right below says itself what comes of it; a pack may stand in between
                if following is None or following.language not in {"console", "yaml"}:
                    code, printed = run(checked(names), folder)
                    assert code == 0, f"{where}\n{printed}"
            case "console":
                for command, expected in typed(block):
                    code, printed = run(command, folder)
                    assert printed == expected, f"{where}: `{command}`\n{printed}"
            case "control":
                for number, sentence in enumerate(sentences(block)):
                    alone = f"policy: p\n{SETS}rules:\n  r: |-\n    {sentence}\n"
                    (folder / f"{number}.policy.yaml").write_text(alone)
                    code, printed = run(f"flowproof check {number}.policy.yaml", folder)
                    assert "error[" not in printed, f"{where}: {sentence}\n{printed}"
            case "json":
                json.loads(block.text)
            case "toml":
                tomllib.loads(block.text)
            case language:
                assert language in UNCHECKED, where
        ran += 1
    assert ran >= 4


def test_the_page_shows_errors_of_each_stage() -> None:
    text = (ROOT / "docs" / "policy-language.md").read_text(encoding="utf-8")
    assert {code[0] for code in re.findall(r"error\[FP([0-9]{3})\]", text)} >= set("2345")


def test_every_flow_and_pack_of_the_pages_is_valid_for_an_editor(tmp_path: Path) -> None:
    schemas = {
        kind: json.loads(data("schema", f"{kind}.schema.json")) for kind in ("flow", "policy")
    }
    judged = 0
    for name in PAGES:
        for block in found(name):
            if block.language != "yaml":
                continue
            (file,) = write([block], tmp_path)
            report = Report()
            loaded = load((tmp_path / file).read_bytes(), file, report)
            if loaded is None or report.errors or "mistakes" in file:
                continue
            kind = "flow" if file.endswith(".flow.yaml") else "policy"
            errors = Draft202012Validator(schemas[kind]).iter_errors(plain(loaded[1]))
            assert [error.message for error in errors] == [], file
            judged += 1
    assert judged > 10


def plain(node: Scalar | Sequence | Mapping) -> object:
    match node:
        case Scalar():
            return node.text.value
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {key.text.value: plain(value) for key, value in node.entries}


@pytest.mark.parametrize("name", PAGES)
def test_prose_has_one_sentence_per_line(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for line in re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE).splitlines():
        if not line.startswith(("|", "*")):
            assert not re.search(r"[a-z`)][.] +[A-Z`]", line), line


def test_links_between_pages_lead_somewhere() -> None:
    for name in PAGES:
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / "docs" / target).exists(), target
