"""`flowproof run`: what is handed to the recorder, and what is said of what comes back.

The recorder is a stand-in here; tests/enforce has the real one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade_runs import Line, event, rule, write_run

from flowproof.artifact.model import Artifact
from flowproof.cli.commands import run as module
from flowproof.cli.main import main
from flowproof.record.codes import Code
from flowproof.record.evidence import read
from flowproof.record.model import Reason, RuleRow
from flowproof.resources import data_path
from flowproof.run import recorder
from flowproof.run.command import Command
from flowproof.run.recorder import Outcome

FLOW = """\
name: Tidy up
agent:
  command: python3 'my bot.py' --all
  cwd: work
  env: {{TZ: UTC}}
  timeout: 2m
  expect_exit: 7
control:
  id: {id}
  rules:
    {id}.rest: never connect to anything else
steps:
  - prompt: Tidy up, please.
"""


class Recorder:
    """Stands where the recorder does: keeps what it is given, answers with a record made by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[Command] = []
        self.roots: list[str] = []
        self.artifacts: list[Artifact] = []
        self.stdout_to_stderr: list[bool] = []
        self.proven: list[bool] = []
        self.lines: dict[str, tuple[Line, ...]] = {}
        self.more: tuple[RuleRow, ...] = ()
        self.blocked: tuple[Reason, ...] = ()
        self.progress: recorder.Progress | None = None

    def __call__(
        self,
        artifact: Artifact,
        command: Command,
        *,
        record_root: str,
        stdout_to_stderr: bool = False,
        progress: recorder.Progress | None = None,
        proven: bool = False,
    ) -> Outcome:
        self.progress = progress
        self.proven.append(proven)
        self.artifacts.append(artifact)
        self.commands.append(command)
        self.roots.append(record_root)
        self.stdout_to_stderr.append(stdout_to_stderr)
        rules = (rule(f"{artifact.control}.rest"), *self.more)
        lines = self.lines.get(artifact.control, ())
        proof = "proven" if proven else "claimed"
        folder = str(
            write_run(
                self.folder, artifact.control, rules, lines, proof=proof, blocked=self.blocked
            )
        )
        record = read(folder).record
        assert record is not None
        return Outcome(record, folder, record.exit.code, record.exit.because)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    stand_in = Recorder(tmp_path / "records")
    monkeypatch.setattr(recorder, "run", stand_in)
    monkeypatch.setattr(module, "_target", lambda: "linux-x86_64")
    return stand_in


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write(control: str = "t.f", text: str = FLOW, name: str | None = None) -> str:
        folder = tmp_path / "flows"
        folder.mkdir(exist_ok=True)
        path = folder / (name or f"{control}.flow.yaml")
        path.write_text(text.format(id=control))
        return str(path)

    return write


def test_the_command_is_the_flows(recorded: Recorder, write: Callable[..., str]) -> None:
    path = write()
    assert main(["run", path]) == 0
    (command,) = recorded.commands
    assert command.argv == ("python3", "my bot.py", "--all")
    assert command.cwd == os.path.join(os.path.dirname(path), "work")
    assert dict(command.env) == {"TZ": "UTC"}
    assert (command.timeout, command.expect_exit) == (120, 7)
    assert command.prompt == "Tidy up, please."
    assert command.name == "Tidy up"
    assert recorded.roots == [os.path.dirname(path)]


def test_the_command_line_goes_before_the_flow(
    recorded: Recorder, write: Callable[..., str]
) -> None:
    words = ["--timeout", "5s", "--expect-exit", "any", "--record", "elsewhere"]
    assert main(["run", write(), *words, "--", "true", "--help"]) == 0
    (command,) = recorded.commands
    assert command.argv == ("true", "--help")
    assert (command.timeout, command.expect_exit) == (5, None)
    assert recorded.roots == ["elsewhere"]


def test_a_pack_is_run_around_a_given_command(
    recorded: Recorder, write: Callable[..., str]
) -> None:
    text = "policy: {id}\nrules:\n  rest: never connect to anything else\n"
    path = write("mine", text, "mine.policy.yaml")
    assert main(["run", path, "--", "true"]) == 0
    (command,) = recorded.commands
    assert (command.argv, command.cwd, command.expect_exit) == (("true",), os.getcwd(), 0)
    assert recorded.artifacts[0].control == "mine"


def test_a_pack_without_a_command_is_nothing_to_run(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("mine", "policy: {id}\nrules:\n  r: never connect to anything\n", "m.policy.yaml")
    assert main(["run", path]) == 2
    assert "error[FP601]" in capsys.readouterr().err
    assert not recorded.commands


def test_a_folder_is_each_of_its_flows_in_turn(
    recorded: Recorder, write: Callable[..., str]
) -> None:
    write("t.b")
    folder = os.path.dirname(write("t.a"))
    assert main(["run", folder]) == 0
    assert [artifact.control for artifact in recorded.artifacts] == ["t.a", "t.b"]


def test_one_failure_among_several_flows_ends_with_1(
    recorded: Recorder, write: Callable[..., str]
) -> None:
    recorded.lines["t.a"] = (event((rule("t.a.rest"),), "t.a.rest"),)
    write("t.b")
    assert main(["run", os.path.dirname(write("t.a"))]) == 1
    assert len(recorded.commands) == 2


def test_a_folder_takes_no_command(recorded: Recorder, write: Callable[..., str]) -> None:
    assert main(["run", os.path.dirname(write()), "--", "true"]) == 2
    assert not recorded.commands


def test_dashes_without_a_command_are_a_mistake(
    recorded: Recorder, write: Callable[..., str]
) -> None:
    assert main(["run", write(), "--"]) == 2
    assert main(["run", write(), "--", ""]) == 2
    assert not recorded.commands


def test_nothing_runs_where_one_flow_of_a_folder_is_wrong(
    recorded: Recorder, write: Callable[..., str]
) -> None:
    write("t.a")
    folder = os.path.dirname(write("t.b", FLOW.replace("never connect", "nver connect")))
    assert main(["run", folder]) == 2
    assert not recorded.commands


def test_nothing_runs_where_the_target_does_not_carry_a_rule(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", write(text=FLOW.replace("anything else", "ads.example.com"))]) == 3
    assert "FP110" in capsys.readouterr().err
    assert not recorded.commands


def test_a_folder_without_flows_ends_with_4(recorded: Recorder, tmp_path: Path) -> None:
    assert main(["run", str(tmp_path)]) == 4
    assert not recorded.commands


def test_a_platform_without_a_runner_ends_with_3_and_says_so(
    recorded: Recorder,
    write: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "_target", lambda: None)
    assert main(["run", write()]) == 3
    assert "PLATFORM" in capsys.readouterr().err
    assert main(["run", write(), "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["exit"]["code"] == 3
    assert not recorded.commands


def test_the_report_goes_to_standard_error_with_rule_place_and_way_out(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.lines["t.f"] = (event((rule("t.f.rest"),), "t.f.rest", name="api.example.com"),)
    assert main(["run", write()]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    for words in (
        "t.f: fail",
        "t.f.rest: fail, it tried once",
        "refused: tcp 192.0.2.1:443 (api.example.com) by python3",
        "bot.flow.yaml:9: `t.f.rest` counts it",
        "allow connect tcp to api.example.com:443",
        "exit 1",
    ):
        assert words in captured.err


def test_a_probe_is_told_apart_from_what_counts(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    probe = event(
        (rule("t.f.rest"),), "t.f.rest", operation="probe", protocol="udp", port=53, asserting=[]
    )
    recorded.lines["t.f"] = (probe,)
    main(["run", write()])
    said = capsys.readouterr().err
    assert "refused: probe udp 192.0.2.1:53" in said
    assert "`t.f.rest` refuses it; a UDP connect by itself sends nothing and is not counted" in said


def test_a_unix_socket_is_named_once(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    rules = (rule("t.f.rest"),)
    attempt = event(
        rules, "t.f.rest", operation="unix", protocol="unix", destination="/run/x.sock", port=None
    )
    recorded.lines["t.f"] = (attempt,)
    main(["run", write()])
    assert "refused: unix:/run/x.sock by" in capsys.readouterr().err


def test_rules_that_met_nothing_share_a_line_by_what_they_came_to(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.more = (
        *(rule(f"t.f.deny-{n}", "deny") for n in range(5)),
        *(rule(f"t.f.allow-{n}", "allow") for n in range(3)),
    )
    assert main(["run", write()]) == 0
    said = capsys.readouterr().err
    assert "  5 rules that met nothing: pass, it cannot (`--verbose` lists them)" in said
    assert "t.f.deny-" not in said
    assert said.count("t.f.allow-") == 3  # so few are no flood
    assert "t.f.rest: pass, it cannot, and it did not try" in said


def test_each_rule_has_its_line_where_the_whole_is_wanted(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.more = tuple(rule(f"t.f.deny-{n}", "deny") for n in range(5))
    assert main(["run", write(), "--verbose"]) == 0
    said = capsys.readouterr().err
    assert said.count(": pass, it cannot (") == 5
    assert "met nothing" not in said


def test_a_rule_that_failed_or_met_something_always_has_its_own_line(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.more = tuple(rule(f"t.f.never-{n}") for n in range(5))
    rules = (rule("t.f.rest"), *recorded.more)
    recorded.lines["t.f"] = (event(rules, "t.f.rest"),)
    assert main(["run", write()]) == 1
    said = capsys.readouterr().err
    assert all(f"t.f.never-{n}: fail, it tried once" in said for n in range(5))
    assert "met nothing" not in said


def test_what_was_not_shown_always_has_its_own_line(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.more = tuple(rule(f"t.f.no-{n}", "deny", refusing="unsupported") for n in range(5))
    assert main(["run", write()]) == 3
    said = capsys.readouterr().err
    assert all(f"t.f.no-{n}: capability-error, not shown" in said for n in range(5))


def test_what_kept_the_command_from_starting_is_said_once_for_all_rules(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.more = tuple(rule(f"t.f.no-{n}", "deny") for n in range(5))
    recorded.blocked = (Reason(Code.LISTENER_BUSY, "another sandbox holds a listener"),)
    assert main(["run", write()]) == 3
    said = capsys.readouterr().err
    assert "  6 rules that met nothing: capability-error, not shown (LISTENER_BUSY)" in said
    assert said.count("LISTENER_BUSY: ") == 1  # and what to do
    assert main(["run", write(), "--verbose"]) == 3
    assert "t.f.no-4: capability-error, not shown (LISTENER_BUSY)" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--record", ""], ["--record="]])
def test_a_record_folder_without_a_name_is_a_mistake(
    recorded: Recorder, write: Callable[..., str], words: list[str]
) -> None:
    assert main(["run", write(), *words]) == 2
    assert not recorded.commands


def test_the_record_of_a_shipped_pack_goes_to_the_current_folder(recorded: Recorder) -> None:
    assert main(["run", data_path("policies", "no-egress.policy.yaml"), "--", "true"]) == 0
    assert recorded.roots == ["."]


def test_progress_is_asked_for_on_a_terminal_only(
    recorded: Recorder, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["run", write()])
    assert recorded.progress is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    main(["run", write()])
    assert recorded.progress is not None


def test_json_goes_to_standard_output_and_the_commands_own_does_not(
    recorded: Recorder, write: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.lines["t.f"] = (event((rule("t.f.rest"),), "t.f.rest"),)
    assert main(["run", write(), "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["exit"]["code"] == 1
    (ran,) = answer["runs"]
    assert (ran["control"], ran["verdict"]) == ("t.f", "fail")
    assert ran["attempts"][0]["destination"] == "192.0.2.1"
    assert recorded.stdout_to_stderr == [True]


def test_a_record_that_cannot_be_written_ends_with_4(
    write: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["run", write(), "--record", str(blocked), "--", "true"]) == 4
    assert "cannot be written" in capsys.readouterr().err
