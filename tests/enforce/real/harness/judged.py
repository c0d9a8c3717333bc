"""The policy that real programs run under, and what their runs are judged by: arrivals and record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from errands import PORTS, Errand
from stage import Ran

__all__ = [
    "ENV",
    "attempts",
    "let_through",
    "programs",
    "reached",
    "refusing",
    "rules",
    "url_host",
    "words",
]

ENV = {
    "PIP_CONFIG_FILE": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "NPM_CONFIG_GLOBALCONFIG": "/dev/null",
}
"""What the machine's own settings would lead elsewhere."""


def rules(port: int) -> dict[str, str]:
    """Return the rules: one server at *port*, and two that refuse, so that a wrong one shows."""
    return {
        "real.server": f"allow connect tcp to 10.99.0.1:{port}, [fd00:99::1]:{port}",
        "real.other-host": "never connect to 10.99.0.2, fd00:99::2",
        "real.rest": "never connect to anything else",
    }


def url_host(host: str) -> str:
    """Return *host* as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def words(errand: Errand, kit: Mapping[str, Path], host: str, more: int = 0) -> list[str]:
    """Return the command line of an errand to *host*, *more* ports above that of its server."""
    return errand.words(kit, url_host(host), PORTS[errand.server] + more)


def reached(ran: Ran) -> set[str]:
    """Return where anything arrived; the resolver on loopback is nobody's destination."""
    return {arrival.to for arrival in ran.arrivals if arrival.protocol != "dns"}


def refusing(ran: Ran) -> set[tuple[str, ...]]:
    """Return, of what was refused, each rule that refused with those that counted it."""
    return {
        (event["by"]["rule"], *(rule["rule"] for rule in event["asserting"]))
        for event in attempts(ran)
    }


def let_through(ran: Ran, rule: str) -> int:
    """Return how often *rule* let something through, by the record."""
    hits = ran.record.rule(rule)["hits"]
    assert isinstance(hits, dict)
    return int(hits["let_through"])


def programs(ran: Ran) -> set[str]:
    """Return the names of the binaries that were refused something."""
    return {os.path.basename(event["program"]) for event in attempts(ran)}


def attempts(ran: Ran) -> list[dict[str, Any]]:
    """Return what was refused; a probe is none (a resolver connects UDP to sort what it found)."""
    found: list[dict[str, Any]] = ran.record.refused
    return [event for event in found if event["operation"] != "probe"]
