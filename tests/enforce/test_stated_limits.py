"""Each limit that docs/security-model.md states has a test, and no test shows one that it does not state."""

from __future__ import annotations

from pathlib import Path

from limits import carried, limits_without_id, stated

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security-model.md").read_text(encoding="utf-8")

EXAMPLE = """# Page

## What holds
* `nothing`: **here**

## What does not hold
Some words.

* `one`: **A limit.**
  More of it.
* **Another** without an id

## What a verdict says
* `later`: **not a limit**
"""


def test_every_limit_has_an_id_of_its_own() -> None:
    ids = stated(PAGE)
    assert len(ids) == len(set(ids)) > 10
    assert limits_without_id(PAGE) == 0


def test_every_limit_has_a_test_and_every_such_test_a_limit() -> None:
    shown = carried(TESTS)
    assert sorted(set(stated(PAGE)) - set(shown)) == [], "limits that no test shows"
    assert sorted(set(shown) - set(stated(PAGE))) == [], "tests of limits that are not stated"


def test_entries_are_read_from_their_section_alone() -> None:
    assert stated(EXAMPLE) == ["one"]
    assert limits_without_id(EXAMPLE) == 1


def test_marks_are_read_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        'import pytest\nlimit = pytest.mark.limit\n@limit("a", "b")\ndef test_x(): ...\n'
        '@pytest.mark.limit("c")\ndef test_y(): ...\n@pytest.mark.case("d")\ndef test_z(): ...\n'
    )
    assert carried(tmp_path) == {
        "a": ["test_it.py::test_x"],
        "b": ["test_it.py::test_x"],
        "c": ["test_it.py::test_y"],
    }
