"""Every code has a page, every page a code, and their examples are what they say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from doc_pages import ROOT, outcome, parts

PAGES = {path.stem: path for path in sorted((ROOT / "docs" / "codes").glob("FP*.md"))}


def used() -> dict[str, str]:
    """Return the codes that stand in the package, each with a file that uses it."""
    found = {}
    for path in sorted((ROOT / "flowproof").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and re.fullmatch(r"FP[0-9]{3}", value):
                found[value] = str(path.relative_to(ROOT))
    return found


def test_codes_are_found_in_the_package() -> None:
    assert len(used()) > 50


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    codes = used()
    assert {code: file for code, file in codes.items() if code not in PAGES} == {}
    assert set(PAGES) - set(codes) == set()


@pytest.mark.parametrize("code", PAGES)
def test_a_page_says_what_it_is_about_and_why(code: str) -> None:
    page = PAGES[code].read_text(encoding="utf-8")
    title, _, rest = page.partition("\n")
    assert re.fullmatch(rf"# {code}: [^A-Z`]?.*[^.]", title), title
    assert rest.lstrip().partition("**Avoid**")[0].strip(), "what it means"
    assert list(parts(page)) == ["Avoid", "Prefer", "Why"]
    assert parts(page)["Why"].strip()
    for line in _prose(page):
        assert not re.search(r"[a-z`)][.] +[A-Z`]", line), f"one sentence per line: {line}"


def _prose(page: str) -> list[str]:
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE).splitlines()


@pytest.mark.parametrize("code", PAGES)
def test_what_a_page_avoids_gives_its_code(code: str, tmp_path: Path) -> None:
    _, printed = outcome(parts(PAGES[code].read_text(encoding="utf-8"))["Avoid"], tmp_path)
    assert f"[{code}]" in printed, printed


@pytest.mark.parametrize("code", PAGES)
def test_what_a_page_prefers_is_accepted(code: str, tmp_path: Path) -> None:
    codes, printed = outcome(parts(PAGES[code].read_text(encoding="utf-8"))["Prefer"], tmp_path)
    assert set(codes) == {0}, printed
    assert f"[{code}]" not in printed, printed
    assert "error[" not in printed
    assert "warning[" not in printed
