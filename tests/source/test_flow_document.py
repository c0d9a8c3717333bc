"""The flow document: what is read, and what is said about what cannot be."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from flowproof.diagnostics import Diagnostic, Report
from flowproof.source.agent import seconds
from flowproof.source.documents import Flow, slug
from flowproof.source.suite import load

CONTROL = "control:\n  id: t.f\n"


def read(text: str, folder: Path, name: str = "x.flow.yaml") -> tuple[Flow | None, Report]:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    report = Report()
    suite = load(str(path), report)
    return (suite.flows[0].flow if suite else None), report


def flow_of(text: str, folder: Path) -> Flow:
    flow, report = read(text, folder)
    assert not list(report), list(report)
    assert flow is not None
    return flow


def error_of(text: str, folder: Path) -> Diagnostic:
    (error,) = read(text, folder)[1]
    return error


def agent(line: str) -> str:
    command = "" if line.startswith("command") else "  command: python3 bot.py\n"
    return f"name: T\nagent:\n{command}  {line}\n{CONTROL}"


FULL = """\
name: Tidy up the old exports
app: agent
agent:
  command: python3 'agents/my tidy.py'
  cwd: .
  env: {TZ: UTC, ANSWER: no, VERSION: 1.10}
  timeout: 1.5h
  expect_exit: any
  allow_egress: [api.example.com:443]
control:
  id: crm.exports
  title: The exports bot touches only the CRM
  description: >
    Why this exists.
  uses: []
  sets:
    crm: "api.crm.example:443, 203.0.113.0/24:443"
    more:
      - 10.0.0.1
      - '[2001:db8::1]:443'
  rules:
    crm.exports.api: allow connect to @crm
    crm.exports.rest: never connect to anything else
steps:
  - prompt: Tidy up.
  - assert_no_egress
  - assert_no_file_delete
"""


def test_everything_that_a_flow_may_hold_is_read(tmp_path: Path) -> None:
    flow = flow_of(FULL, tmp_path)
    assert flow.name.value == "Tidy up the old exports"
    assert flow.sha256 == "sha256:" + hashlib.sha256(FULL.encode()).hexdigest()
    assert flow.agent is not None
    assert flow.agent.command == ("python3", "agents/my tidy.py")
    assert flow.agent.cwd == "."
    assert flow.agent.env == (("TZ", "UTC"), ("ANSWER", "no"), ("VERSION", "1.10"))
    assert flow.agent.timeout == 5400.0
    assert flow.agent.expect_exit is None
    assert [entry.value for entry in flow.agent.allow_egress or ()] == ["api.example.com:443"]
    assert flow.control is not None
    assert flow.control.id.value == "crm.exports"
    assert flow.control.description is not None
    assert flow.control.description.value == "Why this exists.\n"
    assert [(name.value, [m.value for m in members]) for name, members in flow.control.sets] == [
        ("crm", ["api.crm.example:443, 203.0.113.0/24:443"]),
        ("more", ["10.0.0.1", "[2001:db8::1]:443"]),
    ]
    assert [name.value for name, _ in flow.control.rules] == ["crm.exports.api", "crm.exports.rest"]
    assert [(step.kind, step.text.value if step.text else None) for step in flow.steps] == [
        ("prompt", "Tidy up."),
        ("assert_no_egress", None),
        ("assert_no_file_delete", None),
    ]


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    flow = flow_of(agent("command: [a]"), tmp_path)
    assert flow.agent is not None
    assert (flow.agent.timeout, flow.agent.expect_exit, flow.agent.cwd) == (600.0, 0, None)
    assert flow.agent.allow_egress is None
    assert flow.app == "agent"


def test_an_explicit_empty_list_is_not_a_missing_one(tmp_path: Path) -> None:
    flow = flow_of(agent("allow_egress: []"), tmp_path)
    assert flow.agent is not None
    assert flow.agent.allow_egress == ()
    assert flow.agent.allow_egress_span is not None
    assert flow.agent.allow_egress_span.text == "allow_egress"


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("python3 bot.py", ("python3", "bot.py")),
        ("sh -c 'a && b' \"c d\" e\\ f ''", ("sh", "-c", "a && b", "c d", "e f", "")),
        ("[python3, 'a b', 1.10, no, \"\"]", ("python3", "a b", "1.10", "no", "")),
        ("echo $HOME", ("echo", "$HOME")),
        ("'a # b'", ("a", "#", "b")),
    ],
)
def test_a_command_is_split_as_a_shell_splits_words(
    written: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    flow = flow_of(agent(f"command: {written}"), tmp_path)
    assert flow.agent is not None
    assert flow.agent.command == words


@pytest.mark.parametrize(
    ("line", "code", "underlined"),
    [
        ("command: python3 'open", "FP224", "'"),
        ("command: python3 'a' \"open", "FP224", '"'),
        ("command: python3 \\", "FP224", "\\"),
        ('command: ""', "FP224", '""'),
        ("command: '  '", "FP224", "'  '"),
        ("command: []", "FP224", "[]"),
        ("command: ['', a]", "FP224", "''"),
        ("command: ['a', \"b\\0\"]", "FP224", '"b\\0"'),
        ("command: {a: b}", "FP222", "{a: b}"),
        ("command: a | b", "FP227", "a | b"),
        ("command: a 2>&1", "FP227", "a 2>&1"),
        ("command: ~", "FP208", "~"),
        ("timeout: 10", "FP223", "10"),
        ("timeout: 0s", "FP223", "0s"),
        ("timeout: -1s", "FP223", "-1s"),
        ("timeout: 10 m", "FP223", "10 m"),
        ("timeout: [10m]", "FP208", "[10m]"),
        ("expect_exit: 256", "FP223", "256"),
        ("expect_exit: -1", "FP223", "-1"),
        ("expect_exit: 007", "FP223", "007"),
        ("expect_exit: Any", "FP223", "Any"),
        ("expect_exit: ", "FP208", ""),
        ("env: {A: ~}", "FP208", "~"),
        ("env: {A=B: c}", "FP223", "A=B"),
        ("env: {'': c}", "FP223", "''"),
        ("env: ~", "FP222", "~"),
        ("allow_egress: 10.0.0.1", "FP222", "10.0.0.1"),
        ("allow_egress:", "FP222", ""),
        ("allow_egress: [~]", "FP208", "~"),
        ("allow_egress: [{a: b}]", "FP208", "{a: b}"),
        ("cwd: ''", "FP223", "''"),
        ("cwd: [a]", "FP208", "[a]"),
        ("rules: {}", "FP220", "rules"),
    ],
)
def test_what_an_agent_cannot_hold_is_underlined(
    line: str, code: str, underlined: str, tmp_path: Path
) -> None:
    error = error_of(agent(line), tmp_path)
    assert error.span is not None
    assert (error.code, error.span.text) == (code, underlined)
    assert error.help


@pytest.mark.parametrize(
    "line",
    [
        "command: grep '|' notes.txt",
        "command: sh -c 'a | b'",
        'command: sh -c "a && b > c"',
        "command: [grep, '|', notes.txt]",
        "command: fetch http://127.0.0.1/?a=1&b=2",
    ],
)
def test_a_sign_of_the_shell_that_is_meant_goes_without_a_word(line: str, tmp_path: Path) -> None:
    flow_of(agent(line), tmp_path)


def test_a_timeout_without_unit_is_told_both_readings(tmp_path: Path) -> None:
    assert error_of(agent("timeout: 10"), tmp_path).help == "`10s` are seconds, `10m` minutes"


@pytest.mark.parametrize(
    ("text", "length"),
    [("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0), ("0.5s", 0.5)],
)
def test_a_duration_carries_its_unit(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize(
    "text", ["10", "s", "1d", "1e3s", "1 s", "1S", "0s", "٣s", "9" * 400 + "h"]
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert seconds(text) is None


@pytest.mark.parametrize(
    ("text", "code", "underlined", "says"),
    [
        ("app: agent\n", "FP221", "", "`name`"),
        ("naem: T\n", "FP220", "naem", "did you mean `name`"),
        ("name: T\napp: bot\n", "FP223", "bot", "`agent`"),
        ("name: T\ntitle: U\n", "FP220", "title", "under `control`"),
        ("name: T\nallow_egress: []\n", "FP220", "allow_egress", "under `agent`"),
        ("name: T\npolicy: p\n", "FP220", "policy", "*.policy.yaml"),
        ("name: T\nzzz: p\n", "FP220", "zzz", "`name`, `app`"),
        ("name: T\nprompt: p\n", "FP220", "prompt", "- prompt: …"),
        ("name: T\ncontrol:\n  id: a\n  steps: []\n", "FP220", "steps", "at the top of the file"),
        ("name: T\nagent:\n  comand: x\n", "FP220", "comand", "did you mean `command`"),
        ("name: T\nagent: x\n", "FP222", "x", "`command:`"),
        ("name: T\nagent:\n  cwd: .\n", "FP221", "agent", "`command`"),
        ("name: T\ncontrol: [a]\n", "FP222", "[a]", "`id:`"),
        ("name: T\nsteps: assert_no_egress\n", "FP222", "assert_no_egress", "- assert_no_egress"),
        ("name: T\nsteps:\n  - [a]\n", "FP222", "[a]", "a step"),
        ("name: T\nsteps:\n  - prompt\n", "FP226", "prompt", "- prompt: …"),
        ("name: T\nsteps:\n  - prompt:\n", "FP208", "", "quote this"),
        ("name: T\nsteps:\n  - click: a\n", "FP226", "click", "unjudged"),
        (
            f"name: T\n{CONTROL}steps:\n  - assert_no_egress: true\n",
            "FP226",
            "assert_no_egress",
            "no value",
        ),
    ],
)
def test_a_flow_is_told_what_belongs_where(
    text: str, code: str, underlined: str, says: str, tmp_path: Path
) -> None:
    error = error_of(text, tmp_path)
    assert error.span is not None
    assert (error.code, error.span.text) == (code, underlined)
    assert says in f"{error.message} {error.help}"


def test_a_step_given_twice_names_both(tmp_path: Path) -> None:
    text = f"name: T\n{CONTROL}steps:\n  - assert_no_egress\n  - assert_no_egress\n"
    error = error_of(text, tmp_path)
    assert error.span is not None
    assert error.span.line == 6
    assert [span.line for span, _ in error.related] == [5]


def test_a_short_form_without_control_takes_its_id_from_the_file_name(tmp_path: Path) -> None:
    text = "name: T\nsteps:\n  - assert_no_egress\n"
    flow, report = read(text, tmp_path, "Tidy_Up, 2.flow.yaml")
    assert flow is not None
    assert not list(report)
    assert flow.slug == "tidy-up-2"


def test_a_file_name_that_gives_no_id_is_refused_where_one_is_needed(tmp_path: Path) -> None:
    flow, report = read("name: T\nsteps:\n  - assert_no_egress\n", tmp_path, "日本.flow.yaml")
    assert flow is None
    assert [error.code for error in report.errors] == ["FP225"]
    flow, report = read("name: T\n", tmp_path, "日本.flow.yaml")
    assert flow is not None
    assert not list(report)


@pytest.mark.parametrize(
    "given",
    [
        "T.f",
        "-t",
        "t f",
        "t/f",
        "é",
        "'" + "a" * 129 + "'",
        "t.default.x",
        "t.implied.x",
        "a.allow.b",
        "a.assert-b",
    ],
)
def test_an_id_that_is_none_is_refused_and_stood_in_for(given: str, tmp_path: Path) -> None:
    text = f"name: T\ncontrol:\n  id: t.f\n  rules:\n    {given}: deny connect to 10.0.0.1\n"
    flow, report = read(text, tmp_path)
    assert [(error.code, error.span and error.span.text) for error in report] == [("FP225", given)]
    assert flow is not None
    assert flow.control is not None
    ((rule_id, sentence),) = flow.control.rules
    assert rule_id.value != given
    assert sentence.value == "deny connect to 10.0.0.1"


def test_the_rules_of_a_control_with_a_bad_id_are_read_all_the_same(tmp_path: Path) -> None:
    flow, report = read("name: T\ncontrol:\n  id: T.F\n  rules:\n    a: x\n", tmp_path)
    assert [error.code for error in report] == ["FP225"]
    assert flow is not None
    assert flow.control is not None
    assert len(flow.control.rules) == 1


def test_a_set_that_was_refused_is_there_without_members(tmp_path: Path) -> None:
    text = f"name: T\n{CONTROL}  sets:\n    a: [10.0.0.1]\n    b: ~\n    c: @d\n    e: 10.0.0.2\n"
    flow, report = read(text, tmp_path)
    assert [error.code for error in report] == ["FP208"] * 3
    assert all("quote this" in (error.help or "") for error in report)
    assert flow is not None
    assert flow.control is not None
    assert [(name.value, len(members)) for name, members in flow.control.sets] == [
        *(("a", 0), ("b", 0), ("c", 0), ("e", 1))
    ]


def test_an_empty_block_list_cannot_be_written_and_an_empty_flow_list_is_refused(
    tmp_path: Path,
) -> None:
    assert error_of(f"name: T\n{CONTROL}  sets:\n    a: []\n", tmp_path).code == "FP208"


def test_a_name_of_a_set_is_one_that_a_sentence_can_hold(tmp_path: Path) -> None:
    assert error_of(f"name: T\n{CONTROL}  sets:\n    'a b': 10.0.0.1\n", tmp_path).code == "FP225"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tidy Up!", "tidy-up"),
        ("--a--", "a"),
        ("10.0.0.1:443", "10-0-0-1-443"),
        ("ÄÖ", ""),
        ("İx", "i-x"),
    ],
)
def test_a_slug_is_letters_and_digits_with_single_hyphens(text: str, expected: str) -> None:
    assert slug(text) == expected
