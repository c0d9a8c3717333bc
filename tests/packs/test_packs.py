"""Every shipped pack does what it says, tried for real; and none of its lines can go without being missed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from missing import missing
from pack_lines import label_of, owned
from product import CHECKOUT, Product
from tries import TRIES
from trying import World, shipped

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    for tool in ("unshare", "nsenter", "env"):
        if not shutil.which(tool):
            missing(f"`{tool}` (util-linux, coreutils)")
    root = Path(tempfile.mkdtemp(prefix="flowproof-product-"))
    try:
        made = World(Product(root))
    except OSError as problem:
        shutil.rmtree(root)
        missing(str(problem))
    yield made
    made.close()
    shutil.rmtree(root)


def test_every_shipped_pack_is_tried() -> None:
    found = {path.name.removesuffix(".policy.yaml") for path in (CHECKOUT / "policies").iterdir()}
    assert found == set(TRIES)


@pytest.mark.parametrize("name", TRIES)
def test_every_attempt_on_a_pack_would_succeed_without_it(name: str, world: World) -> None:
    assert set(world.bare(name)) == {"ok"}


@pytest.mark.parametrize("name", TRIES)
def test_a_pack_does_what_it_says(name: str, world: World) -> None:
    assert world.failures(name, shipped(name)) == {}


LINES = [
    (name, number) for name in TRIES for number in range(1, len(shipped(name).splitlines()) + 1)
]


@pytest.mark.parametrize(("name", "number"), LINES)
def test_a_pack_without_one_of_its_lines_fails_its_try_at_that_line(
    name: str, number: int, world: World
) -> None:
    text = shipped(name)
    lines = text.splitlines(keepends=True)
    removed = label_of(text, number)
    failures = world.failures(name, "".join(lines[: number - 1] + lines[number:]))
    assert removed in failures, failures
    together = {removed} | (owned(text, removed[1]) if removed[0] == "rule" else set())
    assert set(failures) <= together | {("rule", "rules")}, failures
