"""The rows about files in an artifact's bytes: what is written is read, and nothing else is taken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from authored import policy

from flowproof.artifact import codec
from flowproof.canonical import canonical
from flowproof.lower.backend import compile_policy
from flowproof.resources import data

SCHEMA: dict[str, Any] = json.loads(data("schema", "artifact.schema.json"))
RULES = {
    "keep": "expect no destroy under ${cwd}, /srv except under /srv/tmp, ${cwd}/out",
    "logs": "observe write at ~/*.log",
    "open": "allow delete under /var/tmp",
    "rest": "expect no delete anywhere else",
}
ARTIFACT = compile_policy(policy(RULES), "linux-x86_64")
JSON = codec.to_json(ARTIFACT)


def test_rows_are_read_as_they_were_written() -> None:
    written = codec.dumps(ARTIFACT)
    assert codec.loads(written) == ARTIFACT
    assert len(ARTIFACT.tables.files) == 4
    jsonschema.validate(json.loads(written), SCHEMA)


def test_an_artifact_without_rows_has_no_member_for_them() -> None:
    plain = compile_policy(policy({"r": "deny connect to 10.0.0.9"}), "linux-x86_64")
    assert "files" not in codec.to_json(plain)["tables"]
    windows = compile_policy(policy(RULES), "windows")
    assert "files" not in codec.to_json(windows)["tables"]


def row(held: dict[str, Any]) -> dict[str, Any]:
    first = held["tables"]["files"][0]
    assert isinstance(first, dict)
    return first


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "an empty list": lambda held: held["tables"].update(files=[]),
    "a rule that is none": lambda held: row(held).update(rule=99),
    "a rule twice": lambda held: held["tables"]["files"].append(row(held)),
    "no operation": lambda held: row(held).update(operations=[]),
    "an operation that is none": lambda held: row(held).update(operations=["chmod"]),
    "operations out of order": lambda held: row(held)["operations"].reverse(),
    "an operation twice": lambda held: row(held).update(operations=["delete", "delete"]),
    "a kind that is none": lambda held: row(held)["inside"].update(kind="near"),
    "anywhere with a path": lambda held: row(held)["inside"].update(kind="anywhere"),
    "under nothing": lambda held: row(held)["inside"].update(paths=[]),
    "paths out of order": lambda held: row(held)["inside"]["paths"].reverse(),
    "a relative path": lambda held: row(held)["inside"].update(paths=["srv"]),
    "a zero byte": lambda held: row(held)["inside"].update(paths=["/srv\0x"]),
    "otherwise as a number": lambda held: row(held).update(otherwise=1),
    "a member more": lambda held: row(held).update(by=1),
    "a member less": lambda held: row(held).pop("excepted"),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_is_no_row_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    held = copy.deepcopy(JSON)
    codec.loads(canonical(held))
    change(held)
    with pytest.raises(codec.ArtifactError) as refused:
        codec.loads(canonical(held))
    assert str(refused.value).startswith("tables.files")
