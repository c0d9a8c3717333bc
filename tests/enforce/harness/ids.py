"""Ids that tests carry by a mark, and what of a list of ids was shown in a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["held", "unmet"]

Outcomes = Mapping[str, set[str]]
"""Id → outcomes of the tests that carry it."""


def held(ran: Outcomes) -> set[str]:
    """Return the ids all of whose tests passed: one skip or failure among them, and an id did not hold."""
    return {identity for identity, outcomes in ran.items() if outcomes == {"passed"}}


def unmet(ids: Iterable[str], ran: Outcomes) -> list[str]:
    """Return what is wrong between a list of ids and the tests that ran, in words."""
    known, kept = set(ids), held(ran)
    wrong = [f"{identity}: no test of it ran" for identity in sorted(known - set(ran))]
    wrong += [
        f"{identity}: {' and '.join(sorted(ran[identity]))}"
        for identity in sorted(known.intersection(ran) - kept)
    ]
    return wrong + [f"{identity}: is in no list" for identity in sorted(set(ran) - known)]
