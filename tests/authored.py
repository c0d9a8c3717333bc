"""Policies for tests, written as an author writes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import chdir

from flowproof.diagnostics import Report
from flowproof.ir.model import Policy
from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load

FILE = "p.policy.yaml"
FIRST_RULE = 3
"""The line of the first rule in it."""


def resolved(rules: Mapping[str, str]) -> tuple[Policy | None, Report]:
    """Return the policy of a pack `p` with *rules* (id → sentence), or None with its errors."""
    lines = ["policy: p", "rules:"]
    lines += [f"  {rule}: '{sentence}'" for rule, sentence in rules.items()]
    if not rules:
        lines[-1:] = []
    report = Report()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        with open(FILE, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        suite = load(FILE, report)
        found = resolve_suite(suite, report) if suite is not None else ()
    return (found[0].policy if found and not report.errors else None), report


def policy(rules: Mapping[str, str]) -> Policy:
    """Return the policy of a pack `p` with *rules*, which have no errors."""
    found, report = resolved(rules)
    assert found is not None, [str(error) for error in report.errors]
    return found


def load_policy(folder: str, name: str) -> Policy:
    """Return the policy of the file *name* in *folder*, named in messages as it is there."""
    report = Report()
    before = os.getcwd()
    os.chdir(folder)
    try:
        suite = load(name, report)
        assert suite is not None, list(report)
        (found,) = resolve_suite(suite, report)
    finally:
        os.chdir(before)
    assert not report.errors, list(report.errors)
    return found.policy
