"""What Windows does otherwise than Linux is listed in the artifact: all of it, and nothing besides."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from authored import policy
from comparison import random_policy

from flowproof.addresses import LAST, parse_address
from flowproof.artifact import codec
from flowproof.artifact.model import Artifact, Difference
from flowproof.canonical import canonical
from flowproof.cli.main import main
from flowproof.lower.backend import compile_policy
from flowproof.lower.wfp import compile as windows
from flowproof.lower.wfp.differences import differences
from flowproof.run.decide import Decisions
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.prove import verify
from flowproof.verify.wfp import Attempt, classify

JSON = dict[str, Any]


def _differences(rules: dict[str, str]) -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """Return subject and place → kind and cells, fixed meanings aside."""
    artifact = compile_policy(policy(rules), "windows")
    assert isinstance(verify(policy(rules), codec.dumps(artifact)), Proof)
    return {
        (one.subject, one.where): (one.kind, one.cells)
        for one in artifact.differences
        if one.where != "meaning"
    }


def test_a_listen_that_is_excepted_by_address_is_refused_on_windows() -> None:
    found = _differences(
        {"c": "deny connect to 10.0.0.1", "l": "deny listen on anything:80 except 10.0.0.9:80"}
    )
    assert found["p.implied.listen", "listen4"] == ("over-blocks", ("10.0.0.9 port 80",))
    assert found["l", "listen4"][0] == "other-rule"


def test_the_cells_are_whole_and_joined() -> None:
    rules = {
        "l": "deny listen on anything else",
        "a": "allow listen on 10.0.0.0/31:80-90, 10.0.0.2:80-90",
    }
    found = _differences(rules)
    assert found["a", "listen4"] == ("over-blocks", ("10.0.0.0 - 10.0.0.2 ports 80-90",))
    assert ("a", "listen6") not in found
    assert ("a", "listen-any4") not in found


def test_a_refusal_by_address_that_is_not_carried_is_listed_as_let_through() -> None:
    found = _differences({"n": "never listen on 10.0.0.1:8080"})
    assert found["n", "listen4"] == ("over-permits", ("10.0.0.1 port 8080",))
    assert found["n", "listen-any4"] == ("over-permits", ("port 8080",))
    assert found["n", "listen-any6"] == ("over-permits", ("port 8080",))
    assert found["n", "counting"] == ("unsupported", ("listens by address",))


def test_attempts_at_files_that_only_linux_sees_are_listed() -> None:
    rules = {
        "d": "expect no destroy under /srv",
        "w": "observe write anywhere",
        "n": "deny write under /etc",  # no target refuses it
        "r": "never connect to anything else",
    }
    found = _differences(rules)
    assert found["d", "counting"] == ("unsupported", ("delete", "rename", "truncate"))
    assert found["w", "counting"] == ("unsupported", ("write",))
    assert not [place for place in found if place[0] == "n"]


def test_what_is_refused_by_another_rule_is_listed() -> None:
    found = _differences({"n": "deny listen on 10.0.0.1:8080", "r": "deny listen on anything else"})
    assert found["n", "listen4"] == ("other-rule", ("10.0.0.1 port 8080",))


def test_unix_sockets_and_what_is_bound_later_are_listed_by_name() -> None:
    found = _differences(
        {
            "bus": "allow connect to unix:/run/bus.sock, unix:@session",
            "off": "deny connect to ${UPSTREAM}, 10.0.0.7 except 10.0.0.7:81",
            "rest": "deny connect to anything else except api.example.com, unix:/run/x.sock",
        }
    )
    assert found == {
        ("bus", "unix"): ("not-applicable", ("unix:/run/bus.sock", "unix:@session")),
        ("off", "binding"): ("unsupported", ("${UPSTREAM}",)),
        ("rest", "unix"): ("not-applicable", ("unix:/run/x.sock",)),
        ("rest", "binding"): ("unsupported", ("api.example.com",)),
    }


def test_each_fixed_meaning_that_is_not_carried_is_listed() -> None:
    artifact = compile_policy(policy({"r": "deny connect to anything else"}), "windows")
    listed = {one.subject: one.kind for one in artifact.differences if one.where == "meaning"}
    rows = {row.subject: row.refusing for row in artifact.fidelity if ":" in row.subject}
    assert listed == {name: kind for name, kind in rows.items() if kind != "exact"}
    assert len(listed) == 7


def test_a_policy_without_rules_has_no_differences() -> None:
    assert compile_policy(policy({}), "windows").differences == ()


# --- all of them: every listen at the ends of every interval, whatever the list says


def _holds(one: Difference, address: int, port: int) -> bool:
    """Tell whether a cell of *one*, in the words of the artifact, holds an address and port."""
    for text in one.cells:
        where, _, ports = text.rpartition(" port ")
        if not where and text.startswith("port "):
            ports = text.removeprefix("port ")
        elif " ports " in text or text.startswith("ports "):
            where, _, ports = text.rpartition("ports ")
        elif text.endswith("any port"):
            where, ports = text.removesuffix("any port"), "0-65535"
        if _between(where.strip(), address) and any(
            int(low) <= port <= int(high or low)
            for low, _, high in (part.partition("-") for part in ports.split(","))
        ):
            return True
    return False


def _between(text: str, address: int) -> bool:
    if not text:
        return True
    low, dash, high = text.partition(" - ")
    base, _, prefix = low.partition("/")
    first = parse_address(base)
    assert first is not None, text
    width = 32 if first[0] == 4 else 128
    last = first[1] + (1 << width - int(prefix)) - 1 if prefix else first[1]
    if dash:
        parsed = parse_address(high)
        assert parsed is not None, text
        last = parsed[1]
    return first[1] <= address <= last


def _listens(artifact: Artifact) -> Iterator[tuple[str, int, int]]:
    """Yield (plane, address, port) at the ends of what tables and differences tell apart."""
    ports = {0, 1, 65535}
    for table in artifact.tables.ports:
        ports.update(near for start in table.starts for near in (start - 1, start) if near >= 0)
    assert artifact.filters is not None
    for one in json.loads(canonical(artifact.filters))["filters"]:
        for condition in one["conditions"]:
            if condition["field"].endswith("_PORT"):
                held = condition["value"]
                ends = held if isinstance(held, list) else [held, held]
                ports.update((max(ends[0] - 1, 0), ends[0], ends[1], min(ends[1] + 1, 65535)))
    for where in ("listen4", "listen6", "listen-any4", "listen-any6"):
        family = int(where[-1])
        addresses = {0} if "any" in where else {1, 2, LAST[family]}
        if "any" not in where:
            for start in artifact.tables.planes[where].starts:
                addresses.update(near for near in (start - 1, start) if near > 0)
        for address in addresses:
            if family == 4 or address >> 32 != 0xFFFF:  # those are IPv4
                for port in ports:
                    yield where, address, port


def _differs(
    artifact: Artifact, decisions: Decisions, where: str, address: int, port: int
) -> str | None:
    """Return how the filters differ from the tables at one listen; None where they do not."""
    decision = decisions.address(where, address, port)
    family = int(where[-1])
    attempt = Attempt(f"ALE_AUTH_LISTEN_V{family}", 6, local=(family, address), local_port=port)
    assert artifact.filters is not None
    ruling = classify(json.loads(canonical(artifact.filters)), attempt)
    by = None if decision.by is None else artifact.rules[decision.by].id
    if ruling.permitted is decision.refused:
        return "over-permits" if ruling.permitted else "over-blocks"
    if by is None or by in ruling.rules or not ruling.matched:
        return None
    return "other-rule"


def test_random_policies_list_every_listen_that_differs_and_no_other() -> None:
    seen: dict[str | None, int] = {}
    for seed in (7, 8, 12, 42, 58, 60, 78, 93, 135, 202):
        meant = random_policy(random.Random(seed))
        artifact = compile_policy(meant, "windows")
        decisions = Decisions(artifact.tables, artifact.rules)
        rng = random.Random(seed)
        tried = list(_listens(artifact))
        for where, address, port in rng.sample(tried, min(len(tried), 400)):
            listed = {
                one.kind
                for one in artifact.differences
                if one.where == where and _holds(one, address, port)
            }
            differs = _differs(artifact, decisions, where, address, port)
            assert listed == ({differs} if differs else set()), (seed, where, address, port)
            seen[differs] = seen.get(differs, 0) + 1
    assert (
        min(seen.get(kind, 0) for kind in ("over-blocks", "over-permits", "other-rule", None)) > 9
    )


# --- a list that is another


RULES = {
    "a": "allow listen on 10.0.0.0/31:80",
    "bus": "allow connect to unix:/run/bus.sock",
    "l": "deny listen on anything else",
    "n": "never listen on 10.0.0.9:8080",
    "off": "deny connect to ${UPSTREAM}, 10.0.0.7 except 10.0.0.7:81",
}


def _mutants() -> Iterator[tuple[str, JSON]]:
    original = codec.to_json(compile_policy(policy(RULES), "windows"))
    listed = original["differences"]
    for at, one in enumerate(listed):
        rest = (listed[:at], listed[at + 1 :])
        name = f"{one['subject']}, {one['where']}"
        yield f"{name}: left out", {**original, "differences": [*rest[0], *rest[1]]}
        yield f"{name}: twice", {**original, "differences": [*listed, one]}
        changes: list[tuple[str, JSON]] = [
            (
                "another kind",
                {"kind": "unsupported" if one["kind"] != "unsupported" else "over-blocks"},
            ),
            ("another subject", {"subject": "a" if one["subject"] != "a" else "n"}),
            ("another place", {"where": "tcp4"}),
            ("no cell", {"cells": []}),
        ]
        if one["where"] != "meaning":
            changes += [
                ("a cell more", {"cells": [*one["cells"], "10.9.9.9 port 9"]}),
                ("a cell less", {"cells": one["cells"][1:]}),
                ("another rule", {"rules": [(one["rules"][0] + 1) % len(original["rules"])]}),
            ]
        for what, change in changes:
            changed = [*rest[0], {**one, **change}, *rest[1]]
            yield f"{name}: {what}", {**original, "differences": changed}


MUTANTS = dict(_mutants())


def test_there_is_a_difference_of_each_kind_to_change() -> None:
    listed = compile_policy(policy(RULES), "windows").differences
    assert {one.kind for one in listed} == {
        "over-blocks",
        "other-rule",
        "not-applicable",
        "unsupported",
    }


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_list_that_is_another_is_no_proof(mutant: str) -> None:
    found = verify(policy(RULES), canonical(MUTANTS[mutant]))
    assert isinstance(found, Counterexample)
    assert found.part == "differences"


def test_a_difference_that_is_left_out_is_named_with_its_rule_and_place() -> None:
    artifact = codec.to_json(compile_policy(policy(RULES), "windows"))
    artifact["differences"] = [
        one for one in artifact["differences"] if (one["subject"], one["where"]) != ("n", "listen4")
    ]
    found = verify(policy(RULES), canonical(artifact))
    assert isinstance(found, Counterexample)
    assert found.event == "listen4 10.0.0.9 port 8080: other-rule, as n states"
    assert found.artifact == "does not list it"
    assert found.place is not None


def test_linux_has_none_and_may_list_none() -> None:
    for target in ("linux-x86_64", "linux-aarch64"):
        artifact = codec.to_json(compile_policy(policy(RULES), target))
        assert artifact["differences"] == []
        listed = codec.to_json(compile_policy(policy(RULES), "windows"))["differences"]
        found = verify(policy(RULES), canonical({**artifact, "differences": listed}))
        assert isinstance(found, Counterexample)


# --- on the command line


FLOW = """\
name: T
agent: {command: "true"}
control:
  id: t.f
  rules:
    t.f.c: deny connect to anything else
    t.f.l: deny listen on anything:80 except 10.0.0.9:80
"""
REPORT = ("--fidelity", "report")


@pytest.fixture
def flow(tmp_path: Path) -> str:
    path = tmp_path / "t.flow.yaml"
    path.write_text(FLOW)
    return str(path)


def _listed(artifact: JSON) -> list[JSON]:
    wanted = ("listen4", "over-blocks")
    return [one for one in artifact["differences"] if (one["where"], one["kind"]) == wanted]


def test_an_unlisted_difference_stops_the_compile(
    flow: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["compile", flow, *REPORT, "--target", "windows"]) == 0
    left = ("listen4", "over-blocks")

    def forgetful(*arguments: Any) -> tuple[Difference, ...]:  # noqa: ANN401  passed on as given
        return tuple(one for one in differences(*arguments) if (one.where, one.kind) != left)

    monkeypatch.setattr(windows, "differences", forgetful)
    capsys.readouterr()
    assert main(["compile", flow, *REPORT, "--target", "windows"]) == 70
    err = capsys.readouterr().err
    assert "does not list it" in err
    assert "10.0.0.9 port 80" in err


def test_the_artifact_the_listing_and_the_table_of_all_targets_name_it(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", flow, *REPORT, "--target", "windows", "--emit", "json"]) == 0
    (one,) = _listed(json.loads(capsys.readouterr().out))
    assert (one["kind"], one["cells"]) == ("over-blocks", ["10.0.0.9 port 80"])
    assert main(["compile", flow, *REPORT, "--target", "windows"]) == 0
    listing = capsys.readouterr().out
    assert main(["compile", flow, *REPORT, "--target", "all"]) == 0
    table = capsys.readouterr().out
    for text in (listing, table):
        (line,) = [line for line in text.splitlines() if "10.0.0.9 port 80:" in line]
        assert "over-blocks" in line
        assert "let through by no rule; here refused by t.f.implied.listen" in line
    assert main(["compile", flow, *REPORT, "--target", "all", "--emit", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["differences"]
    assert told["linux-x86_64"] == []
    (one,) = _listed({"differences": told["windows"]})
    assert one["rules"] == ["t.f.implied.listen"]


def test_a_long_list_is_short_in_the_listing_and_whole_in_the_artifact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.flow.yaml"
    members = ", ".join(f"10.0.{at}.1:80" for at in range(200))
    path.write_text(FLOW.replace("10.0.0.9:80", members))
    assert main(["compile", str(path), *REPORT, "--target", "windows", "--emit", "json"]) == 0
    (one,) = _listed(json.loads(capsys.readouterr().out))
    assert len(one["cells"]) == 200
    assert main(["compile", str(path), *REPORT, "--target", "windows"]) == 0
    assert "10.0.3.1 port 80 and 196 more" in capsys.readouterr().out


@pytest.mark.parametrize("tampered", ["left out", "added", "other words"])
def test_verify_names_a_list_that_was_tampered_with(
    flow: str, tampered: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", flow, *REPORT, "--target", "windows", "--emit", "json"]) == 0
    artifact = json.loads(capsys.readouterr().out)
    held = artifact["differences"]
    (one,) = _listed(artifact)
    match tampered:
        case "left out":
            artifact["differences"] = [other for other in held if other is not one]
        case "added":
            held.append({**copy.deepcopy(one), "cells": ["10.0.0.8 port 80"]})
        case _:
            one["target"] = "nothing to see"
    path = Path(flow).with_name("a.json")
    path.write_text(json.dumps(artifact))
    assert main(["verify", str(path), flow]) == 1
    err = capsys.readouterr().err
    assert "differences: t.f.implied.listen over-blocks, listen4 10.0.0." in err


def test_an_artifact_without_the_list_is_none(
    flow: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", flow, *REPORT, "--target", "windows", "--emit", "json"]) == 0
    artifact = json.loads(capsys.readouterr().out)
    del artifact["differences"]
    path = Path(flow).with_name("a.json")
    path.write_text(json.dumps(artifact))
    assert main(["verify", str(path), flow]) == 2
    assert "`differences` is missing" in capsys.readouterr().err
