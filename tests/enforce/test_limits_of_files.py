"""The limits that docs/security-model.md states of rules about files, each shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from evidence import FAIL, PASS
from stage import Ran, Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

limit = pytest.mark.limit


def folder(stage: Stage, name: str) -> Path:
    made = stage.folder / name
    made.mkdir()
    stage.own()
    return made


def rules(inside: Path, operations: str) -> dict[str, str]:
    return {"probe.files": f"expect no {operations} under {inside}"}


def passed(ran: Ran) -> bool:
    """Say whether the run passed: what it shows is outside of what is judged."""
    return (ran.record.verdict, ran.code) == (PASS, 0)


@limit("user-files")
def test_what_is_counted_is_not_prevented(stage: Stage) -> None:
    inside = folder(stage, "work")
    (inside / "a").write_text("x", encoding="ascii")
    ran = stage.contained(stage.flow(rules(inside, "delete"), ["rm", "-f", str(inside / "a")]))
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
    assert not (inside / "a").exists()


@limit("stale-paths")
def test_path_that_changes_meanwhile_is_told_as_it_was(stage: Stage) -> None:
    inside, beside = folder(stage, "work"), folder(stage, "side")
    command = stage.program("swapping.py", str(inside), str(beside), "600")
    ran = stage.contained(stage.flow(rules(inside, "delete"), command))
    told = {Path(str(e.get("path"))).name for e in ran.record.lane("files")}
    gone = ran.report["gone"]
    assert isinstance(gone, list)
    assert set(gone) - told, "every one of them was told, though another path was read"


@limit("other-names")
def test_file_by_another_name_is_another_file(stage: Stage) -> None:
    inside, beside = folder(stage, "work"), folder(stage, "side")
    (inside / "a").write_text("x", encoding="ascii")
    os.link(inside / "a", beside / "b")
    ran = stage.contained(
        stage.flow(rules(inside, "destroy, write"), ["sh", "-c", f": > {beside}/b"])
    )
    assert (inside / "a").read_text(encoding="ascii") == ""
    assert passed(ran), ran


@limit("open-files")
def test_file_that_was_open_before_is_written_unseen(stage: Stage) -> None:
    inside = folder(stage, "work")
    output = inside / "output"
    output.write_text("", encoding="ascii")
    stage.own()
    ran = stage.contained(
        stage.flow(rules(inside, "destroy, write"), ["sh", "-c", "echo written >&2"]),
        before=["sh", "-c", f'exec "$@" 2>>{output}', "sh"],
    )
    assert "written" in output.read_text(encoding="utf-8")
    assert passed(ran), ran


@limit("unseen-makers")
def test_socket_that_is_bound_makes_a_file_unseen(stage: Stage) -> None:
    inside = folder(stage, "work")
    code = f"import socket; socket.socket(socket.AF_UNIX).bind('{inside}/own')"
    ran = stage.contained(
        stage.flow(rules(inside, "destroy, write"), [stage.product.python, "-c", code])
    )
    assert (inside / "own").is_socket()
    assert passed(ran), ran
