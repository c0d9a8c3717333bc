"""Paths of rules put in place when a run starts: folders, variables, links."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowproof.artifact.files import FileRow, PathSet
from flowproof.artifact.model import Rule
from flowproof.record.codes import Code
from flowproof.run.bind_paths import bound_rows

EXPECT = Rule("r", "expect no", "behaviour", "files", "authored", "expect no …", None, None)
ALLOW = Rule("r", "allow", "none", "files", "authored", "allow …", None, None)


def bound(
    inside: PathSet,
    cwd: str,
    environ: dict[str, str] | None = None,
    *,
    excepted: PathSet | None = None,
    rule: Rule = EXPECT,
) -> tuple[FileRow, list[tuple[Code, str]]]:
    reasons: list[tuple[Code, str]] = []
    row = FileRow(0, ("delete",), inside, excepted)
    (found,) = bound_rows((row,), (rule,), environ or {}, cwd, reasons)
    return found, reasons


def paths(kind: str, *written: str) -> PathSet:
    return PathSet(kind, tuple(sorted(written)))


def test_each_folder_that_a_path_may_begin_with(tmp_path: Path) -> None:
    environ = {"HOME": "/home/u", "TMPDIR": "/scratch", "DATA": "/data/"}
    written = paths("under", "${cwd}", "${cwd}/a", "~/b", "${tmp}/c", "${DATA}/d", "/e")
    found, reasons = bound(written, str(tmp_path), environ)
    top = str(tmp_path.resolve())
    expected = (top, f"{top}/a", "/home/u/b", "/scratch/c", "/data/d", "/e")
    assert (found.inside.paths, reasons) == (tuple(sorted(expected)), [])


def test_a_folder_that_is_a_link_is_resolved_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    top = str(tmp_path.resolve())
    found, _ = bound(paths("under", f"{tmp_path}/link"), "/")
    assert found.inside.paths == (f"{top}/real",)
    found, _ = bound(paths("at", f"{tmp_path}/link/*.txt"), "/")
    assert found.inside.paths == (f"{top}/real/*.txt",)


def test_one_file_that_is_a_link_is_the_link_and_what_it_leads_to(tmp_path: Path) -> None:
    """A delete is of the link, a write is of what it leads to; an exception is no wider than written."""
    (tmp_path / "link").symlink_to("real.txt")
    top = str(tmp_path.resolve())
    written = paths("at", f"{tmp_path}/link")
    both, link = (f"{top}/link", f"{top}/real.txt"), (f"{top}/link",)
    everything = paths("anywhere")
    assert bound(written, "/")[0].inside.paths == both
    assert bound(written, "/", rule=ALLOW)[0].inside.paths == link
    row, _ = bound(everything, "/", excepted=written)
    assert row.excepted is not None
    assert row.excepted.paths == link
    row, _ = bound(everything, "/", excepted=written, rule=ALLOW)
    assert row.excepted is not None
    assert row.excepted.paths == both


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, Code.VARIABLE_UNSET),
        ("", Code.VARIABLE_UNSET),
        ("else/where", Code.VARIABLE_INVALID),
        ("/a/../b", Code.VARIABLE_INVALID),
    ],
)
def test_a_variable_that_is_no_folder_stops_the_run(value: str | None, code: Code) -> None:
    environ = {} if value is None else {"DATA": value}
    _, reasons = bound(paths("under", "${DATA}/x"), "/", environ)
    assert [reason[0] for reason in reasons] == [code]
    assert "DATA" in reasons[0][1]
    assert value is None or len(value) < 2 or value not in reasons[0][1]


def test_a_folder_with_a_star_in_its_name_is_no_glob() -> None:
    """It would stand for other folders too."""
    _, reasons = bound(paths("at", "${cwd}/*.txt"), "/srv/a*b")
    assert [reason[0] for reason in reasons] == [Code.VARIABLE_INVALID]
    found, reasons = bound(paths("under", "${cwd}"), "/srv/a*b")
    assert (found.inside.paths, reasons) == (("/srv/a*b",), [])
