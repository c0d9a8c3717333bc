"""``flowproof packs``: what ships is listed by its title, printed as it is, and can be copied and used."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from flowproof.cli.commands.packs import pack_names
from flowproof.cli.main import main
from flowproof.resources import data_path

ROOT = Path(__file__).parents[2]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["packs", *words]) == 0
    return capsys.readouterr().out.rstrip("\n")


def test_every_shipped_file_is_a_pack_of_its_name() -> None:
    files = sorted(os.listdir(data_path("policies")))
    assert files == [f"{name}.policy.yaml" for name in pack_names()]
    for name in pack_names():
        assert (
            f"\npolicy: {name}\n" in Path(data_path("policies", f"{name}.policy.yaml")).read_text()
        )


def test_the_packs_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row.split(maxsplit=1) for row in printed(capsys).splitlines()]
    assert [name for name, _ in rows] == pack_names()
    assert ["no-egress", "Nothing leaves"] in rows


@pytest.mark.parametrize("name", pack_names())
def test_a_pack_is_printed_as_it_is_shipped(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = printed(capsys, name, "--path")
    assert Path(path).read_text(encoding="utf-8").rstrip("\n") == printed(capsys, name)


def test_an_unknown_pack_gets_a_near_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["packs", "no-egres"]) == 2
    assert "did you mean `no-egress`?" in capsys.readouterr().err


def test_a_name_that_is_a_path_leads_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["packs", "../policies/no-egress"]) == 2
    assert "no pack is named" in capsys.readouterr().err


def test_copied_packs_check_wherever_they_lie(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(printed(capsys, "--path"), tmp_path / "packs")
    for name in pack_names():
        assert main(["check", str(tmp_path / "packs" / f"{name}.policy.yaml")]) == 0, name


def test_the_page_of_packs_has_a_row_for_each() -> None:
    page = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
    assert [name for name in pack_names() if f"\n| `{name}` |" not in page] == []


@pytest.mark.parametrize("target", ["linux-x86_64", "linux-aarch64"])
@pytest.mark.parametrize("name", pack_names())
def test_a_shipped_pack_is_carried_exactly(
    name: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", data_path("policies", f"{name}.policy.yaml"), "--target", target]) == 0
    assert "error[" not in capsys.readouterr().err


def test_a_pack_of_packs_that_was_copied_alone_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(printed(capsys, "baseline", "--path"), tmp_path)
    assert main(["check", str(tmp_path / "baseline.policy.yaml")]) == 2
    assert "cloud-metadata.policy.yaml" in capsys.readouterr().out
