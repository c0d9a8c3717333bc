"""A minute of the soak: mixed load under a run, and what both ends counted. `bench` runs it for longer."""

from __future__ import annotations

import os

import pytest
from missing import missing

from bench.soak import command
from bench.soak.judge import judge
from bench.soak.world import World

pytestmark = [pytest.mark.enforce, pytest.mark.root]


@pytest.mark.timeout(240)
def test_minute_of_mixed_load_loses_doubles_and_leaks_nothing() -> None:
    lacking = command.missing()
    if lacking is not None:
        missing(lacking)
    world = World()
    try:
        facts = command.soak(world, int(os.environ.get("SOAK_SECONDS", "60")))
    finally:
        world.close()
    assert [check for check in judge(facts) if not check.held] == []
