"""What authors get wrong, and all that they are told: code, place, underlined text and way out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bombs import BOMBS
from read import Case, cases, found, said

from flowproof.diagnostics import Report
from flowproof.ir.events import parse_event
from flowproof.ir.resolve import resolve_suite
from flowproof.source import yaml_nodes
from flowproof.source.decode import LIMIT
from flowproof.source.suite import load
from flowproof.source.yaml_events import pure_events

ROOT = Path(__file__).parents[2]
CASES = cases()
STAGES = ("source", "syntax", "ir")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_each_mistake_is_named_with_its_place_and_its_way_out(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [said(diagnostic) for diagnostic in found(case)] == case["found"]


def test_the_corpus_is_large_and_every_case_of_it_is_refused_or_warned_about() -> None:
    assert len(CASES) >= 300
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert all(case["found"] for case in CASES)


def test_most_mistakes_have_a_way_out_besides_what_is_expected() -> None:
    silent = [
        (case["id"], each["message"])
        for case in CASES
        for each in case["found"]
        if each["help"] is None and "expected" not in each["message"]
    ]
    assert not silent


def test_messages_are_one_line_lower_case_without_a_full_stop_and_without_type_names() -> None:
    for case in CASES:
        for each in case["found"]:
            for text in filter(None, (each["message"], each["help"])):
                assert text.isprintable(), text
                assert text.startswith(("`", "YAML")) or not text[0].isupper(), text
                assert not text.endswith("."), text
                ours = re.sub(r"`[^`]*`", "", text)  # without the author's words
                assert not re.search(r"\b(str|dict|NoneType|list object|Error)\b", ours), text


def by_other_means(folder: Path) -> set[str]:
    """Return codes of input that is too large for the corpus, or that is no file."""
    report = Report()
    parse_event("connect to nowhere", report)
    (folder / "large.flow.yaml").write_bytes(b"#" * (LIMIT + 1))
    load(str(folder / "large.flow.yaml"), report)
    for name in ("ports over addresses", "a set in many rules"):
        for file, data in BOMBS[name]().items():
            (folder / file).write_bytes(data)
        suite = load(str(folder / "x.flow.yaml"), report)
        assert suite is not None
        resolve_suite(suite, report)
    return {diagnostic.code for diagnostic in report}


def used(*stages: str) -> set[str]:
    """Return the codes that the source of the given stages names."""
    return {
        code
        for stage in stages
        for path in (ROOT / "flowproof" / stage).rglob("*.py")
        for code in re.findall(r'"(FP[0-9]{3})"', path.read_text(encoding="utf-8"))
    }


def test_every_code_of_the_front_has_an_input(tmp_path: Path) -> None:
    shown = {each["code"] for case in CASES for each in case["found"]}
    assert used(*STAGES) - shown - by_other_means(tmp_path) == set()


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "codes").glob("FP*.md")}
    assert used("") == pages


def test_the_file_is_written_as_the_tools_write_it() -> None:
    text = (Path(__file__).parent / "broken.json").read_text(encoding="utf-8")
    assert text == json.dumps(CASES, indent=1, ensure_ascii=False) + "\n"


def test_without_libyaml_the_same_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "events", pure_events)
    monkeypatch.chdir(tmp_path)
    different = {}
    for case in CASES:
        for file in tmp_path.iterdir():
            file.unlink()
        heard = [said(diagnostic) for diagnostic in found(case)]
        if heard != case["found"]:
            different[case["id"]] = heard
    assert different == {}
