"""What `compile` emits to be read or linked: C that compiles, and a table over all targets."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from flowproof.cli.main import main
from flowproof.lower.seccomp.bpf import decode

PACK = """\
policy: p
rules:
  p.api: allow connect tcp to 10.0.0.0/24:443
  p.files: never delete under /srv
  p.rest: deny connect to anything else
"""
MAIN = """\
#include <stdio.h>
#include "filter.h"
int main(void) { return fwrite(flowproof_prog.filter, 8, flowproof_prog.len, stdout) == 0; }
"""


def _pack(folder: Path, text: str = PACK) -> str:
    path = folder / "p.policy.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("target", ["linux-x86_64", "linux-aarch64"])
def test_the_c_form_compiles_to_the_bytes_of_the_program(
    tmp_path: Path, target: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler is not None, "a C compiler is needed to try what is emitted as C"
    path = _pack(tmp_path, PACK.replace("  p.files: never delete under /srv\n", ""))
    assert main(["compile", path, "--target", target, "--emit", "c"]) == 0
    (tmp_path / "filter.h").write_bytes(capsysbinary.readouterr().out)
    (tmp_path / "main.c").write_text(MAIN)
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-o", "made", "main.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    made = subprocess.run([tmp_path / "made"], check=True, capture_output=True).stdout
    assert main(["compile", path, "--target", target, "--emit", "bin"]) == 0
    assert decode(made) == decode(capsysbinary.readouterr().out)


def test_windows_has_no_c_form(tmp_path: Path) -> None:
    assert main(["compile", _pack(tmp_path), "--target", "windows", "--emit", "c"]) == 2


def test_the_table_has_every_rule_and_every_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", _pack(tmp_path), "--target", "all"]) == 3  # nobody carries p.files
    lines = capsys.readouterr().out.splitlines()
    columns = next(line for line in lines if "windows" in line).split()
    assert columns == ["linux-x86_64", "linux-aarch64", "windows"]
    files = next(line for line in lines if line.split()[:1] == ["p.files"])
    assert files.split() == ["p.files", *["unsupported"] * 3]
    families = next(line for line in lines if line.split()[:1] == ["meaning:families"])
    assert families.split() == ["meaning:families", "exact", "exact", "not-applicable"]


def test_what_stops_no_compile_is_said_once_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _pack(tmp_path)
    assert main(["compile", path, "--target", "all"]) == 3
    table, said = capsys.readouterr()
    assert "meaning:families, windows: " in table
    assert "FP113" not in said
    assert "FP111" in said  # what stops it is said all the same
    assert main(["compile", path, "--target", "all", "--fidelity", "report"]) == 0
    assert "FP111" in capsys.readouterr().err
    assert main(["compile", path, "--target", "windows", "--fidelity", "report"]) == 0
    assert "FP113" in capsys.readouterr().err
    assert main(["compile", path, "--target", "all", "-o", str(tmp_path / "out")]) == 3
    assert "FP113" in capsys.readouterr().err


def test_the_table_is_there_as_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", _pack(tmp_path), "--target", "all", "--emit", "json"]
    assert main([*words, "--fidelity", "report"]) == 0
    table = json.loads(capsys.readouterr().out)
    rows = {row["subject"]: row for row in table["fidelity"]}
    assert rows["p.rest"]["windows"]["refusing"] == "exact"
    assert rows["p.files"]["linux-x86_64"]["counting"] == "unsupported"
    assert "p.policy.yaml" in rows["p.files"]["linux-x86_64"]["reason"]


def test_all_targets_go_to_one_folder(tmp_path: Path) -> None:
    path = _pack(tmp_path, PACK.replace("  p.files: never delete under /srv\n", ""))
    assert main(["compile", path, "--target", "all", "-o", str(tmp_path / "out")]) == 0
    names = {found.name for found in (tmp_path / "out").iterdir()}
    assert {"p.linux-x86_64.bpf", "p.linux-aarch64.bpf", "p.windows.json"} <= names
