"""What a package does when it is installed: it runs under the policy like everything else in the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from errands import PORTS, WEB
from evidence import FAIL
from judged import ENV, programs, reached, refusing, rules
from missing import installed
from stage import Stage
from web_content import CALLING

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

INSTALL = [
    *("npm", "install", "--fetch-retries=0", "--foreground-scripts"),
    *("--registry=http://10.99.0.1:8080/registry/", CALLING),
]


@pytest.fixture
def npm(web: dict[str, Path]) -> list[str]:
    """The command line that installs a package whose install script calls another host."""
    installed("npm")
    return INSTALL


def test_install_script_calls_another_host_bare(npm: list[str], plain_stage: Stage) -> None:
    ran = plain_stage.bare(npm, env=ENV)
    assert reached(ran) == {"10.99.0.1:8080", "10.99.0.2:8080"}, ran


def test_install_script_that_calls_another_host_is_refused_and_named(
    npm: list[str], plain_stage: Stage
) -> None:
    ran = plain_stage.contained(
        plain_stage.flow(rules(PORTS[WEB]), npm, agent={"env": ENV}),
    )
    assert (plain_stage.folder / "node_modules" / CALLING / "index.js").is_file(), ran
    assert reached(ran) == {"10.99.0.1:8080"}, ran
    assert "ECONNREFUSED" in ran.stderr, ran
    assert refusing(ran) == {("real.other-host", "real.other-host", "real.rest")}, (
        ran.record.refused
    )
    assert programs(ran) == {"node"}, ran.record.refused
    assert len(ran.record.denied("10.99.0.2:8080")) == 1, ran.record.refused
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
