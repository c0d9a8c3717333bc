from __future__ import annotations

import pytest

from flowproof.near import near_miss


@pytest.mark.parametrize(
    ("word", "candidates", "meant"),
    [
        ("alow", ("allow", "deny"), "allow"),
        ("loopbak", ("loopback",), "loopback"),
        ("exectue", ("execute",), "execute"),  # neighbours swapped: one edit
        ("esle", ("else",), "else"),
        ("cmr", ("crm",), "crm"),
        ("TCP", ("udp", "tcp"), "tcp"),
        ("allow-egress", ("allow_egress",), "allow_egress"),
        ("linklocal", ("link-local",), "link-local"),
        ("ab", ("abc", "abd"), "abc"),  # the first of the nearest
        ("abcde", ("abxye", "abcdx"), "abcdx"),  # the nearest, though it is not the first
    ],
)
def test_a_near_miss_is_within_two_edits_or_differs_in_case_or_a_hyphen(
    word: str, candidates: tuple[str, ...], meant: str
) -> None:
    assert near_miss(word, candidates) == meant


@pytest.mark.parametrize(
    ("word", "candidates"),
    [
        ("icmp", ("tcp",)),  # more than half of it would be wrong
        ("to", ("on",)),
        ("please", ("except", "because")),
        ("allow", ("allow",)),  # a word is no miss of itself
        ("", ("no",)),
        ("abc", ()),
        ("truncating", ("truncate",)),
    ],
)
def test_what_is_not_near_is_no_near_miss(word: str, candidates: tuple[str, ...]) -> None:
    assert near_miss(word, candidates) is None
