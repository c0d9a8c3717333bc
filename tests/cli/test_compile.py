"""`flowproof compile`: what goes where, and what stops it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flowproof.artifact.codec import loads
from flowproof.cli.main import main
from flowproof.lower.seccomp.bpf import decode

FLOW = """\
name: T
agent: {{command: "true"}}
control:
  id: {id}
  rules:
    {id}.api: {rule}
    {id}.rest: never connect to anything else
"""
ALLOW = "allow connect to 203.0.113.0/24:443"
BY_NAME = "deny connect to ads.example.com"
ROOT = Path(__file__).parents[2]


def write(folder: Path, rule: str = ALLOW, control: str = "t.f", name: str = "t") -> str:
    path = folder / f"{name}.flow.yaml"
    path.write_text(FLOW.format(id=control, rule=rule))
    return str(path)


def test_the_listing_is_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", write(tmp_path), "--target", "linux-x86_64"]) == 0
    out = capsys.readouterr().out
    assert "t.f.rest" in out
    assert "jeq" in out


@pytest.mark.parametrize("target", ["linux-x86_64", "linux-aarch64", "windows"])
def test_a_folder_gets_its_files(tmp_path: Path, target: str) -> None:
    out = tmp_path / "out"
    assert main(["compile", write(tmp_path), "--target", target, "-o", str(out)]) == 0
    wanted = {f"t.{target}.json", f"t.{target}.txt"}
    if target.startswith("linux"):
        wanted.add(f"t.{target}.bpf")
    assert {path.name for path in out.iterdir()} == wanted
    artifact = loads((out / f"t.{target}.json").read_bytes())
    assert artifact.target == target
    if artifact.program is not None:
        code = decode((out / f"t.{target}.bpf").read_bytes())
        assert code == tuple((i.code, i.jt, i.jf, i.k) for i in artifact.program.instructions)


def test_flows_of_one_name_in_two_subfolders_keep_apart(tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    for sub in ("a", "b"):
        (flows / sub).mkdir(parents=True)
        write(flows / sub, control=f"t.{sub}")
    out = tmp_path / "out"
    assert main(["compile", str(flows), "--target", "windows", "-o", str(out)]) == 0
    assert (out / "a" / "t.windows.json").exists()
    assert (out / "b" / "t.windows.json").exists()


def test_the_artifact_and_the_ir_are_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    assert main(["compile", path, "--target", "linux-x86_64", "--emit", "json"]) == 0
    assert loads(capsys.readouterr().out).control == "t.f"
    assert main(["compile", path, "--target", "linux-x86_64", "--emit", "ir"]) == 0
    assert json.loads(capsys.readouterr().out)["control"] == "t.f"


def test_the_program_goes_to_standard_output_as_bytes(tmp_path: Path) -> None:
    path = write(tmp_path)
    out = tmp_path / "out"
    assert main(["compile", path, "--target", "linux-x86_64", "-o", str(out)]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "flowproof", "compile", path, "--target=linux-x86_64", "--emit=bin"],
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout == (out / "t.linux-x86_64.bpf").read_bytes()


def test_windows_has_no_program_to_emit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", write(tmp_path), "--target", "windows", "--emit", "bin"]) == 2
    assert "--emit json" in capsys.readouterr().err


def test_a_folder_without_o_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert main(["compile", str(tmp_path), "--target", "windows"]) == 2
    assert "-o DIR" in capsys.readouterr().err


def test_a_folder_without_flows_ends_with_4(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert main(["compile", str(tmp_path), "--target", "windows", "-o", out]) == 4


def test_a_rule_that_is_not_carried_stops_with_3_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, BY_NAME)
    out = tmp_path / "out"
    assert main(["compile", path, "--target", "linux-x86_64", "-o", str(out)]) == 3
    captured = capsys.readouterr()
    assert f"{path}:6:14: error[FP110]" in captured.err
    assert not out.exists()


def test_with_fidelity_report_the_artifact_says_what_is_not_carried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--target", "linux-x86_64", "--fidelity", "report", "--emit", "json"]
    assert main(["compile", write(tmp_path, BY_NAME), *words]) == 0
    captured = capsys.readouterr()
    rows = {row.subject: row.refusing for row in loads(captured.out).fidelity}
    assert rows["t.f.api"] == "over-permits"
    assert "note[FP110]" in captured.err


def test_an_error_in_a_file_ends_with_2(tmp_path: Path) -> None:
    assert main(["compile", write(tmp_path, "alow connect"), "--target", "windows"]) == 2


def test_hosts_bind_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# ours\n203.0.113.10  api.example.com  www.example.com # both\n")
    path = write(tmp_path, "allow connect to api.example.com:443")
    words = ["compile", path, "--target", "linux-x86_64", "--hosts", str(hosts)]
    assert main([*words, "--emit", "json"]) == 0
    artifact = loads(capsys.readouterr().out)
    assert dict(artifact.hosts) == {"api.example.com": ("203.0.113.10",)}


def test_a_name_that_hosts_does_not_bind_stops_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("203.0.113.10 other.example.com\n")
    path = write(tmp_path, "allow connect to api.example.com:443")
    assert main(["compile", path, "--target", "linux-x86_64", "--hosts", str(hosts)]) == 3
    assert "api.example.com" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "place", "word"),
    [
        (b"api.example.com 203.0.113.10\n", ":1:1", "is no address"),
        (b"\n203.0.113.10\n", ":2:1", "no name behind"),
        (b"203.0.113.10 \xff\n", "", "not UTF-8"),
    ],
)
def test_a_hosts_file_is_lines_of_address_and_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, place: str, word: str
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_bytes(content)
    path = write(tmp_path)
    assert main(["compile", path, "--target", "windows", "--hosts", str(hosts)]) == 2
    err = capsys.readouterr().err
    assert f"{place}: error[FP602]" in err or not place
    assert word in err


def test_a_hosts_file_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    words = ["--target", "windows", "--hosts", str(tmp_path / "none")]
    assert main(["compile", write(tmp_path), *words]) == 2


def test_what_cannot_be_written_ends_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    words = ["compile", write(tmp_path), "--target", "windows", "-o", str(blocked / "out")]
    assert main(words) == 4
    assert "cannot write" in capsys.readouterr().err


def test_the_way_of_compile_imports_nothing_slow(tmp_path: Path) -> None:
    code = (
        "import sys; from flowproof.cli.main import main;"
        f"assert main(['compile', {write(tmp_path)!r}, '--target', 'linux-x86_64']) == 0;"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    slow = {
        "argparse", "dataclasses", "inspect", "jinja2", "jsonschema", "lark", "logging", "pathlib",
        "rich", "subprocess", "tempfile", "traceback", "typing", "flowproof.run", "flowproof.audit",
    }  # fmt: skip
    assert slow & set(done.stderr.split()) == set()
