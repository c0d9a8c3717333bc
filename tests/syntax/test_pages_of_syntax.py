"""Each diagnostic of reading and parsing has a page, and the examples on it do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flowproof.diagnostics import Diagnostic, Report
from flowproof.source.suite import load
from flowproof.syntax.parse import parse_destination, parse_destinations, parse_sentence

ROOT = Path(__file__).parents[2]
PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "codes").glob("FP[234]*.md"))}
# What a page cannot hold as an example: bytes that are not UTF-8, and 4 MiB.
WITHOUT_YAML = {"FP201", "FP202"}


def raised() -> set[str]:
    modules = [
        *(ROOT / "flowproof" / "source").glob("*.py"),
        *(ROOT / "flowproof" / "syntax").glob("*.py"),
    ]
    return {
        code
        for module in modules
        for code in re.findall(r'"(FP[0-9]{3})"', module.read_text("utf-8"))
    }


def example(code: str, kind: str) -> str:
    match = re.search(
        rf"\*\*{kind}\*\*\n\n```yaml\n(.*?\n)```\n", PAGES[code].read_text("utf-8"), re.DOTALL
    )
    assert match is not None, f"{code} has no example to {kind.lower()}"
    return match.group(1)


def found(text: str) -> list[Diagnostic]:
    path = Path("x.flow.yaml" if text.startswith("name:") else "x.policy.yaml")
    path.write_text(text, encoding="utf-8", newline="")
    report = Report()
    suite = load(str(path), report)
    for flow in suite.flows if suite else ():
        for entry in (flow.flow.agent and flow.flow.agent.allow_egress) or ():
            parse_destination(entry, report)
    for loaded in suite.packs if suite else ():
        for _name, members in loaded.pack.sets:
            for member in members:
                parse_destinations(member, report)
        for _id, sentence in loaded.pack.rules:
            parse_sentence(sentence, report)
    return list(report)


def test_every_code_that_is_raised_has_its_page_and_every_page_its_code() -> None:
    assert raised() == set(PAGES)
    assert len(PAGES) > 40


@pytest.mark.parametrize("code", PAGES)
def test_a_page_has_its_sections(code: str) -> None:
    text = PAGES[code].read_text("utf-8")
    assert re.match(rf"# {code}: [a-z`].*[^.]\n\n", text)
    places = [text.index(f"\n**{section}**\n") for section in ("Avoid", "Prefer", "Why")]
    assert places == sorted(places)
    assert text.endswith("\n")


@pytest.mark.parametrize("code", sorted(set(PAGES) - WITHOUT_YAML))
def test_what_a_page_says_to_avoid_is_what_it_is_about(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert code in {diagnostic.code for diagnostic in found(example(code, "Avoid"))}


@pytest.mark.parametrize("code", sorted(set(PAGES) - WITHOUT_YAML))
def test_what_a_page_prefers_is_right(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert found(example(code, "Prefer")) == []
