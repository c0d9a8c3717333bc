"""Fixtures of the enforcement tests, and the list of cases that ran."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from missing import missing
from namespace import PLAIN, ROOT, Namespace
from product import Product
from stage import PROGRAMS, Stage

CASES = pytest.StashKey[dict[str, set[str]]]()
LIMITS = pytest.StashKey[dict[str, set[str]]]()
"""Id of a case, of a stated limit → outcomes of the tests that carry it, in this session."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the comparisons with lists of ids behind everything that could carry one."""
    items.sort(key=lambda item: "test_named_" in item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note which ids were tried, and how that ended."""
    report = yield
    if call.when == "call" or not report.passed:
        for name, key in (("case", CASES), ("limit", LIMITS)):
            ran = item.config.stash.setdefault(key, {})
            for mark in item.iter_markers(name):
                for identity in mark.args:
                    ran.setdefault(identity, set()).add(report.outcome)
    return report


@pytest.fixture
def cases_ran(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    """Return the outcomes by case id, so far."""
    return request.config.stash.setdefault(CASES, {})


@pytest.fixture
def limits_ran(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    """Return the outcomes by the id of a limit, so far."""
    return request.config.stash.setdefault(LIMITS, {})


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """flowproof where root and nobody alike can run it."""
    root = Path(tempfile.mkdtemp(prefix="flowproof-product-"))
    yield Product(root)
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def namespace() -> Iterator[Namespace]:
    """A network namespace with the servers of the cases."""
    for tool in ("unshare", "nsenter", "setpriv", "env"):
        if not shutil.which(tool):
            missing(f"`{tool}` (util-linux, coreutils)")
    folder = Path(tempfile.mkdtemp(prefix="flowproof-outside-"))
    folder.chmod(0o755)
    try:
        space = Namespace(folder)
    except OSError as problem:
        missing(str(problem))
    yield space
    space.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def built() -> Iterator[dict[str, Path]]:
    """The C probe programs, compiled."""
    if not shutil.which("gcc"):
        missing("`gcc` (with libc6-dev)")
    folder = Path(tempfile.mkdtemp(prefix="flowproof-built-"))
    folder.chmod(0o755)
    found = {}
    for source in sorted(PROGRAMS.glob("*.c")):
        target = folder / source.stem
        flags = ["-O2", "-Wall", "-Werror", "-pthread"]
        if source.stem == "foreign":
            flags += ["-mno-red-zone"]
        made = subprocess.run(
            ["gcc", *flags, "-o", str(target), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode == 0:
            found[source.stem] = target
        elif source.stem != "foreign":  # x86_64 only: its tests say so themselves
            pytest.fail(made.stderr)
    yield found
    shutil.rmtree(folder)


def _stage(namespace: Namespace, product: Product, identity: str) -> Iterator[Stage]:
    stage = Stage(namespace, product, identity)
    yield stage
    stage.close()


@pytest.fixture(params=[ROOT, PLAIN])
def stage(
    request: pytest.FixtureRequest, namespace: Namespace, product: Product
) -> Iterator[Stage]:
    """A stage for each identity."""
    yield from _stage(namespace, product, request.param)


@pytest.fixture
def plain_stage(namespace: Namespace, product: Product) -> Iterator[Stage]:
    """A stage without capabilities."""
    yield from _stage(namespace, product, PLAIN)


@pytest.fixture
def root_stage(namespace: Namespace, product: Product) -> Iterator[Stage]:
    """A stage with every capability of its (user) namespace."""
    yield from _stage(namespace, product, ROOT)
