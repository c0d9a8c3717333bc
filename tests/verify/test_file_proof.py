"""The proof of what an artifact says of files: a difference names the attempt, the rule and its place."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from authored import policy

from flowproof.artifact import codec
from flowproof.canonical import canonical
from flowproof.globs import matches
from flowproof.ir.model import Policy
from flowproof.lower.backend import TARGETS, compile_policy
from flowproof.verify.files import holds
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.programs import compare_program
from flowproof.verify.prove import verify
from flowproof.verify.require import required

RULES = {
    "keep": "expect no destroy under /srv except under /srv/tmp",
    "logs": "observe write at /var/log/**/*.log",
    "open": "allow delete under /var/tmp",
    "rest": "expect no delete anywhere else",
}
MEANT = policy(RULES)


def artifact(meant: Policy = MEANT, target: str = "linux-x86_64") -> dict[str, Any]:
    return copy.deepcopy(codec.to_json(compile_policy(meant, target)))


def found(held: dict[str, Any]) -> Counterexample:
    proof = verify(MEANT, canonical(held))
    assert isinstance(proof, Counterexample)
    return proof


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_compiled_is_proved(target: str) -> None:
    proof = verify(MEANT, codec.dumps(compile_policy(MEANT, target)))
    assert isinstance(proof, Proof), str(proof)


def rows(held: dict[str, Any]) -> list[dict[str, Any]]:
    listed = held["tables"]["files"]
    assert isinstance(listed, list)
    return listed


def test_a_path_that_is_another_shows_an_attempt_there() -> None:
    held = artifact()
    rows(held)[0]["inside"]["paths"] = ["/srv2"]
    told = str(found(held))
    assert "event    delete /srv" in told
    assert "rule     keep" in told
    assert "policy   counted by keep" in told


def test_a_row_left_out_is_found() -> None:
    held = artifact()
    rows(held).pop()
    assert found(held).rule == "rest"


def test_an_allow_left_out_of_a_complement_is_found() -> None:
    held = artifact()
    del rows(held)[2]
    difference = found(held)
    assert difference.rule == "rest"
    assert "/var/tmp" in difference.event


def test_a_row_for_a_rule_that_refuses_is_found() -> None:
    refusing = policy({"r": "deny delete under /srv"})
    held = artifact(refusing)
    at = [rule["id"] for rule in held["rules"]].index("r")
    inside = {"kind": "under", "paths": ["/srv"]}
    held["tables"]["files"] = [
        {
            "rule": at,
            "operations": ["delete"],
            "inside": inside,
            "excepted": None,
            "otherwise": False,
        }
    ]
    assert isinstance(verify(refusing, canonical(held)), Counterexample)


def test_rows_on_windows_are_a_promise_that_nobody_keeps() -> None:
    held = artifact(target="windows")
    held["tables"]["files"] = artifact()["tables"]["files"]
    assert isinstance(verify(MEANT, canonical(held)), Counterexample)


def test_a_lane_that_the_program_does_not_engage_is_found() -> None:
    held = artifact()
    held["lanes"] = []
    assert "lanes" in str(found(held))


def test_an_open_whose_flags_are_not_looked_at_is_found() -> None:
    held = artifact()
    for step in held["program"]["instructions"]:
        if step["code"] == 0x45:
            step["k"] ^= 0o1000  # O_TRUNC
    difference = found(held)
    assert difference.event.startswith("open")
    assert difference.artifact == "allow"
    assert difference.policy.startswith("decided open")


def test_a_call_that_is_not_trapped_is_found() -> None:
    held = artifact()
    held["program"]["trapped"] = [c for c in held["program"]["trapped"] if c["call"] != "rmdir"]
    assert "program.trapped" in str(found(held))


PATHS = ("/a", "/a/b", "/ab", "/a/b/c.txt", "/a/.b", "/", "", "/a/", "/x/y/z", "/aXb", "/a/b.txt")
GLOBS = (
    *("/a/*", "/a/**", "/**", "/a*b", "/*/b", "/a/**/c.txt", "/**/*.txt", "/a/b**", "/a**/c.txt"),
    *("/*", "/a/*/*", "/**/b/**", "/a/?", "/a/.*"),
)


def test_the_proof_reads_globs_as_runs_do() -> None:
    """Two readers of one notation, written apart."""
    for glob in GLOBS:
        for path in PATHS:
            assert holds("at", glob, path) is matches(glob, path), (glob, path)


def random_rules(seed: int) -> dict[str, str]:
    rng = random.Random(seed)
    where = (
        *("under /srv", "under /srv/a, /var", "at /srv/*.txt", "at /**/x", "anywhere"),
        *("anywhere else", "under ${cwd}", "at ~/a*b*c/**"),
    )
    verbs = ("expect no", "expect no", "observe", "allow", "deny", "never")
    operations = ("delete", "rename", "truncate", "write", "destroy", "delete, write")
    rules = {}
    for at in range(rng.randint(1, 5)):
        verb, place = rng.choice(verbs), rng.choice(where)
        if verb == "allow" and place in ("anywhere", "anywhere else"):
            place = "under /srv/b"
        rules[f"r{at}"] = f"{verb} {rng.choice(operations)} {place}"
    if rng.random() < 0.5:
        rules["net"] = "deny connect to 10.0.0.9"
    return rules


def test_random_policies_about_files_are_proved() -> None:
    proved = 0
    for seed in range(60):
        try:
            meant = policy(random_rules(seed))
        except (
            AssertionError
        ):  # a rule that the language refuses, such as an allow that is shadowed
            continue
        for target in ("linux-x86_64", "linux-aarch64"):
            proof = verify(meant, codec.dumps(compile_policy(meant, target)))
            assert isinstance(proof, Proof), f"seed {seed}, {target}:\n{proof}"
            proved += 1
    assert proved > 60


def test_a_computed_comparison_is_proved_where_few_numbers_come_to_it() -> None:
    """Adding nothing to the number changes nothing; where any number comes to it, nobody can tell."""
    meant = policy({"r": "expect no rename under /srv"})
    program = codec.to_json(compile_policy(meant, "linux-x86_64"))["program"]
    steps = program["instructions"]
    wanted = required(meant, "x86_64")
    loads = next(at for at, step in enumerate(steps) if step["code"] == 0x20 and step["k"] == 0)
    add = {**steps[0], "code": 0x04, "k": 0}
    changed = copy.deepcopy(steps)
    changed.insert(loads + 1, add)
    changed[1]["jf"] += 1  # over the new one
    _, difference = compare_program({**program, "instructions": changed}, wanted)
    assert difference is not None
    assert "not proved" in difference.artifact
