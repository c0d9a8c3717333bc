"""Command lines: what they ask for, and what is said where they do not hold together."""

from __future__ import annotations

import pytest

from flowproof.cli.arguments import HelpWanted, UsageError, parse
from flowproof.cli.commandline import COMMANDS, overview, usage


def mistake(*words: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        parse(words, COMMANDS)
    return str(caught.value), caught.value.help or ""


def test_words_and_options_come_in_any_order() -> None:
    arguments = parse(["compile", "--target", "windows", "a.flow.yaml", "-oout"], COMMANDS)
    assert arguments.words == ("a.flow.yaml",)
    assert dict(arguments.options) == {"--target": "windows", "-o": "out"}


def test_an_option_and_its_value_may_be_one_word() -> None:
    assert parse(["audit", ".", "--run=abc"], COMMANDS).get("--run") == "abc"
    assert parse(["audit", ".", "--run="], COMMANDS).get("--run") == ""


def test_what_stands_behind_the_dashes_is_the_command_word_by_word() -> None:
    arguments = parse(["run", "p.policy.yaml", "--", "prog", "--help", "--", "x"], COMMANDS)
    assert arguments.trailing == ("prog", "--help", "--", "x")
    assert parse(["run", "p.policy.yaml"], COMMANDS).trailing is None


def test_dashes_end_the_options_of_a_command_without_a_program() -> None:
    assert parse(["check", "--", "--odd.flow.yaml"], COMMANDS).words == ("--odd.flow.yaml",)


def test_a_misspelt_command_gets_its_near_miss() -> None:
    assert mistake("chek", ".") == ("unknown command `chek`", "did you mean `check`?")
    assert mistake("Check", ".")[1] == "did you mean `check`?"


def test_a_word_that_is_no_near_miss_gets_the_list() -> None:
    assert "`compile`" in mistake("frobnicate")[1]


def test_a_misspelt_option_gets_its_near_miss() -> None:
    message, help_ = mistake("compile", "x", "--taget", "windows")
    assert message == "`flowproof compile` has no option `--taget`"
    assert help_ == "did you mean `--target`?"


def test_an_option_is_never_abbreviated() -> None:
    assert "--form" in mistake("check", "x", "--form", "json")[0]


def test_a_misspelt_value_gets_its_near_miss() -> None:
    assert mistake("compile", "x", "--target", "linux-x86-64")[1] == "did you mean `linux-x86_64`?"


def test_an_option_without_its_value_is_a_mistake() -> None:
    assert mistake("audit", ".", "--run") == ("`--run` needs a value", "write `--run ID`")
    assert mistake("run", "x", "--record", "--", "prog")[0] == "`--record` needs a value"


def test_an_option_given_twice_is_a_mistake() -> None:
    assert "twice" in mistake("audit", ".", "--run", "a", "--run", "b")[0]


def test_a_required_option_is_asked_for() -> None:
    assert mistake("compile", "x")[0] == "`flowproof compile` needs `--target`"


def test_a_missing_path_and_one_too_many_are_mistakes() -> None:
    assert mistake("check")[0] == "`flowproof check` needs PATH…"
    message, help_ = mistake("run", "p.policy.yaml", "prog")
    assert "`prog`" in message
    assert "`--`" in help_


def test_help_is_asked_for_of_all_or_of_one() -> None:
    with pytest.raises(HelpWanted) as caught:
        parse(["--help"], COMMANDS)
    assert caught.value.command is None
    with pytest.raises(HelpWanted) as caught:
        parse(["compile", "--help"], COMMANDS)
    assert caught.value.command is COMMANDS["compile"]


def test_the_help_names_every_command_and_every_option() -> None:
    for command in COMMANDS.values():
        assert command.name in overview()
        for option in command.options:
            assert option.name in usage(command)
