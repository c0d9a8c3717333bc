"""`flowproof check`: every mistake at once, lint, and what packs open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowproof.cli.main import main

FLOW = """\
name: T
agent: {{command: "true"}}
control:
  id: {id}
{uses}  rules:
{rules}
"""


def write(folder: Path, *rules: str, control: str = "t.f", uses: str = "") -> str:
    path = folder / f"{control}.flow.yaml"
    lines = "\n".join(f"    {control}.r{number}: {rule}" for number, rule in enumerate(rules))
    takes = f"  uses: [{uses}]\n" if uses else ""
    path.write_text(FLOW.format(id=control, uses=takes, rules=lines or "    {}"))
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    code = main(["check", *words, "--format", "json"])
    data = json.loads(capsys.readouterr().out)
    assert data["exit"]["code"] == code
    return code, data


def codes(data: dict[str, object]) -> list[str]:
    found = data["diagnostics"]
    assert isinstance(found, list)
    return [diagnostic["code"] for diagnostic in found]


def test_a_valid_flow_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "never connect to anything else")
    assert main(["check", path]) == 0
    assert capsys.readouterr().out == "1 document, nothing objectionable\n"


def test_every_error_of_every_file_comes_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "alow connect to 10.0.0.1", "deny connect to 10.0.0.256", control="t.a")
    write(tmp_path, "deny conect to 10.0.0.1", control="t.b")
    code, data = answer(capsys, str(tmp_path))
    assert code == 2
    found = data["diagnostics"]
    assert isinstance(found, list)
    assert [(Path(d["file"]).name, d["line"]) for d in found] == [
        ("t.a.flow.yaml", 6),
        ("t.a.flow.yaml", 7),
        ("t.b.flow.yaml", 6),
    ]


def test_errors_are_printed_with_place_and_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "alow connect to 10.0.0.1")
    assert main(["check", path]) == 2
    out = capsys.readouterr().out
    assert f"{path}:6:13: error[FP" in out
    assert "allow" in out


def test_a_control_without_rules_is_lint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, data = answer(capsys, write(tmp_path))
    assert (code, codes(data)) == (1, ["FP101"])


def test_a_control_that_only_observes_is_told_that_it_asserts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, data = answer(capsys, write(tmp_path, "observe connect to anything"))
    assert (code, codes(data)) == (0, ["FP101"])


def test_one_id_in_two_flows_of_a_suite_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(write(tmp_path, "never connect to anything else"))
    path.with_name("other.flow.yaml").write_text(path.read_text())
    code, data = answer(capsys, str(tmp_path))
    assert code == 2
    assert "FP501" in codes(data)


def test_what_a_pack_opens_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.policy.yaml").write_text(
        "policy: p\nrules:\n  index: allow connect to 203.0.113.7:443\n"
    )
    path = write(tmp_path, "never connect to anything else", uses="p.policy.yaml")
    code, data = answer(capsys, path)
    assert (code, codes(data)) == (0, ["FP102"])
    found = data["diagnostics"]
    assert isinstance(found, list)
    assert found[0]["file"].endswith("p.policy.yaml")
    assert "allow connect to 203.0.113.7:443" in found[0]["message"]


PACK = """\
policy: pk
rules:
  pk.rule: {rule}
  pk.far: deny connect to 192.0.2.1
"""


@pytest.mark.parametrize(
    ("rule", "what", "meaning"),
    [
        ("deny connect to anything else except unix:/run/a.sock", "unix:/run/a.sock", "unix"),
        ("deny listen on anything except anything:8080", "anything:8080", "listen"),
        ("never listen on anything:1-1023 except 192.0.2.7:80", "192.0.2.7:80", "listen"),
    ],
)
@pytest.mark.parametrize("command", ["check", "compile"])
def test_what_a_packs_refusal_excepts_from_a_fixed_meaning_is_noted(
    rule: str,
    what: str,
    meaning: str,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pk.policy.yaml").write_text(PACK.format(rule=rule))
    flow = write(tmp_path, "expect no connect to 192.0.2.2", uses="pk.policy.yaml")
    target = ["--target", "linux-x86_64"] if command == "compile" else []
    assert main([command, flow, *target]) == 0
    told = capsys.readouterr()
    words = told.err + (told.out if command == "check" else "")
    assert (
        f"pack `pk` widens control `t.f`: what `t.f/pk.rule` excepts is let through: {what}"
        in words
    )
    assert f"`t.f.implied.{meaning}`" in words


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        # a catch-all of the flow's own covers it, or a refusal that names it
        ("deny connect to anything else except unix:/run/a.sock", "deny connect to anything else"),
        ("deny connect to anything else except unix:/run/a.sock", "never connect to anything"),
        ("deny listen on anything except anything:8080", "deny listen on anything else"),
        ("deny listen on anything except anything:8080", "deny listen on anything:8000-9000"),
        # what is on loopback may be listened on anyway
        ("deny listen on 127.0.0.1 except 127.0.0.1:80", "deny connect to 192.0.2.2"),
        ("observe listen on anything except anything:8080", "deny connect to 192.0.2.2"),
    ],
)
def test_what_is_refused_or_let_through_anyway_is_not_noted(
    rule: str, more: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pk.policy.yaml").write_text(PACK.format(rule=rule))
    code, data = answer(capsys, write(tmp_path, more, uses="pk.policy.yaml"))
    assert (code, codes(data)) == (0, [])


def test_an_exception_that_a_run_binds_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pk.policy.yaml").write_text(PACK.format(rule="'deny listen except ${OURS}:80'"))
    code, data = answer(capsys, write(tmp_path, "observe listen", uses="pk.policy.yaml"))
    assert (code, codes(data)) == (0, ["FP102", "FP114"])  # and no target carries it


def test_an_exception_of_the_flows_own_is_no_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = ("deny listen on anything except anything:8080", "deny connect to 192.0.2.2")
    code, data = answer(capsys, write(tmp_path, *rules))
    assert (code, codes(data)) == (0, [])


def test_a_packs_catch_all_that_shrinks_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.policy.yaml").write_text(
        "policy: p\nrules:\n  rest: never connect to anything else\n"
    )
    path = write(tmp_path, "allow connect to 203.0.113.7:443", uses="p.policy.yaml")
    code, data = answer(capsys, path)
    assert (code, codes(data)) == (0, ["FP103"])
    closed = write(tmp_path, "deny connect to 203.0.113.7:443", control="t.g", uses="p.policy.yaml")
    assert codes(answer(capsys, closed)[1]) == []


def test_what_no_target_carries_is_noted_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "deny connect to ads.example.com", "never connect to anything else")
    code, data = answer(capsys, path)
    assert (code, codes(data)) == (0, ["FP114"])


def test_a_folder_without_flows_ends_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(capsys, str(tmp_path))[0] == 4
    assert main(["check", str(tmp_path)]) == 4
    captured = capsys.readouterr()
    assert "no flow in" in captured.err
    assert captured.out == "0 documents\n"


def test_a_path_that_is_not_there_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "no/such.flow.yaml")[0] == 2


def test_bytes_that_are_no_utf8_end_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    path.write_bytes(b"name: \xff\xfe\n")
    assert answer(capsys, str(path))[0] == 2


def test_the_shipped_packs_and_examples_are_valid(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[2]
    packs = [str(path) for path in sorted((root / "policies").glob("*.policy.yaml"))]
    code, data = answer(capsys, str(root / "examples"), *packs)
    assert (code, codes(data)) == (0, [])


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (["allow connect to 127.0.0.1:80", "never connect to anything else"], ["FP104"]),
        (["allow connect tcp to 203.0.113.7:443, localhost:80"], ["FP104"]),
        (["allow connect to [::1]:80"], ["FP104"]),
        (["allow connect to 127.0.0.1:80", "never connect to anything"], ["FP104"]),
        (["allow connect to loopback", "never connect to anything else"], []),
        (["allow connect to 203.0.113.7:443", "never connect to anything else"], []),
        (["never connect to loopback except 127.0.0.1:80"], []),
        (
            ["allow connect to 127.0.0.1:80", "deny connect to loopback except 127.0.0.1:80"],
            [],
        ),
        (["allow listen on 127.0.0.1:80", "deny connect to 192.0.2.2"], []),
    ],
)
def test_an_allow_of_some_of_loopback_is_noted_where_the_rest_stays_open(
    rules: list[str], found: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, data = answer(capsys, write(tmp_path, *rules))
    assert (code, codes(data)) == (0, found)
