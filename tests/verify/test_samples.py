"""Symbolic parts in the proof: names and variables bound to addresses, and what is tampered named with its cell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from authored import policy
from comparison import random_policy
from mutations import JSON, table_mutants

from flowproof.artifact import codec
from flowproof.canonical import canonical
from flowproof.cli.misstated import misstated
from flowproof.cli.proving import with_cache
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy
from flowproof.values import replace
from flowproof.verify import prove
from flowproof.verify.found import Counterexample, Proof
from flowproof.verify.prove import verify
from flowproof.verify.reading import Read
from flowproof.verify.samples import compare_samples

POLICY = policy(
    {
        "api": "allow connect tcp to api.example.com:443, 10.0.0.0/24:80 except 10.0.0.9:80",
        "db": "allow connect to ${DATABASE}:5432",
        "no-host": "never connect to ${FORBIDDEN}, 192.0.2.1",
        "rest": "deny connect to anything else except ${MIRROR}:80",
        "told": "observe connect to *.example.com",
    }
)
LISTENS = policy(
    {
        "in": "allow listen on ${OURS}:8080",
        "out": "deny connect to 192.0.2.1",
        "no": "deny listen on anything:1-1023 except ${OURS}:80",
    }
)
Hosts = dict[str, tuple[str, ...]]
HOSTS: Hosts = {"api.example.com": ("10.0.0.9", "2001:db8::1")}


def _json(meant: Policy = POLICY, target: str = "linux-x86_64", hosts: Hosts | None = None) -> JSON:
    return codec.to_json(compile_policy(meant, target, hosts=hosts))


def _proof(meant: Policy, artifact: JSON) -> Proof | Counterexample:
    return verify(meant, canonical(artifact), thorough=True)


@pytest.mark.parametrize("meant", [POLICY, LISTENS])
@pytest.mark.parametrize("target", ["linux-x86_64", "windows"])
def test_what_is_compiled_is_proved_with_its_symbols_bound(meant: Policy, target: str) -> None:
    found = _proof(meant, _json(meant, target))
    assert isinstance(found, Proof), str(found)
    assert found.bound > 20
    assert f"names bound at {found.bound} attempts" in str(found)


def test_a_policy_of_addresses_has_nothing_to_bind() -> None:
    meant = policy({"a": "deny connect to 192.0.2.1"})
    found = _proof(meant, _json(meant))
    assert isinstance(found, Proof)
    assert found.bound == 0


def _symbol(artifact: JSON, value: str) -> JSON:
    held: JSON = next(one for one in artifact["symbols"] if one["value"] == value)
    return held


TAMPERED: dict[str, tuple[Callable[[JSON], object], str, str]] = {
    "a name of the attacker's": (
        lambda a: _symbol(a, "api.example.com").update(value="api.attacker.example"),
        "api",
        "connect tcp 198.18.0.1:443, where api.example.com is bound to it",
    ),
    "a refusal of another variable": (
        lambda a: _symbol(a, "FORBIDDEN").update(value="NOBODY"),
        "no-host",
        "where ${FORBIDDEN} is bound to it",
    ),
    "more ports": (
        lambda a: _symbol(a, "DATABASE").update(ports=[[1, 65535]]),
        "rest",
        "where ${DATABASE} is bound to it",
    ),
    "an exception as a target": (
        lambda a: _symbol(a, "MIRROR").update(role="target"),
        "p.default.connect",
        "${MIRROR} is bound to it",
    ),
    "a symbol left out": (
        lambda a: a["symbols"].remove(_symbol(a, "FORBIDDEN")),
        "no-host",
        "where ${FORBIDDEN} is bound to it",
    ),
    "a protocol more": (
        lambda a: _symbol(a, "api.example.com").update(protocols=["tcp", "udp"]),
        "rest",
        "connect udp 198.18.0.1:443, where api.example.com is bound to it",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_symbol_is_named_with_the_attempt_that_shows_it(name: str) -> None:
    tamper, rule, event = TAMPERED[name]
    artifact = _json()
    tamper(artifact)
    found = _proof(POLICY, artifact)
    assert isinstance(found, Counterexample), name
    assert event in found.event
    assert found.rule == rule
    assert (found.place is None) is (".default." in rule)
    assert "plane " in found.part
    assert " port " in found.part


def test_a_rule_that_a_name_could_bring_forward_is_shown_by_an_address() -> None:
    meant = policy(
        {
            "api": "allow connect to anything except ${CLOSED}",
            "wide": "allow connect to 10.0.0.0/8",
        }
    )
    artifact = _json(meant)
    ids = [rule["id"] for rule in artifact["rules"]]
    for entry in artifact["tables"]["entries"]:
        if entry.get("allow") == [ids.index("api"), ids.index("wide")]:
            entry["allow"] = [ids.index("api")]  # decides as before, until an exception is bound
    found = _proof(meant, artifact)
    assert isinstance(found, Counterexample)
    assert found.event.endswith("where ${CLOSED} is bound to it")
    assert found.event.startswith("connect tcp 10.0.0.0:")
    assert (found.policy, found.rule) == ("let through by wide", "wide")


def test_bindings_alone_catch_most_mutations_of_symbols(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prove, "_symbols", lambda *_given: None)  # the comparison of the lists
    caught: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for meant in (POLICY, LISTENS):
        for kind, mutant in table_mutants(_json(meant)):
            if kind.startswith("symbol"):
                found = _proof(meant, mutant)
                (caught if isinstance(found, Counterexample) else missed)[kind] += 1
    with capsys.disabled():
        print(f"\nsymbols bound: {caught.total()} mutations caught, {missed.total()} not seen so")
    assert caught["symbol dropped"] == 7
    assert missed.total() < caught.total() / 4


@pytest.mark.parametrize("meant", [POLICY, LISTENS])
def test_every_mutation_of_a_symbol_is_caught(meant: Policy) -> None:
    kinds: Counter[str] = Counter()
    for kind, mutant in table_mutants(_json(meant)):
        if kind.startswith("symbol"):
            kinds[kind] += 1
            assert isinstance(_proof(meant, mutant), Counterexample), kind
    assert kinds["symbol changed"] >= 5


def test_random_policies_agree_with_their_symbols_bound() -> None:
    bound = 0
    for seed in range(120):
        meant = random_policy(random.Random(seed))
        found = _proof(meant, _json(meant))
        assert isinstance(found, Proof), f"seed {seed}:\n{found}"
        bound += found.bound
    assert bound > 1000


def test_variables_agree_wherever_they_stand() -> None:
    for seed in range(120):
        rng = random.Random(seed)
        meant = random_policy(rng, hosts=("${A}", "${B}", "10.0.0.9", "10.0.0.0/24", "private"))
        found = _proof(meant, _json(meant))
        assert isinstance(found, Proof), f"seed {seed}:\n{found}"


def test_an_excepted_port_of_a_listen_is_no_difference_beside_a_variable() -> None:
    meant = policy(  # a random policy was the first to show this one
        {
            "a": "never listen on ${B}:80, anything, anything else:65535 except anything:{80,443}",
            "z": "never connect to 0.0.0.0/0:8080",
        }
    )
    assert isinstance(_proof(meant, _json(meant)), Proof)


# --- names bound at compile time


@pytest.mark.parametrize("target", ["linux-x86_64", "windows"])
def test_an_artifact_with_bound_names_is_proved_with_those(target: str) -> None:
    artifact = with_cache(compile_policy(POLICY, target, hosts=HOSTS))
    found = verify(POLICY, codec.dumps(artifact), thorough=True)
    assert isinstance(found, Proof), str(found)
    assert found.bound  # the variables are left to a run
    assert list(misstated(POLICY, artifact)) == []


@pytest.mark.parametrize(
    "hosts",
    [
        {},
        {"api.example.com": ["10.0.0.9"]},
        {"api.example.com": ["10.0.0.9", "2001:db8::1", "203.0.113.66"]},
        {"api.example.com": ["10.0.0.8", "2001:db8::1"]},
    ],
)
def test_bound_addresses_that_are_others_are_a_difference(hosts: dict[str, list[str]]) -> None:
    artifact = _json(hosts=HOSTS)
    artifact["hosts"] = hosts
    found = _proof(POLICY, artifact)
    assert isinstance(found, Counterexample)
    assert "connect tcp" in found.event


def test_a_host_that_the_policy_does_not_name_is_told() -> None:
    artifact = with_cache(compile_policy(POLICY, "linux-x86_64", hosts=HOSTS))
    more = replace(artifact, hosts={**artifact.hosts, "x.example": ("192.0.2.7",)})
    assert list(misstated(POLICY, more)) == [
        "hosts: `x.example` is bound, and the policy does not name it"
    ]


def test_a_name_bound_to_loopback_is_told() -> None:
    artifact = compile_policy(POLICY, "linux-x86_64", hosts=HOSTS)
    lying = replace(artifact, hosts={"api.example.com": ("127.0.0.1",)})
    assert any("loopback" in line for line in misstated(POLICY, lying))


# --- how far it goes


def test_a_compile_compares_few_attempts_and_a_verify_many() -> None:
    artifact = canonical(_json())
    few, many = (verify(POLICY, artifact, thorough=thorough) for thorough in (False, True))
    assert isinstance(few, Proof)
    assert isinstance(many, Proof)
    assert 0 < few.bound < many.bound


def test_the_first_difference_ends_the_comparison() -> None:
    artifact = _json()
    tables = prove.tables_of(POLICY, artifact)
    assert not isinstance(tables, Counterexample)
    read: Read = tables[0]
    symbols = [{**one, "value": "nobody.example"} for one in artifact["symbols"]]
    done, found = compare_samples(POLICY, read, symbols, artifact["rules"], thorough=True)
    assert found is not None
    assert done < 20
