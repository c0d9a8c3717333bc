"""The editor's schemas against the keys that are read, and against documents that are known."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from flowproof.diagnostics import Report, Source
from flowproof.resources import data
from flowproof.source import keys, shapes
from flowproof.source.documents import Text
from flowproof.source.nodes import Mapping, Scalar, Sequence
from flowproof.source.yaml_nodes import load
from flowproof.syntax.parse import parse_sentence

SCHEMAS = {kind: json.loads(data("schema", f"{kind}.schema.json")) for kind in ("flow", "policy")}
SPAN = Source("snippet", "").span(0)
VECTORS = Path(__file__).parents[1] / "vectors"


def as_editors_read(node: Scalar | Sequence | Mapping) -> Any:  # noqa: ANN401  any JSON value
    """Return a node as YAML 1.2 core types it, which is what a schema is applied to."""
    match node:
        case Sequence():
            return [as_editors_read(item) for item in node.items]
        case Mapping():
            return {key.text.value: as_editors_read(value) for key, value in node.entries}
        case Scalar() if node.style:
            return node.text.value
        case Scalar() if node.null:
            return None
    value = node.text.value
    if value in {"true", "false"}:
        return value == "true"
    if re.fullmatch(r"[-+]?[0-9]+", value):
        return int(value)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", value):
        return float(value)
    return value


def documents(name: str) -> list[tuple[str, str, Any]]:
    """Return (vector, kind, document) of each file of a vector file that is YAML at all."""
    found = []
    for vector in json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8")):
        files = {path: text.encode() for path, text in vector.get("files", {}).items()}
        files |= {
            path: base64.b64decode(text) for path, text in vector.get("files_b64", {}).items()
        }
        for path, content in files.items():
            report = Report()
            loaded = load(content, path, report)
            if loaded is not None and not list(report):
                kind = "flow" if path.endswith(".flow.yaml") else "policy"
                found.append((vector["id"], kind, as_editors_read(loaded[1])))
    return found


def errors(kind: str, document: object) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMAS[kind]).iter_errors(document)]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[kind])


@pytest.mark.parametrize("name", ["accepted", "connect", "files"])
def test_what_is_accepted_is_valid(name: str) -> None:
    found = documents(name)
    assert len(found) > 40
    for vector, kind, document in found:
        assert errors(kind, document) == [], vector


@pytest.mark.parametrize(
    "prefix", ["ya-unknown", "ya-expect", "ya-timeout", "ya-missing", "sf-step"]
)
def test_what_is_refused_for_its_shape_is_invalid(prefix: str) -> None:
    by_vector: dict[str, list[str]] = {}
    for vector, kind, document in documents("errors"):
        if vector.startswith(prefix):
            by_vector.setdefault(vector, []).extend(errors(kind, document))
    assert by_vector
    assert all(by_vector.values()), by_vector


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (keys.FLOW, SCHEMAS["flow"]),
        (keys.AGENT, SCHEMAS["flow"]["$defs"]["agent"]),
        (keys.CONTROL, SCHEMAS["flow"]["$defs"]["control"]),
        (keys.PACK, SCHEMAS["policy"]),
    ],
    ids=["flow", "agent", "control", "pack"],
)
def test_schema_and_reader_know_the_same_keys(
    table: dict[str, bool], place: dict[str, Any]
) -> None:
    assert set(place["properties"]) == set(table)
    assert place["additionalProperties"] is False
    assert set(place.get("required", ())) == {key for key, required in table.items() if required}


def test_schema_and_reader_know_the_same_steps() -> None:
    words, prompt = SCHEMAS["flow"]["$defs"]["steps"]["items"]["oneOf"]
    assert {*words["enum"], *prompt["properties"]} == set(keys.STEPS)


def test_both_schemas_define_the_same_parts_of_a_control() -> None:
    shared = SCHEMAS["policy"]["$defs"]
    assert {name: SCHEMAS["flow"]["$defs"][name] for name in shared} == shared


def test_the_schemas_know_the_shape_of_an_id() -> None:
    shape = SCHEMAS["flow"]["$defs"]["id"]
    assert shape["pattern"] == f"^{shapes.ID.pattern}$"
    for word in (".default.", ".implied.", ".allow.", ".assert-"):
        assert errors("policy", {"policy": f"a{word}b"})
    assert not errors("policy", {"policy": "crm.exports"})


def test_every_key_is_described() -> None:
    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        found = []
        for key, given in schema.get("properties", {}).items():
            shared = SCHEMAS["flow"]["$defs"].get(given.get("$ref", "").rpartition("/")[2], {})
            part = {**shared, **given}
            if not part.get("title") or not part.get("description"):
                found.append(f"{path}{key}")
            found += undescribed(part, f"{path}{key}.")
        return found

    assert undescribed(SCHEMAS["flow"], "") == []
    assert undescribed(SCHEMAS["policy"], "") == []


def places(kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every property that a document may have, its references followed."""
    schema = SCHEMAS[kind]
    found = []
    for owner in (schema, *schema["$defs"].values()):
        for name, place in owner.get("properties", {}).items():
            reference = place.get("$ref", "").removeprefix("#/$defs/")
            found.append((name, {**(schema["$defs"][reference] if reference else {}), **place}))
    return found


@pytest.mark.parametrize("kind", SCHEMAS)
def test_an_editor_has_a_title_and_words_for_every_key(kind: str) -> None:
    assert len(places(kind)) >= len(keys.PACK)
    for name, place in places(kind):
        assert place["title"][0].isupper(), name
        assert len(place["description"]) > 20, name


@pytest.mark.parametrize("kind", SCHEMAS)
def test_examples_of_the_schemas_are_valid_where_they_stand(kind: str) -> None:
    seen = 0
    stack: list[Any] = [SCHEMAS[kind]]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        if not isinstance(node, dict):
            continue
        stack += node.values()
        for example in node.get("examples", ()) if isinstance(node.get("examples"), list) else ():
            rooted = {**node, "$defs": SCHEMAS[kind]["$defs"]}
            assert Draft202012Validator(rooted).is_valid(example), (node, example)
            seen += 1
    assert seen >= 8


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_an_editor_puts_in_for_a_rule_is_a_sentence(kind: str) -> None:
    rule = SCHEMAS[kind]["$defs"]["rules"]["additionalProperties"]
    for snippet in rule["defaultSnippets"]:
        filled = re.sub(r"\$\{[0-9]:((?:\\.|[^}])*)\}", r"\1", snippet["body"]).replace("\\", "")
        report = Report()
        assert parse_sentence(Text(filled, SPAN, (0,) * (len(filled) + 1)), report) is not None, (
            filled
        )
        assert re.match(rule["pattern"], filled)


@pytest.mark.parametrize("sentence", ["alow connect to ::1", "deny conect to ::1", "expect delete"])
def test_an_editor_marks_a_misspelt_verb_or_action(sentence: str) -> None:
    assert errors("policy", {"policy": "p", "rules": {"a": sentence}})


def test_what_the_repository_ships_is_valid() -> None:
    root = Path(__file__).parents[2]
    shipped = [*root.glob("policies/*.policy.yaml"), *root.glob("examples/*.flow.yaml")]
    assert len(shipped) > 3
    for path in shipped:
        loaded = load(path.read_bytes(), path.name, Report())
        assert loaded is not None
        kind = "flow" if path.name.endswith(".flow.yaml") else "policy"
        assert errors(kind, as_editors_read(loaded[1])) == [], path.name
