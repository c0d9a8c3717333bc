"""The digest of a policy is that of its canonical JSON, without what is no part of its meaning."""

from __future__ import annotations

import random
from typing import Any

import pytest
import rfc8785
from comparison import random_policy

from flowproof import canonical
from flowproof.ir.model import Destinations, Policy, Rule, Symbol
from flowproof.ir.places import Places
from flowproof.ir.serialize import digest, to_json
from flowproof.values import replace


def spelt_out(policy: Policy) -> str:
    document: Any = to_json(policy)
    del document["sources"]
    for rule in document["rules"]:
        del rule["origin"], rule["sentence"]
    return canonical.digest(rfc8785.dumps(document))


@pytest.mark.parametrize("seed", range(40))
def test_random_policies_have_the_digest_of_their_canonical_json(seed: int) -> None:
    policy = random_policy(random.Random(seed))
    assert digest(policy) == spelt_out(policy)


NOTHING = Destinations()
RULES = {
    "text": Rule(
        "a", "deny", "connect", Destinations(unix=('/run/\u00e9\U0001f600"\\',)), NOTHING, "authored", "x",
        reason='a "reason" with a \\ and a \x01 and \u2028 and \U0001f600',
    ),
    "names": Rule(
        "a", "allow", "connect", Destinations(symbols=(Symbol("name", "a.example", ("tcp",)),)),
        NOTHING, "authored", "x",
    ),
    "files": Rule(
        "a", "deny", "files", NOTHING, NOTHING, "authored", "x", operations=("delete", "write"),
        places=Places("under", ("/srv",)), excepted_places=Places("under", ("/srv/\u00e9",)),
    ),
    "tools": Rule("a", "deny", "call", NOTHING, NOTHING, "authored", "x", tools=("fetch*", "x")),
    "meaning": Rule("a", "deny", "connect", NOTHING, NOTHING, "implied", "x", meaning="unix"),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_every_part_of_a_rule_is_in_the_digest_as_in_the_json(name: str) -> None:
    policy = Policy('con"trol', "title \u00fc", "line\nline", (RULES[name],))
    assert digest(policy) == spelt_out(policy)


@pytest.mark.parametrize("name", RULES)
def test_wording_place_and_sources_are_no_part_of_it(name: str) -> None:
    policy = Policy("control", None, None, (RULES[name],))
    other = replace(
        policy, rules=(replace(RULES[name], sentence="other"),), sources=(("x", "0" * 64),)
    )
    assert digest(policy) == digest(other)
    assert digest(policy) != digest(replace(policy, title="other"))
