"""Each public report on the list has a test of its kind, and no test cites one that is not on it."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
CITED = re.compile(r"^def test_(suns|fg|fbbc|cea|asn)_(\d\d)_", re.MULTILINE)

OF_RUNS = {
    "SUNS": "01 03 05 07 09 12 14",
    "FG": "01 02 04 06 08",
    "CEA": "03 04 06 08 11",
    "ASN": "01 02 05 06 07 10 11 13 14",
}
"""Supervisors by user notification, false green, egress agents of CI, sandboxes for agents: what needs a run."""

OF_COMPILES = {
    "FBBC": "01 02 03 05 06 08 10 12 14 15",
    "CEA": "01 08 09",
    "ASN": "04 05 07 14",
}
"""Filter bypass and code generation; and of the last two groups above, what a compile answers: four of them have a
side of each.
"""


def _cited(where: Path) -> list[str]:
    """Return what is cited, each as often as it is."""
    text = where.read_text(encoding="utf-8")
    return sorted(f"{group.upper()}-{number}" for group, number in CITED.findall(text))


def _named(groups: dict[str, str]) -> list[str]:
    return sorted(f"{group}-{n}" for group, numbers in groups.items() for n in numbers.split())


def test_each_report_of_a_run_is_tried_in_a_run() -> None:
    cited = _cited(TESTS / "enforce" / "test_reported_runs.py")
    assert sorted(set(cited)) == _named(OF_RUNS)


def test_each_report_of_a_compile_is_tried_once_in_a_compile() -> None:
    assert _cited(TESTS / "reports" / "test_compiled_reports.py") == _named(OF_COMPILES)
