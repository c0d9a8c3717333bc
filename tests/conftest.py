"""Goldens: `pytest` compares, `pytest --bless` writes, and CI never writes. And CI skips nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

# A shared machine decides how long an example takes; CI draws the same ones each time.
settings.register_profile("flowproof", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("flowproof")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write goldens instead of comparing")


_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def pytest_configure(config: pytest.Config) -> None:
    # Whoever starts the tests in the background, or by nohup, has them ignored: commands would inherit that.
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
            signal.signal(number, usual)
    if config.getoption("--bless") and os.environ.get("CI"):
        raise pytest.UsageError(
            "--bless is refused under CI: goldens are written and read by people"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under CI turn a skip into a failure: a check that did not run is no pass."""
    report = yield
    if report.skipped and os.environ.get("CI", "") not in ("", "0", "false"):
        report.outcome = "failed"
        report.longrepr = f"skipped under CI: {report.longrepr}"
    return report


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return compare(path, actual): equal to the golden file, or written with --bless."""

    def compare(path: Path, actual: str) -> None:
        if request.config.getoption("--bless"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8", newline="\n")
        elif not path.exists():
            pytest.fail(
                f"no golden at {path.relative_to(GOLDEN)}; run pytest --bless, read the diff"
            )
        assert path.read_text(encoding="utf-8") == actual

    return compare
