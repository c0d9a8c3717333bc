"""The words of claims: behaviour is never worded as containment, and nothing not shown as shown."""

from __future__ import annotations

import pytest
from handmade_runs import rule

from flowproof.audit.claims import claim_words
from flowproof.audit.coverage import coverage
from flowproof.record.codes import Code
from flowproof.record.model import Hits, Through, Verdict

CONTAINMENT_WORDS = ("cannot", "contained", "refuse")


def test_a_behaviour_claim_is_never_worded_as_containment() -> None:
    for verdict in (Verdict.PASS, Verdict.FAIL):
        words = claim_words(rule("r", "expect no", verdict=verdict, hits=Hits(counted=2)))
        assert not any(word in words for word in CONTAINMENT_WORDS)


def test_containment_says_that_it_cannot_and_nothing_of_what_it_did() -> None:
    words = claim_words(rule("r", "deny", verdict=Verdict.PASS, hits=Hits(refused=3)))
    assert words == "it cannot"


def test_never_claims_both() -> None:
    assert claim_words(rule("r", "never", verdict=Verdict.PASS)) == "it cannot, and it did not try"


def test_loopback_listeners_of_others_are_an_exception_in_the_claim() -> None:
    through = (Through("tcp", "127.0.0.1", 3128, 4), Through("udp", "::1", 53, 1))
    words = claim_words(rule("r", "never", verdict=Verdict.PASS), through)
    assert words.endswith("except through these: tcp 127.0.0.1:3128, udp [::1]:53")


@pytest.mark.parametrize("verb", ["deny", "never", "expect no"])
def test_a_capability_error_is_never_worded_as_a_pass(verb: str) -> None:
    row = rule(
        "r", verb, verdict=Verdict.CAPABILITY_ERROR, code=Code.CANARY, explanation="no canary"
    )
    words = claim_words(row)
    assert words == "not shown: no canary"
    assert "it cannot" not in words
    assert "it did not" not in words


def test_an_allow_claims_nothing() -> None:
    assert claim_words(rule("r", "allow")) == "nothing is claimed"
    assert claim_words(rule("r", "observe")) == "reported, nothing is claimed"


def test_a_rule_that_met_nothing_is_named() -> None:
    found = coverage(
        [
            rule("a", "allow", hits=Hits(let_through=1)),
            rule("b", "never"),
            rule("c", "deny", kind="implied"),
        ]
    )
    assert (found.rules, found.met, found.unmet) == (2, 1, ("b",))
