"""Artifacts ↔ canonical JSON: the same bytes, the same artifact, and nothing else is taken."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import rfc8785
from authored import policy
from hypothesis import given
from hypothesis import strategies as st

from flowproof.artifact import codec
from flowproof.artifact.model import Artifact, Rule
from flowproof.artifact.restating import restated
from flowproof.canonical import canonical
from flowproof.lower.backend import TARGETS, compile_policy
from flowproof.resources import data
from flowproof.values import replace

RULES = {
    "api": "allow connect tcp to 10.0.0.0/24:443, api.example.com:443, ${EXTRA}",
    "bus": "allow connect to unix:/run/x.sock",
    "no-meta": 'never connect to metadata because "it holds credentials → ours"',
    "rest": "never connect to anything else",
    "srv": "allow listen on anything:8080",
    "v6": "deny connect udp to [2001:db8::/32]:53",
}
SCHEMA: dict[str, Any] = json.loads(data("schema", "artifact.schema.json"))


@pytest.fixture(params=TARGETS)
def artifact(request: pytest.FixtureRequest) -> Artifact:
    return compile_policy(policy(RULES), request.param)


def test_what_is_read_is_what_was_written(artifact: Artifact) -> None:
    assert codec.loads(codec.dumps(artifact)) == artifact
    assert codec.loads(codec.dumps(artifact).decode("utf-8")) == artifact


def test_bytes_are_canonical(artifact: Artifact) -> None:
    written = codec.dumps(artifact)
    assert written == rfc8785.dumps(json.loads(written))


@pytest.mark.parametrize(
    "text", ["verified (program over 3 cells)", 'a "quote" and \u00fc\u2028\\']
)
def test_bytes_restated_are_those_of_the_artifact_that_says_so(
    artifact: Artifact, text: str
) -> None:
    named = replace(artifact, hosts={"verification": ("203.0.113.7",)})
    for one in (artifact, named):
        restated_bytes = restated(codec.dumps(one), text)
        assert restated_bytes == codec.dumps(replace(one, verification=text))


def test_what_does_not_end_with_what_was_proved_is_not_restated() -> None:
    for data_of_another in (b'{"verification":"x","z":1}', b'{"a":{"verification":"x"}}', b"{}"):
        with pytest.raises(ValueError, match=r"."):
            restated(data_of_another, "verified (all)")


def test_digest_is_over_the_bytes(artifact: Artifact) -> None:
    other = replace(artifact, control="q")
    assert codec.digest(artifact) != codec.digest(other)
    assert codec.digest(artifact).startswith("sha256:")


def test_schema_is_one_and_takes_what_is_written(artifact: Artifact) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(codec.dumps(artifact)), SCHEMA)


def test_bound_hosts_are_written(artifact: Artifact) -> None:
    hosts = {"api.example.com": ("10.9.9.9", "2001:db8::9")}
    bound = compile_policy(policy(RULES), artifact.target, hosts=hosts)
    assert bound.hosts == hosts
    assert [symbol.kind for symbol in bound.symbols] == ["variable"]
    assert codec.loads(codec.dumps(bound)) == bound
    jsonschema.validate(json.loads(codec.dumps(bound)), SCHEMA)


Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
Change = Callable[[dict[str, Any]], object]
WRONG: dict[str, tuple[Change, str]] = {
    "a missing member": (lambda d: d.pop("lanes"), "`lanes` is missing"),
    "an unknown member": (lambda d: d.update(more=1), "`more` is unknown"),
    "another schema": (lambda d: d.update(schema="v2"), "schema"),
    "a number for a string": (lambda d: d.update(control=1), "control: a string"),
    "an unknown verb": (lambda d: d["rules"][0].update(verb="forbid"), "rules[0].verb"),
    "rules out of order": (lambda d: d["rules"].reverse(), "rules"),
    "a rule twice": (lambda d: d["rules"].insert(0, d["rules"][0]), "rules"),
    "a rule that is none": (
        lambda d: d["tables"]["entries"][1].update(refuse=[99]),
        "tables.entries[1].refuse",
    ),
    "a boolean for a number": (
        lambda d: d["tables"]["entries"][1].update(refuse=[True]),
        "tables.entries[1].refuse",
    ),
    "an empty list": (lambda d: d["tables"]["entries"][0].update(allow=[]), "left out"),
    "a rule twice in a list": (
        lambda d: d["tables"]["entries"][1].update(refuse=[0, 0]),
        "stands twice",
    ),
    "a port out of range": (
        lambda d: d["tables"]["ports"][0].update(starts=[0, 65536], entries=[0, 0]),
        "tables.ports[0].starts",
    ),
    "an entry that is none": (
        lambda d: d["tables"]["ports"][0].update(entries=[10_000]),
        "tables.ports[0].entries",
    ),
    "starts that do not begin at 0": (
        lambda d: d["tables"]["planes"]["tcp4"]["starts"].__setitem__(0, "0.0.0.1"),
        "tables.planes.tcp4",
    ),
    "starts out of order": (
        lambda d: d["tables"]["planes"]["tcp4"]["starts"].__setitem__(1, "255.0.0.0"),
        "tables.planes.tcp4",
    ),
    "an interval without a value": (
        lambda d: d["tables"]["planes"]["tcp4"]["cells"].pop(),
        "every interval has one value",
    ),
    "an address of another family": (
        lambda d: d["tables"]["planes"]["tcp4"]["starts"].__setitem__(0, "::"),
        "no address of IPv4",
    ),
    "a missing plane": (lambda d: d["tables"]["planes"].pop("udp6"), "`udp6` is missing"),
    "a missing special": (lambda d: d["tables"]["special"].pop("unix"), "`unix` is missing"),
    "a symbol with ports in no order": (
        lambda d: d["symbols"][0].update(ports=[[9, 3]]),
        "symbols[0].ports[0]",
    ),
    "an unknown class": (lambda d: d["fidelity"][0].update(refusing="good"), "fidelity[0]"),
    "a digest that is none": (lambda d: d["digests"].update(ir="md5:0"), "digests.ir"),
    "hosts that are no addresses": (lambda d: d["hosts"].update(a=["b"]), "hosts.a[0]"),
}


@pytest.mark.parametrize(("change", "says"), WRONG.values(), ids=WRONG)
def test_wrong_shapes_are_typed_errors_that_say_where(change: Change, says: str) -> None:
    document = codec.to_json(compile_policy(policy(RULES), "linux-x86_64"))
    document = json.loads(canonical(document))
    change(document)
    with pytest.raises(codec.ArtifactError) as caught:
        codec.from_json(document)
    assert says in str(caught.value)


PROGRAM: dict[str, tuple[Change, str]] = {
    "a jump out of a byte": (lambda p: p["instructions"][0].update(jt=256), "instructions[0].jt"),
    "k out of 32 bits": (lambda p: p["instructions"][0].update(k=1 << 32), "instructions[0].k"),
    "a cause that is none": (lambda p: p["instructions"][0].update(cause=77), "cause"),
    "an unknown event": (lambda p: p["fixed"][0].update(event="kill"), "fixed[0].event"),
    "a negative number": (lambda p: p["trapped"][0].update(number=-1), "trapped[0].number"),
}


@pytest.mark.parametrize(("change", "says"), PROGRAM.values(), ids=PROGRAM)
def test_wrong_programs_are_typed_errors_that_say_where(change: Change, says: str) -> None:
    document = json.loads(codec.dumps(compile_policy(policy(RULES), "linux-aarch64")))
    change(document["program"])
    with pytest.raises(codec.ArtifactError) as caught:
        codec.from_json(document)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b'{"a": 1, "a": 2}',
        b'{"a": 1.5}',
        b'{"a": NaN}',
        b"[" * 100_000,
        b'{"a": "\\ud800"}',  # half of a character
        b'{"\\uDFFF": 1}',
        b'{"a": ' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_no_artifact_at_all_is_refused(text: bytes) -> None:
    with pytest.raises(codec.ArtifactError):
        codec.loads(text)


def test_half_a_character_in_a_place_for_any_text_is_refused(artifact: Artifact) -> None:
    text = codec.dumps(artifact).decode("utf-8")
    changed = text.replace('"tool":"', '"tool":"\\ud83d')
    assert changed != text
    with pytest.raises(codec.ArtifactError):
        codec.loads(changed)
    whole = text.replace('"tool":"', '"tool":"\\ud83d\\ude00')  # both halves: one character
    assert codec.loads(whole).tool.startswith("\U0001f600")


def test_a_difference_without_a_cell_is_refused() -> None:
    rules = {"no-packets": "never connect to anything else", "look": "observe listen"}
    document = codec.to_json(compile_policy(policy(rules), "windows"))
    assert document["differences"]
    codec.from_json(document)
    document["differences"][0]["cells"] = []
    with pytest.raises(codec.ArtifactError, match="a difference is somewhere"):
        codec.from_json(document)


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for name, held in value.items():
            found += _places(held, (*path, name))
    elif isinstance(value, list):
        for at, held in enumerate(value[:3]):
            found += _places(held, (*path, at))
    return found


DOCUMENT: dict[str, Any] = json.loads(codec.dumps(compile_policy(policy(RULES), "linux-x86_64")))
PLACES = [place for place in _places(DOCUMENT) if place]


@given(
    st.sampled_from(PLACES),
    st.sampled_from([None, True, -1, 1 << 70, "", "x", [], {}, [[]], [None], {"a": 1}]),
)
def test_any_value_at_any_place_is_taken_or_a_typed_error(
    place: tuple[Any, ...], value: object
) -> None:
    document = copy.deepcopy(DOCUMENT)
    inner: Any = document
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    try:
        read = codec.from_json(document)
    except codec.ArtifactError:
        return
    assert codec.loads(codec.dumps(read)) == read


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.text()),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    )
)
def test_canonical_form_is_that_of_rfc_8785(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


def test_floating_point_numbers_are_refused_in_writing() -> None:
    with pytest.raises(TypeError):
        canonical({"a": 0.5})


def test_rules_carry_what_reports_need(artifact: Artifact) -> None:
    by_id: dict[str, Rule] = {rule.id: rule for rule in artifact.rules}
    assert by_id["no-meta"].reason == "it holds credentials → ours"
    origin = by_id["api"].origin
    assert origin is not None
    assert (origin.file, origin.line) == ("p.policy.yaml", 3)
    assert by_id["rest"].claim == "containment+behaviour"
    assert by_id["p.default.connect"].origin is None
    assert set(artifact.digests) == {"ir", "grammar", "file:p.policy.yaml"}
