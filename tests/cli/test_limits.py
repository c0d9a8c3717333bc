"""`--timeout` and `--expect-exit`."""

from __future__ import annotations

import pytest

from flowproof.cli.arguments import Arguments, UsageError
from flowproof.cli.limits import exit_of, seconds_of


def given(**options: str) -> Arguments:
    named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return Arguments("run", ("x",), named)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("1h", 3600)])
def test_a_timeout_carries_its_unit(text: str, seconds: float) -> None:
    assert seconds_of(given(timeout=text)) == seconds


@pytest.mark.parametrize(
    "text", ["30", "s", "", "-1s", "0s", "1.5m", "1d", "٣s", "9" * 400 + "h", "9" * 5000 + "s"]
)
def test_anything_else_is_no_timeout(text: str) -> None:
    with pytest.raises(UsageError, match="no timeout"):
        seconds_of(given(timeout=text))


def test_an_expected_exit_is_a_code_or_any() -> None:
    expected = exit_of(given(expect_exit="3"))
    assert expected is not None
    assert expected.code == 3
    anything = exit_of(given(expect_exit="any"))
    assert anything is not None
    assert anything.code is None
    assert exit_of(given()) is None


@pytest.mark.parametrize("text", ["256", "-1", "Any", "", "0x1", "0" * 5000])
def test_anything_else_is_no_exit_code(text: str) -> None:
    with pytest.raises(UsageError, match="no exit code"):
        exit_of(given(expect_exit=text))
