"""Real programs, unmodified: where the policy lets them they live, and where it does not nothing arrives,
and the record says by which rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from errands import ERRANDS, HOSTS, PORTS, Errand
from evidence import FAIL, PASS
from judged import ENV, let_through, programs, reached, refusing, rules, url_host, words
from stage import Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]

ALLOWED, OTHERS = HOSTS[:2], HOSTS[2:]


def each_at(hosts: tuple[str, ...]) -> pytest.MarkDecorator:
    """Return the mark that runs a test for each errand at each of *hosts* that it can name."""
    pairs = [
        pytest.param(errand, host, id=f"{errand}-{host}")
        for errand in ERRANDS
        for host in hosts
        if errand.v6 or ":" not in host
    ]
    return pytest.mark.parametrize(("errand", "host"), pairs, indirect=["errand"])


@each_at(HOSTS)
def test_bare_program_brings_what_it_went_for(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage, host: str
) -> None:
    ran = plain_stage.bare(words(errand, kit, host), env=ENV)
    assert errand.brings(plain_stage, ran), ran
    assert ran.reached(host), ran


@pytest.mark.parametrize("errand", ERRANDS, ids=repr, indirect=True)
def test_bare_program_reaches_the_other_port(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage
) -> None:
    ran = plain_stage.bare(words(errand, kit, ALLOWED[0], 1), env=ENV)
    assert errand.brings(plain_stage, ran), ran
    assert f"10.99.0.1:{PORTS[errand.server] + 1}" in reached(ran), ran


@each_at(ALLOWED)
def test_allowed_program_lives(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage, host: str
) -> None:
    path = plain_stage.flow(
        rules(PORTS[errand.server]), words(errand, kit, host), agent={"env": ENV}
    )
    ran = plain_stage.contained(path)
    assert errand.brings(plain_stage, ran), ran
    assert reached(ran) == {f"{url_host(host)}:{PORTS[errand.server]}"}, ran
    assert ran.record.refused == [], ran.record.refused
    assert let_through(ran, "real.server") > 0, ran.record.rule("real.server")
    assert ran.record.lane("faults") == [], ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@each_at(OTHERS)
def test_program_reaches_no_other_host_and_the_record_names_the_rule(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage, host: str
) -> None:
    path = plain_stage.flow(
        rules(PORTS[errand.server]), words(errand, kit, host), agent={"env": ENV}
    )
    ran = plain_stage.contained(path)
    assert not errand.brings(plain_stage, ran), ran
    assert reached(ran) == set(), ran
    assert refusing(ran) == {("real.other-host", "real.other-host", "real.rest")}, (
        ran.record.refused
    )
    assert all(program.startswith(errand.seen) for program in programs(ran)), ran.record.refused
    assert ran.record.denied(f"{url_host(host)}:{PORTS[errand.server]}"), ran.record.refused
    assert ran.record.lane("faults") == [], ran
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran


@pytest.mark.parametrize("errand", ERRANDS, ids=repr, indirect=True)
def test_program_reaches_no_other_port_and_the_record_names_the_rule(
    errand: Errand, kit: dict[str, Path], plain_stage: Stage
) -> None:
    sentences = {**rules(PORTS[errand.server]), "real.rest": "deny connect to anything else"}
    path = plain_stage.flow(
        sentences, words(errand, kit, ALLOWED[0], 1), agent={"env": ENV, "expect_exit": "any"}
    )
    ran = plain_stage.contained(path)
    assert not errand.brings(plain_stage, ran), ran
    assert reached(ran) == set(), ran
    assert refusing(ran) == {("real.rest",)}, ran.record.refused
    assert all(program.startswith(errand.seen) for program in programs(ran)), ran.record.refused
    assert ran.record.denied(f"10.99.0.1:{PORTS[errand.server] + 1}"), ran.record.refused
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran
