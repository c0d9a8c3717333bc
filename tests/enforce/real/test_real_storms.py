"""A runtime that preempts its threads by signals, on many connections at once: each answer whole, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from errands import BULK_HASH
from evidence import PASS
from judged import rules
from missing import installed
from stage import Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

TIMES = 60


def test_go_fetches_on_many_connections_at_once(
    clients: dict[str, Path], web: dict[str, Path], plain_stage: Stage
) -> None:
    installed("go")
    command = [str(clients["go"]), "http://10.99.0.1:8080/bulk.bin", str(TIMES)]
    ran = plain_stage.contained(plain_stage.flow(rules(8080), command))
    assert ran.stderr.split().count(BULK_HASH) == TIMES, ran
    assert [(a.to, a.times) for a in ran.arrivals] == [("10.99.0.1:8080", TIMES)], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
