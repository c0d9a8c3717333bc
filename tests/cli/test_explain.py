"""`flowproof explain`: the rule that handles an event with its place, and the page of a code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flowproof.cli.main import main
from flowproof.resources import data_path

FLOW = """\
name: T
agent: {command: "true"}
control:
  id: t.f
  uses: [pack.policy.yaml]
  rules:
    t.f.api: allow connect to 203.0.113.0/24:443
    t.f.rest: never connect to anything else
"""
PACK = 'policy: p\nrules:\n  meta: deny connect to metadata because "credentials"\n'


@pytest.fixture
def flow(tmp_path: Path) -> str:
    (tmp_path / "pack.policy.yaml").write_text(PACK)
    path = tmp_path / "t.flow.yaml"
    path.write_text(FLOW)
    return str(path)


def test_the_handling_rule_is_named_with_its_place(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", flow, "connect tcp 198.51.100.1:443"]) == 0
    out = capsys.readouterr().out
    assert f"refused and counted by `t.f.rest` ({flow}:8:15)" in out
    assert "never connect to anything else" in out
    assert "an attempt makes control `t.f` fail" in out


def test_a_rule_of_a_pack_is_named_with_the_packs_file(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", flow, "connect tcp 169.254.169.254:80"]) == 0
    out = capsys.readouterr().out
    assert "refused by `t.f/meta`" in out
    assert "pack.policy.yaml:3:9, pack `p`" in out
    assert "counted by `t.f.rest`" in out


def test_json_has_what_the_language_says(flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", flow, "connect tcp 203.0.113.9:443", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {key: answer[key] for key in ("event", "handling", "by", "asserting", "verdict")} == {
        "event": "connect tcp 203.0.113.9:443",
        "handling": "let-through",
        "by": "t.f.api",
        "asserting": [],
        "verdict": "none",
    }
    assert answer["exit"]["code"] == 0
    assert answer["rules"]["t.f.api"]["line"] == 7


def test_an_event_needs_no_quotes(flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", flow, "connect", "tcp", "198.51.100.1:443"]) == 0
    assert "t.f.rest" in capsys.readouterr().out


def test_a_port_of_thousands_of_digits_is_no_port(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", flow, "connect tcp 10.0.0.1:" + "9" * 5000]) == 2
    assert "has no port of 0 to 65535" in capsys.readouterr().err


def test_an_exemption_is_by_no_rule(flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", flow, "connect tcp 127.0.0.1:80"]) == 0
    assert "let through: no rule refuses it" in capsys.readouterr().out


def test_a_refused_answer_still_ends_with_0_and_a_misspelt_event_with_2(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", flow, "conect tcp 10.0.0.9:443"]) == 2
    assert "`connect tcp 10.0.0.9:443`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("conect tcp 10.0.0.9:443", "did you mean `connect`? write one of: `connect tcp"),
        ("connect 10.0.0.9:443", "help: write one of: `connect tcp"),
        ("connect tcp ::1:443", "in brackets: `[::1]`"),
        ("listen 80", "help: write it as `listen tcp 0.0.0.0:8080`"),
        ("socket icmp", "events name: `packet`"),
        ("call delete_user", "`truncate /srv/a.txt`"),
        ("", "the event is empty"),
    ],
)
def test_what_is_no_event_gets_the_form_that_it_begins_like(
    flow: str, event: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", flow, event]) == 2
    assert says in capsys.readouterr().err


def test_a_path_that_a_run_will_bind_is_to_be_asked_for_in_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    agent = '{command: "true", cwd: .}'
    path.write_text(
        FLOW.replace('{command: "true"}', agent)
        .replace("  uses: [pack.policy.yaml]\n", "")
        .replace("203.0.113.0/24:443", "unix:${cwd}/db.sock")
    )
    assert main(["explain", str(path), f"connect unix:{tmp_path}/db.sock"]) == 0
    assert "ask for `${cwd}/db.sock` as well" in capsys.readouterr().out
    assert main(["explain", str(path), "connect unix:${cwd}/db.sock"]) == 0
    assert "as well" not in capsys.readouterr().out


def test_a_flow_with_an_error_is_not_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    path.write_text(FLOW.replace("allow connect", "alow connect").replace("uses", "sets"))
    assert main(["explain", str(path), "connect tcp 10.0.0.9:443"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "allow" in captured.err


def test_a_folder_without_flows_ends_with_4(tmp_path: Path) -> None:
    assert main(["explain", str(tmp_path), "connect tcp 10.0.0.9:443"]) == 4


def test_a_folder_with_several_flows_has_no_one_answer(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Path(flow).with_name("u.flow.yaml")
    other.write_text(FLOW.replace("t.f", "t.u"))
    assert main(["explain", str(other.parent), "connect tcp 10.0.0.9:443"]) == 2
    assert "u.flow.yaml" in capsys.readouterr().err


def test_the_page_of_a_code_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "FP101"]) == 0
    assert capsys.readouterr().out.startswith("# FP101: ")
    assert main(["explain", "fp101"]) == 0


@pytest.mark.parametrize("word", ["FP999", "FP99", "FP1011", "XP101"])
def test_an_unknown_code_gets_no_near_miss_which_is_about_something_else(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", word]) == 2
    told = capsys.readouterr().err
    assert "did you mean" not in told
    assert "codes are FP and three digits" in told


def test_a_hyphen_and_small_letters_make_no_other_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "fp-101"]) == 0
    assert capsys.readouterr().out.startswith("# FP101:")


def test_a_path_alone_asks_for_an_event(flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", flow]) == 2
    assert "needs an event" in capsys.readouterr().err


def test_every_code_that_the_source_names_has_its_page() -> None:
    package = Path(__file__).parents[2] / "flowproof"
    named = {
        code
        for path in package.rglob("*.py")
        for code in re.findall(r'"(FP\d{3})"', path.read_text(encoding="utf-8"))
    }
    pages = {path.stem for path in Path(data_path("docs", "codes")).glob("FP*.md")}
    assert named
    assert sorted(named - pages) == []


@pytest.mark.parametrize("page", sorted(Path(data_path("docs", "codes")).glob("FP*.md")))
def test_a_page_says_what_to_avoid_what_to_prefer_and_why(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {page.stem}: ")
    places = [text.index(f"**{word}**") for word in ("Avoid", "Prefer", "Why")]
    assert places == sorted(places)


def test_a_file_below_the_bare_folder_is_to_be_asked_for_in_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    text = FLOW.replace("  uses: [pack.policy.yaml]\n", "").replace('"true"', '"true", cwd: .')
    path.write_text(text + "    t.f.kept: expect no delete under ${cwd}\n")
    assert main(["explain", str(path), f"delete {tmp_path}/a.txt"]) == 0
    assert "ask for `${cwd}/a.txt` as well" in capsys.readouterr().out


BINDING = """\
name: T
agent: {command: "true", cwd: .}
control:
  id: t.f
  rules:
    t.f.api: allow connect to api.example.com:443
    t.f.bad: never connect to ${BAD}
    t.f.db: allow connect to ${DB}:5432
    t.f.rest: never connect to anything else
    t.f.socket: allow connect to unix:${STATE}/db.sock
"""


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (
            "connect tcp 192.0.2.3:443",
            [
                "`api.example.com` stands for this address when a run starts: let through by `t.f.api`"
            ],
        ),
        (
            "connect tcp 192.0.2.3:5432",
            [
                "`${DB}` stands for this address when a run starts: let through by `t.f.db`",
                (
                    "`${BAD}` stands for this address when a run starts: refused by `t.f.bad`, and counted by"
                    " `t.f.bad`, `t.f.rest`"
                ),
            ],
        ),
        (
            "connect unix:/var/lib/x/db.sock",
            [
                "`${STATE}/db.sock` stands for this path when a run starts: let through by `t.f.socket`",
            ],
        ),
    ],
)
def test_what_a_run_may_bind_to_the_address_is_said_beside_the_answer(
    tmp_path: Path, event: str, says: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    path.write_text(BINDING)
    assert main(["explain", str(path), event]) == 0
    out = capsys.readouterr().out
    assert "refused and counted by `t.f.rest`" in out
    for line in says:
        assert f"  but where {line}\n" in out


@pytest.mark.parametrize(
    "event",
    ["connect tcp api.example.com:443", "connect unix:/run/other.sock", "socket packet"],
)
def test_an_answer_that_no_binding_changes_stands_alone(
    tmp_path: Path, event: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    path.write_text(BINDING)
    assert main(["explain", str(path), event]) == 0
    assert "but where" not in capsys.readouterr().out


def test_no_name_is_taken_to_stand_for_an_address_that_keeps_a_run_from_starting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    path.write_text(BINDING.replace("t.f.bad: never", "t.f.bad: observe"))
    assert main(["explain", str(path), "connect tcp 169.254.169.254:443"]) == 0
    assert "`api.example.com`" not in capsys.readouterr().out


def test_many_names_with_one_answer_share_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    names = ", ".join(f"{letter}.example.com:443" for letter in "abcde")
    path.write_text(BINDING.replace("api.example.com:443", names))
    assert main(["explain", str(path), "connect tcp 192.0.2.3:443"]) == 0
    known = "`a.example.com` or `b.example.com` or `c.example.com` or one of 2 more"
    assert f"where {known} stands for this address" in capsys.readouterr().out
