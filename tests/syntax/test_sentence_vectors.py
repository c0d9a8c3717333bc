"""What reading and parsing alone refuse: each error with its place and words; what waits is named."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from flowproof.diagnostics import Diagnostic, Report
from flowproof.source.suite import load
from flowproof.syntax.parse import parse_destination, parse_destinations, parse_sentence

FOLDER = Path(__file__).parents[1] / "vectors"
ERRORS: list[dict[str, Any]] = json.loads((FOLDER / "errors.json").read_text(encoding="utf-8"))
ACCEPTED: list[dict[str, Any]] = json.loads((FOLDER / "accepted.json").read_text(encoding="utf-8"))

# What the files and sentences alone do not decide: it takes sets, other rules, other files, packs.
WAIT_FOR_MEANING = {
    *("st-unknown", "st-self", "st-circle", "st-ports-on-ported-in-set", "st-flow-set-in-pack"),
    *("ex-supernet", "ex-outside", "ex-second-outside", "ex-port-outside", "ex-port-wider"),
    *("ex-other-family", "ex-public-from-private", "ex-anything-from-cidr", "ex-name-from-class"),
    *("ex-path-outside", "ex-glob-outside"),
    *("el-allow-else", "el-allow-else-port", "el-allow-else-second", "el-allow-anywhere-else"),
    *("el-shadow-order", "el-shadow-two", "el-shadow-anything", "el-shadow-loopback"),
    *("el-shadow-pack", "el-shadow-file", "el-shadow-file-destroy", "el-shadow-glob"),
    *("el-shadow-egress", "id-rule-twice", "id-slug-same-entry", "mu-shadow-and-except"),
}
# What a backend cannot carry is no error of input.
WAIT_FOR_A_BACKEND = {
    *("op-expect-name", "op-deny-one-of-two", "op-deny-idna-name", "op-pack-deny-name"),
    "op-execute",
}


def write(vector: dict[str, Any], folder: Path) -> None:
    files = {name: text.encode() for name, text in vector.get("files", {}).items()}
    files |= {name: base64.b64decode(text) for name, text in vector.get("files_b64", {}).items()}
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read_and_parse(path: str) -> Report:
    """Read a path and parse each sentence and destination in it, without asking what they mean."""
    report = Report()
    suite = load(path, report)
    if suite is None:
        return report
    documents: list[Any] = [flow.flow.control for flow in suite.flows if flow.flow.control]
    for loaded in suite.packs:
        documents += (loaded.pack, *loaded.packs)
    for flow in suite.flows:
        documents += flow.packs
        for entry in (flow.flow.agent and flow.flow.agent.allow_egress) or ():
            parse_destination(entry, report)
    for document in documents:
        for _name, members in document.sets:
            for member in members:
                parse_destinations(member, report)
        for _id, sentence in document.rules:
            parse_sentence(sentence, report)
    return report


def matches(error: Diagnostic, expected: dict[str, Any]) -> bool:
    printed = " ".join((error.message, error.help or "", *(text for _, text in error.related)))
    assert error.span is not None
    return (
        expected["file"] in {None, error.span.file}
        and expected["line"] in {None, error.span.line}
        and expected["column"] in {None, error.span.column}
        and all(word in printed for word in expected["mentions"])
    )


def check(vector: dict[str, Any], found: Report) -> None:
    left = list(found.errors)
    shown = "\n".join(f"{e.span}: {e.code} {e.message} ({e.help})" for e in left)
    for expected in vector["errors"]:
        match = next((error for error in left if matches(error, expected)), None)
        assert match is not None, f"{expected} is not among:\n{shown}"
        left.remove(match)
    assert not left, f"more errors than {vector['errors']}:\n{shown}"


@pytest.fixture
def vector(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    given: dict[str, Any] = request.param
    write(given, tmp_path)
    monkeypatch.chdir(tmp_path)
    return given


@pytest.mark.parametrize(
    "vector",
    [v for v in ERRORS if v["id"] not in WAIT_FOR_MEANING | WAIT_FOR_A_BACKEND],
    ids=lambda v: str(v["id"]),
    indirect=True,
)
def test_reading_and_parsing_find_each_error_and_no_other(vector: dict[str, Any]) -> None:
    check(vector, read_and_parse(vector["path"]))


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda v: str(v["id"]), indirect=True)
def test_what_is_right_is_neither_refused_nor_warned_about(vector: dict[str, Any]) -> None:
    assert list(read_and_parse(vector["path"])) == []


@pytest.mark.parametrize(
    "vector",
    [v for v in ERRORS if v["id"] in WAIT_FOR_MEANING | WAIT_FOR_A_BACKEND],
    ids=lambda v: str(v["id"]),
    indirect=True,
)
def test_what_waits_is_nothing_that_reading_could_tell(vector: dict[str, Any]) -> None:
    assert read_and_parse(vector["path"]).errors == ()


PIECES = (
    *" \t\n\r:#-,[]{}\"'|>*&!%@`?\\~",
    *(
        "\n  ",
        "\n    ",
        ": ",
        " #",
        "- ",
        "allow ",
        "never ",
        "expect no ",
        "connect to ",
        "listen on ",
    ),
    *(
        "anything else",
        "except ",
        "under ",
        "delete ",
        "/srv ",
        "${X}",
        "unix:/x",
        '"db"',
        ":443",
        "::1",
    ),
    *(
        ":{80,90-100}",
        'because "x"',
        "tcp ",
        "*.example.com",
        "sets:\n",
        "rules:\n",
        "null",
        "10.0.0.0/8",
    ),
)


def test_a_mutilated_document_is_told_what_is_wrong_and_never_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    choose = random.Random(3)
    texts = [
        vector["files"]["x.flow.yaml"] for vector in ACCEPTED if "x.flow.yaml" in vector["files"]
    ]
    refused = 0
    for _ in range(300):
        text = choose.choice(texts)
        for _ in range(choose.randint(1, 4)):
            at = choose.randint(0, len(text))
            text = text[:at] + choose.choice(PIECES) + text[at + choose.choice((0, 0, 1, 5)) :]
        Path("x.flow.yaml").write_bytes(text.encode())
        found = read_and_parse("x.flow.yaml")
        for diagnostic in found:
            span = diagnostic.span
            assert span is not None
            assert 0 <= span.start <= span.end <= len(span.source.text), (text, diagnostic)
            assert diagnostic.message
        refused += bool(found.errors)
    assert 100 < refused < 300


def test_every_vector_is_decided_or_named_as_waiting() -> None:
    ids = {vector["id"] for vector in ERRORS}
    assert len(ids) == len(ERRORS) == 203
    assert ids >= WAIT_FOR_MEANING | WAIT_FOR_A_BACKEND
