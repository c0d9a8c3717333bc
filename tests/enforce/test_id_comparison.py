"""The comparison of ids itself: what did not run, was skipped, failed or is unknown is never met."""

from __future__ import annotations

import pytest
from ids import held, unmet


def test_ids_whose_tests_all_passed_are_met() -> None:
    ran = {"C01": {"passed"}, "C02": {"passed"}}
    assert held(ran) == {"C01", "C02"}
    assert unmet(["C01", "C02"], ran) == []


def test_an_id_without_a_test_is_missing() -> None:
    assert unmet(["C01", "C02"], {"C01": {"passed"}}) == ["C02: no test of it ran"]


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
def test_one_skip_or_failure_is_enough(outcome: str) -> None:
    assert unmet(["C01"], {"C01": {"passed", outcome}}) == [f"C01: {outcome} and passed"] or (
        unmet(["C01"], {"C01": {"passed", outcome}}) == [f"C01: passed and {outcome}"]
    )
    assert unmet(["C01"], {"C01": {outcome}}) == [f"C01: {outcome}"]


def test_an_id_that_no_list_has_is_told() -> None:
    assert unmet(["C01"], {"C01": {"passed"}, "C99": {"passed"}}) == ["C99: is in no list"]
