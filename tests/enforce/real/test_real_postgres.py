"""psql over a unix socket that a server outside of the run listens on: a rule has to name the path."""

from __future__ import annotations

from pathlib import Path

import pytest
from errands import PORTS, SQL
from evidence import FAIL, PASS
from judged import programs, reached, refusing
from missing import installed
from stage import Stage

pytestmark = [pytest.mark.namespace, pytest.mark.enforce]


@pytest.fixture
def socket(sql: dict[str, Path]) -> Path:
    """The socket's path, by libpq's rule for its name."""
    installed("psql")
    return sql["socket"]


def query(socket: Path) -> list[str]:
    port = socket.name.rpartition(".")[2]
    where = ["-h", str(socket.parent), "-p", port, "-U", "probe", "-d", "postgres"]
    return ["psql", *where, "-X", "-A", "-t", "-c", "select 7 * 6100 as answer"]


def test_query_over_the_socket_is_answered_bare(socket: Path, plain_stage: Stage) -> None:
    ran = plain_stage.bare(query(socket))
    assert ran.stdout == "42700\n", ran
    assert reached(ran) == {str(socket)}, ran


def test_query_over_an_allowed_socket_is_answered(socket: Path, plain_stage: Stage) -> None:
    sentences = {
        "real.server": f"allow connect to unix:{socket}",
        "real.rest": "never connect to anything else",
    }
    ran = plain_stage.contained(plain_stage.flow(sentences, query(socket)))
    assert "42700\n" in ran.stderr, ran
    assert reached(ran) == {str(socket)}, ran
    assert ran.record.refused == [], ran.record.refused
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


def test_server_knows_the_user_behind_the_socket(
    sql: dict[str, Path], socket: Path, plain_stage: Stage
) -> None:
    # without a door between them: whoever connects in the program's place has to be its user
    sentences = {
        "real.server": f"allow connect to unix:{sql['own-socket']}",
        "real.rest": "never connect to anything else",
    }
    ran = plain_stage.contained(plain_stage.flow(sentences, query(sql["own-socket"])))
    assert "42700\n" in ran.stderr, ran
    assert (ran.record.verdict, ran.code) == (PASS, 0), ran


@pytest.mark.parametrize(
    ("refusal", "by"),
    [
        ({}, ("real.rest", "real.rest")),
        ({"real.socket": "never connect to unix:{}"}, ("real.socket", "real.rest", "real.socket")),
    ],
    ids=["by what is left", "by its path"],
)
def test_query_over_another_socket_is_refused_and_named(
    socket: Path, plain_stage: Stage, refusal: dict[str, str], by: tuple[str, ...]
) -> None:
    sentences = {
        "real.server": f"allow connect tcp to 10.99.0.1:{PORTS[SQL]}",
        **{rule: sentence.format(socket) for rule, sentence in refusal.items()},
        "real.rest": "never connect to anything else",
    }
    ran = plain_stage.contained(plain_stage.flow(sentences, query(socket)))
    assert "42700" not in ran.stderr, ran
    assert reached(ran) == set(), ran
    assert refusing(ran) == {by}, ran.record.refused
    assert programs(ran) == {"psql"}, ran.record.refused
    assert {event["destination"] for event in ran.record.refused} == {str(socket)}, (
        ran.record.refused
    )
    assert (ran.record.verdict, ran.code) == (FAIL, 1), ran
