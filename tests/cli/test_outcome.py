"""The final report of a run: attempts put together, and what to write if one was wanted."""

from __future__ import annotations

import pytest
from handmade_runs import Line, event, rule

from flowproof.cli.outcome import attempts_of, wanted
from flowproof.record.model import Place

REST = rule("bot.rest")
DEFAULT = rule(
    "bot.default.connect", "deny", kind="default", sentence="deny connect to anything else"
)
NAMED = rule("bot.db", "deny", sentence="deny connect to 192.0.2.0/24")
PACKED = rule("bot/meta", sentence="never connect to metadata", place=Place("p.yaml", 3, 1, "base"))
NARROWED = rule("bot.net", "deny", sentence="deny connect to 192.0.2.0/24 except 192.0.2.9")
REASONED = rule("bot.old", "deny", sentence='deny connect to 192.0.2.0/24 because "or else"')
RULES = {row.id: row for row in (REST, DEFAULT, NAMED, NARROWED, REASONED, PACKED)}


def line(by: str, **changes: object) -> Line:
    return event(RULES.values(), by, **changes)  # type: ignore[arg-type]  # fields of the line


def way_out(by: str, **changes: object) -> str | None:
    (attempt,) = attempts_of({"connect": (line(by, **changes),)})
    return wanted(attempt, RULES, "bot")


def test_like_attempts_are_put_together_and_counted() -> None:
    lines = (line("bot.rest"), line("bot.rest"), line("bot.rest", port=80))
    more: Line = {**line("bot.rest"), "kind": "more", "count": 30}
    attempts = attempts_of({"connect": (*lines, more)})
    assert [(attempt.target, attempt.times) for attempt in attempts] == [
        ("192.0.2.1:443", 32),
        ("192.0.2.1:80", 1),
    ]


def test_what_was_let_through_and_counted_by_none_is_no_attempt_to_show() -> None:
    seen: Line = {**line("bot.rest"), "kind": "seen", "count": 4}
    assert attempts_of({"connect": (seen,)}) == ()


def test_a_catch_alls_refusal_gets_the_line_to_add() -> None:
    expected = "add a rule: `bot.192-0-2-1-443: allow connect tcp to 192.0.2.1:443`"
    assert way_out("bot.rest") == expected
    assert way_out("bot.default.connect") == expected


def test_an_address_with_a_name_is_allowed_by_its_name() -> None:
    found = way_out("bot.rest", name="api.example.com")
    assert (
        found == "add a rule: `bot.api-example-com-443: allow connect tcp to api.example.com:443`"
    )


def test_a_v6_address_with_its_port_is_bracketed() -> None:
    found = way_out("bot.rest", destination="2001:db8::1", protocol="udp")
    assert found is not None
    assert found.endswith("allow connect udp to [2001:db8::1]:443`")


def test_a_listen_is_allowed_as_a_listen() -> None:
    found = way_out("bot.rest", operation="listen", destination="0.0.0.0", port=8080)
    assert found is not None
    assert found.endswith("allow listen on 0.0.0.0:8080`")


def test_a_unix_socket_is_allowed_by_its_path() -> None:
    found = way_out("bot.rest", protocol="unix", destination="/run/x.sock", port=None)
    assert found == "add a rule: `bot.unix-run-x-sock: allow connect to unix:/run/x.sock`"


def test_a_unix_socket_at_home_is_written_as_a_policy_writes_it() -> None:
    found = way_out("bot.rest", protocol="unix", destination="${home}/x.sock", port=None)
    assert found is not None
    assert found.endswith(": allow connect to unix:~/x.sock`")


def test_a_named_refusal_is_narrowed_where_it_stands() -> None:
    assert way_out("bot.db") == "`bot.db` names it: add `except 192.0.2.1:443` there"


def test_an_exception_that_is_there_is_extended() -> None:
    assert way_out("bot.net") == "`bot.net` names it: add `, 192.0.2.1:443` to its `except`"


def test_a_reason_that_says_else_makes_no_catch_all() -> None:
    assert way_out("bot.old") == "`bot.old` names it: add `except 192.0.2.1:443` there"


def test_a_packs_named_refusal_is_not_opened_by_the_flow() -> None:
    found = way_out("bot/meta")
    assert found is not None
    assert "pack `base`" in found
    assert "allow" not in found


def test_a_socket_family_has_no_way_in() -> None:
    assert way_out("bot.rest", operation="socket", destination="packet", port=None) is None
    assert way_out("bot.rest", operation="foreign", destination="connect", port=None) is None


@pytest.mark.parametrize("by", ["bot.rest", "bot.default.connect", "bot.db", "bot.net"])
@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "other", "destination": "family 2, 8 bytes", "port": None},
        {"protocol": "other", "destination": "no family", "port": None},
        {"protocol": "sctp", "destination": "192.0.2.1", "port": 443},
        {"operation": "listen", "destination": "0.0.0.0", "port": 0},
        {"operation": "listen", "destination": "::", "port": 0},
        {"protocol": "udp", "destination": "192.0.2.1", "port": 0},
        {"protocol": "unix", "destination": "/run/my { sock", "port": None},
    ],
)
def test_what_no_sentence_can_say_gets_no_hint(by: str, changes: dict[str, object]) -> None:
    assert way_out(by, **changes) is None
