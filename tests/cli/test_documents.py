"""The documents that a newcomer reads first say what the code says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from flowproof.artifact.model import Program
from flowproof.cli.commandline import COMMANDS
from flowproof.cli.main import main
from flowproof.exit_codes import ExitCode
from flowproof.record.lanes import LANES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_flow_of_the_readme_is_valid_and_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "bot.flow.yaml").write_text(block)
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "bot.flow.yaml"]) == 0
    assert main(["compile", "bot.flow.yaml", "--target", "linux-x86_64"]) == 0
    assert main(["explain", "bot.flow.yaml", "connect tcp 198.51.100.7:443"]) == 0
    assert "crm.exports.nothing-else" in capsys.readouterr().out


def test_the_flow_of_the_readme_runs_where_the_readme_makes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (steps,) = re.findall(r"```\n(\. flowproof/.*?)```", README, re.DOTALL)
    activate, *made = steps.splitlines()
    assert activate == ". flowproof/.venv/bin/activate"
    (tmp_path / "flowproof").symlink_to(ROOT)
    subprocess.run(["sh", "-euc", "\n".join(made)], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "bot")
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    Path("bot.flow.yaml").write_text(block)
    assert main(["check", "."]) == 0
    assert Path("bot.py").is_file()


def test_the_readme_says_what_it_is_in_ten_lines() -> None:
    head = README.split("## ")[0].split("\n", 1)[1]
    assert len(head.strip().splitlines()) == 10


def test_the_scripts_of_the_readme_are_there() -> None:
    for script in re.findall(r"sh flowproof/(scripts/\S+)", README):
        assert (ROOT / script).is_file()


def test_every_command_of_the_readme_exists() -> None:
    named = set(re.findall(r"`flowproof ([a-z]+)", README))
    assert named <= set(COMMANDS)
    assert {"check", "compile", "explain", "run", "audit", "doctor"} <= named


def test_the_table_of_exit_codes_is_the_enum() -> None:
    text = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(c.value, c.name) for c in ExitCode]


def test_the_architecture_names_every_lane_and_part_of_a_program() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for lane in LANES:
        assert f"`{lane}`" in text
    assert "trapped" in text
    assert set(Program.__fields__) >= {"trapped", "fixed", "refused"}


def test_links_of_the_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"
