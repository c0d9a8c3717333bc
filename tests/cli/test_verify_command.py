"""`flowproof verify`, and the proof of a compile on the command line."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from flowproof.artifact.model import Artifact
from flowproof.cli.commands import compile as command
from flowproof.cli.main import main
from flowproof.lower.backend import compile_policy
from flowproof.values import replace

FLOW = """\
name: T
agent: {command: "true"}
control:
  id: t.f
  rules:
    t.f.api: allow connect to 203.0.113.0/24:443
    t.f.rest: never connect to anything else
"""
TARGET = "linux-aarch64" if platform.machine() == "aarch64" else "linux-x86_64"


@pytest.fixture
def flow(tmp_path: Path) -> str:
    path = tmp_path / "t.flow.yaml"
    path.write_text(FLOW)
    return str(path)


def _artifact(
    flow: str, capsys: pytest.CaptureFixture[str], *options: str, target: str = TARGET
) -> Path:
    assert main(["compile", flow, "--target", target, "--emit", "json", *options]) == 0
    path = Path(flow).with_name("a.json")
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize("target", ["linux-x86_64", "linux-aarch64", "windows"])
def test_an_artifact_says_what_was_proved(
    flow: str, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys, target=target)
    assert json.loads(path.read_text())["verification"].startswith("verified (")
    assert main(["verify", str(path), flow]) == 0
    assert "verified (" in capsys.readouterr().out


def test_without_its_proof_it_says_so_and_does_not_run(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys, "--no-verify")
    assert json.loads(path.read_text())["verification"] == "not verified"
    assert main(["run", str(path), "--", "true"]) == 3
    assert "--allow-unverified" in capsys.readouterr().err


def test_a_tampered_artifact_is_named_with_the_first_cell(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys)
    tampered = json.loads(path.read_text())
    for table in tampered["tables"]["ports"]:
        table["starts"] = [start - 1 if start == 443 else start for start in table["starts"]]
    path.write_text(json.dumps(tampered))
    assert main(["verify", str(path), flow]) == 1
    err = capsys.readouterr().err
    assert str(path) in err
    assert "connect tcp 203.0.113.0:442" in err
    assert "t.f.rest" in err


@pytest.mark.parametrize("digest", ["ir", "grammar", "file"])
def test_a_digest_that_is_another_is_named(
    flow: str, digest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys)
    tampered = json.loads(path.read_text())
    name = next(name for name in tampered["digests"] if name.startswith(digest))
    tampered["digests"][name] = "sha256:" + "0" * 64
    path.write_text(json.dumps(tampered))
    assert main(["verify", str(path), flow]) == 1
    assert "digests" in capsys.readouterr().err


def test_a_fidelity_that_is_made_better_is_named(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys, target="windows")
    tampered = json.loads(path.read_text())
    for row in tampered["fidelity"]:
        row["refusing"] = "exact"
    path.write_text(json.dumps(tampered))
    assert main(["verify", "--format", "json", str(path), flow]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["difference"]["part"] == "differences"  # which hang on what the fidelity states
    assert "fidelity of" in answer["claims"][0]


def _retold(what: str, artifact: dict[str, Any]) -> None:
    """Change what a reader is shown, and nothing that is decided by."""
    program, filters = artifact["program"], artifact["filters"]
    rule = next(one for one in artifact["rules"] if one["id"] == "t.f.rest")
    match what:
        case "place":
            rule["origin"]["line"] = 1
        case "pack":
            rule["origin"]["pack"] = "trusted"
        case "reason":
            artifact["fidelity"][0]["reason"] = "audited"
        case "words":
            program["instructions"][0]["words"] = "return ALLOW"
        case "causes":
            program["causes"]["connect"] = []
        case "cached":
            program["cached"] = []
        case "filter's rules":
            next(one for one in filters["filters"] if "t.f.rest" in one["rules"])["rules"] = []


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("place", "rules: t.f.rest is said to be written at line 1,"),
        ("pack", "of pack trusted, and it is at line"),
        ("reason", "`audited`; it is"),
        ("words", "program.instructions: 0 is said to be `return ALLOW`"),
        ("causes", "program.causes: other rules"),
        ("cached", "program.cached: []"),
        ("filter's rules", "is said to be for []; it is for ['"),
    ],
)
def test_what_only_a_reader_sees_is_compared_as_well(
    what: str, told: str, flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys, target="windows" if what.startswith("filter") else TARGET)
    tampered = json.loads(path.read_text())
    _retold(what, tampered)
    path.write_text(json.dumps(tampered))
    assert main(["verify", str(path), flow]) == 1
    assert told in capsys.readouterr().err


def test_an_artifact_of_the_same_file_by_another_path_is_the_same(
    flow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "elsewhere" / "t.flow.yaml"
    moved.parent.mkdir()
    moved.write_text(FLOW)
    for target in (TARGET, "windows"):
        capsys.readouterr()
        path = _artifact(flow, capsys, target=target)
        assert main(["verify", str(path), str(moved)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("filters", [{}, {"filters": [{}]}, {"filters": [{"conditions": [1]}]}])
def test_a_filter_set_of_another_shape_is_a_difference(
    flow: str, filters: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys, target="windows")
    tampered = json.loads(path.read_text())
    tampered["filters"] = {"session": {}, "sublayer": {}, **filters}
    path.write_text(json.dumps(tampered))
    assert main(["verify", str(path), flow]) in (1, 2)
    assert str(path) in capsys.readouterr().err


def test_a_prefix_of_thousands_of_digits_is_a_difference(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _artifact(flow, capsys, target="windows")
    tampered = json.loads(path.read_text())
    conditions = [c for f in tampered["filters"]["filters"] for c in f["conditions"]]
    masked = next(one for one in conditions if "/" in str(one["value"]))
    masked["value"] = masked["value"].partition("/")[0] + "/" + "9" * 5000
    path.write_text(json.dumps(tampered))
    assert main(["verify", str(path), flow]) == 1
    assert "FWP_E_INVALID_NET_MASK" in capsys.readouterr().err


def test_what_is_no_artifact_is_a_usage_error(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(flow).with_name("given.json")
    for content, says in ((b"{} x", "no JSON at line 1, column 4"), (b"\xff", "not UTF-8")):
        path.write_bytes(content)
        assert main(["verify", str(path), flow]) == 2
        err = capsys.readouterr().err
        assert "is no artifact" in err
        assert says in err


def test_an_artifact_behind_its_policy_is_told_the_order(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = str(_artifact(flow, capsys))
    assert main(["verify", flow, artifact]) == 2
    assert f"write `flowproof verify {artifact} {flow}`" in capsys.readouterr().err


def test_an_artifact_without_a_command_is_a_usage_error(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(_artifact(flow, capsys))]) == 2
    assert "give one behind" in capsys.readouterr().err


def test_an_artifact_for_another_machine_does_not_run(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(_artifact(flow, capsys, target="windows")), "--", "true"]) == 3
    assert "is for windows" in capsys.readouterr().err


def test_a_compiler_that_is_wrong_writes_nothing(
    flow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_policy

    def wrong(*arguments: object, **options: object) -> Artifact:
        artifact = compiled(*arguments, **options)  # type: ignore[arg-type]  # passed on as given
        special = {**artifact.tables.special, "families": 0}
        return replace(artifact, tables=replace(artifact.tables, special=special))

    monkeypatch.setattr(command, "compile_policy", wrong)
    out = tmp_path / "out"
    assert main(["compile", flow, "--target", TARGET, "-o", str(out)]) == 70
    assert not out.exists()
    err = capsys.readouterr().err
    assert "a bug in flowproof" in err
    assert "special families" in err
