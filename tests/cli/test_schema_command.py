"""`flowproof schema`: every shipped schema by a name, and a near miss for what is none."""

from __future__ import annotations

import json
import os

import pytest
from jsonschema import Draft202012Validator

from flowproof.cli.commandline import COMMANDS
from flowproof.cli.commands.schema import SCHEMAS
from flowproof.cli.main import main
from flowproof.resources import data_path


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_printed_as_it_is_shipped(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", name]) == 0
    printed = capsys.readouterr().out
    Draft202012Validator.check_schema(json.loads(printed))
    assert main(["schema", name, "--path"]) == 0
    with open(capsys.readouterr().out.rstrip("\n"), encoding="utf-8") as file:
        assert file.read() == printed


def test_every_shipped_schema_has_a_name() -> None:
    assert sorted(SCHEMAS.values()) == sorted(os.listdir(data_path("schema")))


def test_the_help_names_every_schema() -> None:
    assert all(name in COMMANDS["schema"].details for name in SCHEMAS)


def test_an_unknown_schema_gets_a_near_miss(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "polcy"]) == 2
    assert "did you mean `policy`?" in capsys.readouterr().err
