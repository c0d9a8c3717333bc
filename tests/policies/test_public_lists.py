"""The lists that people use in public: what the table calls expressed is compiled, bound and decided as the
list says, entry by entry; what it calls refused is refused with the diagnostic that it names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from public_lists import (
    LISTS,
    VARIABLE,
    Beyond,
    Silent,
    Translation,
    bound_event,
    hosts_of,
    read_list,
    read_table,
)
from translate import translate

from flowproof.artifact.codec import loads
from flowproof.cli.inputs import read
from flowproof.cli.main import main
from flowproof.diagnostics import Report
from flowproof.ir.evaluate import evaluate
from flowproof.ir.events import Connect, Listen, parse_event
from flowproof.ir.model import Policy
from flowproof.run.bind import Bound, bind

TABLE = read_table()
EXPRESSED = [name for name, row in TABLE.items() if row["verdict"] == "expressed"]
REFUSED = [name for name, row in TABLE.items() if row["verdict"] == "refused"]


class Compiled:
    """What ``flowproof compile`` made of a document: its exit code, its errors, its answer."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def write(self, document: dict[str, Any], suffix: str) -> Path:
        """Write a document (JSON is YAML) and return its path."""
        path = self.folder / f"list{suffix}"
        path.write_text(json.dumps(document, indent=1), encoding="utf-8")
        return path

    def __call__(
        self, document: dict[str, Any], suffix: str, hosts: dict[str, str]
    ) -> tuple[int, str, str]:
        table = self.folder / "hosts"
        lines = [f"{address} {name}\n" for name, address in hosts.items()]
        table.write_text("".join(lines), encoding="utf-8")
        words = ["--target", "linux-x86_64", "--emit", "json", "--hosts", str(table)]
        code = main(["compile", str(self.write(document, suffix)), *words])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compiled:
    return Compiled(tmp_path, capsys)


def reference(compiled: Compiled, translation: Translation) -> Policy:
    """Return the meaning of a list, its variable written out: the reference knows no environment."""
    name, value = VARIABLE
    text = json.dumps(translation.document).replace(f"${{{name}}}", value)
    report = Report()
    (resolved,) = read(str(compiled.write(json.loads(text), translation.suffix)), report).resolved
    assert not report.errors
    return resolved.policy


def handled(policy: Policy, text: str) -> str:
    """Return what the reference meaning says of an event."""
    event = parse_event(text, report := Report())
    assert event is not None, [diagnostic.message for diagnostic in report.errors]
    return evaluate(policy, event).handling


def bound_tables(answer: str, hosts: dict[str, str]) -> Bound:
    """Return the tables of an artifact, read back from its bytes and bound without any resolver."""

    def no_resolver(name: str) -> tuple[str, ...]:
        raise AssertionError(f"`{name}` was not bound by --hosts")

    name, value = VARIABLE
    environ = {name: hosts.get(value, value)}
    bound = bind(loads(answer), environ, no_resolver, cwd="/")
    assert isinstance(bound, Bound), bound
    return bound


def decided(bound: Bound, text: str) -> str:
    """Return what the bound tables say of an event with an address."""
    event = parse_event(text, Report())
    match event:
        case Connect():
            plane, port = f"{event.protocol}{event.family}", event.port
        case Listen():
            every = "" if event.address else "-any"  # 0.0.0.0 and :: have a plane of their own
            plane, port = f"listen{every}{event.family}", event.port
        case _:
            raise AssertionError(f"no event with an address: {text}")
    refused = bound.decisions.address(plane, event.address, port).refused
    return "refused" if refused else "let-through"


def test_the_table_speaks_of_every_list() -> None:
    assert list(TABLE) == LISTS
    assert {row["verdict"] for row in TABLE.values()} == {"expressed", "refused"}


def test_every_list_names_its_public_source() -> None:
    assert [name for name in LISTS if not read_list(name)["source"]] == []


@pytest.mark.parametrize("name", EXPRESSED)
def test_an_expressed_list_lets_each_entry_through_and_not_what_is_beside_it(
    name: str, compiled: Compiled
) -> None:
    translation = translate(read_list(name))
    hosts = hosts_of(translation)
    code, answer, errors = compiled(translation.document, translation.suffix, hosts)
    assert code == 0, errors
    policy = reference(compiled, translation)
    bound = bound_tables(answer, hosts)
    shown = [part for part in translation.destinations if part.entry != "else"]
    assert shown
    for part in shown:
        assert part.through, part
        assert part.refused, part
        for expected, events in (("let-through", part.through), ("refused", part.refused)):
            for event in events:
                assert handled(policy, event) == expected, (part.entry, event)
                assert decided(bound, bound_event(event, hosts)) == expected, (part.entry, event)


def _holders(entry: str, rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if row["entries"] in entry]


@pytest.mark.parametrize("name", EXPRESSED)
def test_no_entry_of_an_expressed_list_is_dropped_in_silence(name: str, compiled: Compiled) -> None:
    row, translation = TABLE[name], translate(read_list(name))
    used = set()
    for part in translation.parts:
        beyond = _holders(part.entry, row.get("beyond", ()))
        silent = _holders(part.entry, row.get("silent", ()))
        if isinstance(part, Beyond):
            (reason,) = beyond
            suffix = ".flow.yaml" if "name" in part.document else ".policy.yaml"
            code, _, errors = compiled(part.document, suffix, {})
            assert code in {2, 3}, part
            assert f"error[{reason['code']}]" in errors, errors
        elif isinstance(part, Silent):
            (reason,) = silent
        else:
            continue
        assert reason["because"]
        used.add(reason["entries"])
    assert used == {
        reason["entries"] for key in ("beyond", "silent") for reason in row.get(key, ())
    }


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_list_is_refused_with_the_diagnostic_of_the_table(
    name: str, compiled: Compiled
) -> None:
    row, translation = TABLE[name], translate(read_list(name))
    assert row["because"]
    code, answer, errors = compiled(translation.document, translation.suffix, hosts_of(translation))
    assert code in {2, 3}
    assert answer == ""
    lines = [line for line in errors.splitlines() if f"error[{row['code']}]" in line]
    assert any(row["mentions"] in line.partition("]: ")[2] for line in lines), errors


WITHOUT_DESTINATIONS = ("seccomp-", "nsjail", "firejail-profile")
ELSEWISE = {
    "ci-33": "`#` is an entry of it",
    "fp-01": "its steps assert over content",
    "fp-02": "its steps assert over content",
    "fp-03": "its steps assert over content",
    "k8-17": "a port range of it begins with a name",
    "k8-18": "it is about SCTP too",
}


def test_every_list_without_wildcards_labels_and_conditions_is_expressed() -> None:
    for name in LISTS:
        given = read_list(name)
        if name in ELSEWISE or given["kind"].startswith(WITHOUT_DESTINATIONS):
            continue
        entries = [e for e in given["entries"] if not str(e.get("op", "")).startswith("fs.")]
        text = json.dumps([{**entry, "rule": ""} for entry in entries])
        narrow = "*" in text or '"labels"' in text or '"dns"' in text
        assert (TABLE[name]["verdict"] == "refused") is narrow, name
