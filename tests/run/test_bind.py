"""Names, variables and folders bound for one run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from authored import policy
from supervision import ALLOW, DENY, NEVER, RULES, artifact, value

from flowproof.artifact.model import PLANES, Entry, Plane, PortTable, Symbol, Tables, UnixRow
from flowproof.lower.backend import compile_policy
from flowproof.record.codes import Code
from flowproof.run.bind import Bound, Reason, bind
from flowproof.values import replace

EXPECT = 4
LISTEN_ALLOW, LISTEN_DENY = 5, 6
ALL_RULES = (
    *RULES,
    replace(RULES[0], id="e.expect", verb="expect no", claim="behaviour"),
    replace(RULES[0], id="f.listen", action="listen"),
    replace(RULES[1], id="g.listen", action="listen"),
)


def open_tables(entry: Entry = Entry(otherwise=(NEVER,), watch_otherwise=(NEVER,))) -> Tables:  # noqa: B008
    """Everything is one cell: refused by the catch-all, unless *entry* says otherwise."""
    planes = dict.fromkeys(PLANES, Plane((0,), (0,)))
    return Tables((entry,), (PortTable((0,), (0,)),), planes, {"unix": 0}, ())


def name(
    rule: int, text: str, role: str = "target", ports: tuple[tuple[int, int], ...] = ()
) -> Symbol:
    return Symbol(rule, role, "name", text, ("tcp", "udp"), ports)


def variable(rule: int, role: str = "target", ports: tuple[tuple[int, int], ...] = ()) -> Symbol:
    return Symbol(rule, role, "variable", "HOST", ("tcp", "udp"), ports)


def bound(
    *symbols: Symbol,
    environ: Mapping[str, str] | None = None,
    answers: Mapping[str, tuple[str, ...]] | None = None,
    tables: Tables | None = None,
    hosts: Mapping[str, tuple[str, ...]] | None = None,
) -> Bound | list[Reason]:
    made = artifact(tables or open_tables(), symbols, ALL_RULES, hosts)
    known = answers or {}
    return bind(made, environ or {}, lambda asked: known.get(asked, ()), cwd="/")


def decided(
    found: Bound | list[Reason], plane: str, address: str, port: int = 443
) -> tuple[bool, int | None]:
    assert isinstance(found, Bound), found
    decision = found.decisions.address(plane, value(address), port)
    return decision.refused, decision.by


def codes(found: Bound | list[Reason]) -> list[Code]:
    assert isinstance(found, list)
    return [code for code, _detail in found]


def test_an_allowed_name_stands_for_its_addresses_alone() -> None:
    answers = {"api.example": ("203.0.113.7", "2001:db8::7")}
    found = bound(name(ALLOW, "api.example"), answers=answers)
    assert decided(found, "tcp4", "203.0.113.7") == (False, ALLOW)
    assert decided(found, "tcp4", "203.0.113.6") == (True, NEVER)
    assert decided(found, "tcp4", "203.0.113.8") == (True, NEVER)
    assert decided(found, "udp6", "2001:db8::7") == (False, ALLOW)
    assert isinstance(found, Bound)
    assert found.names["203.0.113.7"] == "api.example"
    assert found.bindings == {"api.example": ("203.0.113.7", "2001:db8::7")}
    assert found.tables.planes["listen4"] == Plane((0,), (0,))


def test_ports_and_protocols_of_a_name_hold() -> None:
    symbol = Symbol(ALLOW, "target", "name", "api.example", ("tcp",), ((80, 80), (443, 445)))
    found = bound(symbol, answers={"api.example": ("203.0.113.7",)})
    let_through = [
        p
        for p in (79, 80, 81, 442, 443, 445, 446, 65535)
        if not decided(found, "tcp4", "203.0.113.7", p)[0]
    ]
    assert let_through == [80, 443, 445]
    assert decided(found, "udp4", "203.0.113.7", 443) == (True, NEVER)


def test_hosts_of_the_artifact_come_before_the_resolver() -> None:
    found = bound(
        name(ALLOW, "api.example"),
        answers={"api.example": ("203.0.113.9",)},
        hosts={"api.example": ("203.0.113.7",)},
    )
    assert decided(found, "tcp4", "203.0.113.7") == (False, ALLOW)
    assert decided(found, "tcp4", "203.0.113.9") == (True, NEVER)


@pytest.mark.parametrize(
    "addresses",
    [(), ("127.0.0.1",), ("203.0.113.7", "169.254.169.254"), ("fe80::1%eth0",), ("224.0.0.1",),
     ("::ffff:127.0.0.1",), ("0.0.0.0",), ("::",), ("no address",)],
)  # fmt: skip
def test_a_name_that_binds_to_nothing_or_to_special_space_stops_the_run(
    addresses: tuple[str, ...],
) -> None:
    found = bound(name(ALLOW, "api.example"), answers={"api.example": addresses})
    assert codes(found) == [Code.NAME_UNBOUND]
    assert isinstance(found, list)
    assert "`api.example`" in found[0][1]


def test_an_excepted_name_is_taken_out_of_its_refusal() -> None:
    tables = open_tables(Entry(refuse=(DENY,), watch=(NEVER,)))
    symbol = name(DENY, "ok.example", "except")
    found = bound(symbol, answers={"ok.example": ("203.0.113.7",)}, tables=tables)
    assert decided(found, "tcp4", "203.0.113.7") == (False, None)
    assert decided(found, "tcp4", "203.0.113.8") == (True, DENY)


def test_an_exception_beats_a_target_of_the_same_rule_in_any_order() -> None:
    answers = {"a.example": ("203.0.113.7", "203.0.113.8"), "b.example": ("203.0.113.8",)}
    target, exception = name(ALLOW, "a.example"), name(ALLOW, "b.example", "except")
    for symbols in ((target, exception), (exception, target)):
        made = artifact(open_tables(), symbols, ALL_RULES)
        found = bind(made, {}, lambda asked: answers[asked], cwd="/")
        assert decided(found, "tcp4", "203.0.113.7") == (False, ALLOW)
        assert decided(found, "tcp4", "203.0.113.8") == (True, NEVER)


def test_a_refusing_variable_goes_to_its_place_by_verb_and_id() -> None:
    tables = open_tables(Entry(refuse=(DENY,)))
    found = bound(variable(NEVER), environ={"HOST": "203.0.113.7"}, tables=tables)
    assert isinstance(found, Bound)
    decision = found.decisions.address("tcp4", value("203.0.113.7"), 1)
    assert (decision.by, decision.asserting) == (NEVER, (NEVER,))
    assert decided(found, "tcp4", "203.0.113.8") == (True, DENY)


def test_expect_no_counts_and_refuses_nothing() -> None:
    found = bound(variable(EXPECT), environ={"HOST": "203.0.113.0/24"}, tables=open_tables(Entry()))
    assert isinstance(found, Bound)
    decision = found.decisions.address("udp4", value("203.0.113.200"), 1)
    assert (decision.refused, decision.asserting) == (False, (EXPECT,))


VALUES: list[tuple[str, str, str, bool]] = [
    ("203.0.113.7", "tcp4", "203.0.113.7", True),
    ("[2001:db8::7]", "tcp6", "2001:db8::7", True),
    ("::ffff:203.0.113.7", "tcp4", "203.0.113.7", True),
    ("203.0.113.0/24", "tcp4", "203.0.113.255", True),
    ("203.0.113.0/24", "tcp4", "203.0.114.0", False),
    ("::ffff:203.0.113.0/120", "tcp4", "203.0.113.255", True),
    ("0.0.0.0", "tcp4", "127.0.0.1", True),
    ("0.0.0.0", "tcp4", "127.0.0.2", False),
    ("::", "tcp6", "::1", True),
    ("127.0.0.0/8", "tcp4", "127.9.9.9", True),
    ("127.0.0.1", "tcp4", "127.0.0.1", True),
    ("0.0.0.0/0", "tcp4", "127.0.0.1", False),
    ("0.0.0.0/0", "tcp4", "128.0.0.0", True),
    ("0.0.0.0/0", "tcp4", "126.255.255.255", True),
    ("::/0", "tcp6", "::1", False),
    ("::/0", "tcp6", "::2", True),
    ("169.254.0.0/16", "tcp4", "169.254.169.254", False),
    ("169.254.0.0/16", "tcp4", "169.254.169.253", True),
    ("169.254.169.254", "tcp4", "169.254.169.254", True),
    ("localhost", "tcp4", "127.3.3.3", True),
    ("localhost", "tcp6", "::1", True),
    ("API.example.", "tcp4", "198.51.100.9", True),
]


@pytest.mark.parametrize(("text", "plane", "address", "covered"), VALUES)
def test_an_allowing_variable_covers_what_the_language_says(
    text: str, plane: str, address: str, covered: bool
) -> None:
    found = bound(
        variable(ALLOW), environ={"HOST": text}, answers={"api.example": ("198.51.100.9",)}
    )
    assert decided(found, plane, address) == ((False, ALLOW) if covered else (True, NEVER))


def test_a_refusing_cidr_covers_metadata_and_never_loopback() -> None:
    found = bound(variable(DENY), environ={"HOST": "0.0.0.0/0"}, tables=open_tables(Entry()))
    assert decided(found, "tcp4", "169.254.169.254") == (True, DENY)
    assert decided(found, "tcp4", "127.0.0.1") == (False, None)


@pytest.mark.parametrize(
    "text",
    ["10.0.0.256", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/08", "010.0.0.1", "a b", "*.example.com",
     "10.0.0.1:80", "a,b", "private", "fe80::1%eth0", "::ffff:0:0/95", "-x.example", "/", "10.0.0.0/"],
)  # fmt: skip
def test_what_is_not_exactly_one_host_stops_the_run_without_its_value(text: str) -> None:
    found = bound(variable(ALLOW), environ={"HOST": text}, answers={text: ("203.0.113.7",)})
    assert codes(found) == [Code.VARIABLE_INVALID]
    assert isinstance(found, list)
    assert "${HOST}" in found[0][1]
    assert (
        text not in found[0][1].replace("${HOST}", "").replace(", address or CIDR", "")
        or len(text) == 1
    )


@pytest.mark.parametrize(
    ("environ", "code"), [({}, Code.VARIABLE_UNSET), ({"HOST": ""}, Code.VARIABLE_UNSET)]
)
def test_an_unset_or_empty_variable_stops_the_run(environ: dict[str, str], code: Code) -> None:
    assert codes(bound(variable(ALLOW), environ=environ)) == [code]


@pytest.mark.parametrize(
    ("symbol", "fine"),
    [(variable(ALLOW), True), (variable(DENY), False), (variable(NEVER), False), (variable(EXPECT), False),
     (variable(DENY, "except"), True), (variable(ALLOW, "except"), False)],
)  # fmt: skip
def test_a_variable_may_be_a_name_where_a_name_is_exact(symbol: Symbol, fine: bool) -> None:
    found = bound(
        symbol, environ={"HOST": "api.example"}, answers={"api.example": ("203.0.113.7",)}
    )
    if fine:
        assert isinstance(found, Bound)
        assert found.names == {"203.0.113.7": "${HOST}"}
    else:
        assert codes(found) == [Code.VARIABLE_INVALID]


def test_a_variable_name_that_is_unbound_is_told_without_its_value() -> None:
    found = bound(variable(ALLOW), environ={"HOST": "secret.example"})
    assert codes(found) == [Code.NAME_UNBOUND]
    assert "secret" not in repr(found)


def test_every_reason_comes_at_once() -> None:
    found = bound(
        name(ALLOW, "gone.example"),
        variable(ALLOW),
        Symbol(ALLOW, "target", "wildcard", "*.x", (), ()),
    )
    assert set(codes(found)) == {Code.NAME_UNBOUND, Code.VARIABLE_UNSET, Code.NOT_CARRIED}


def test_names_are_resolved_in_parallel_with_a_deadline() -> None:
    def slow(asked: str) -> tuple[str, ...]:
        time.sleep(5.0 if asked == "never.example" else 0.1)
        return ("203.0.113.7",)

    symbols = tuple(name(ALLOW, f"n{at}.example") for at in range(8))
    begun = time.monotonic()
    assert isinstance(bind(artifact(open_tables(), symbols, ALL_RULES), {}, slow, cwd="/"), Bound)
    assert time.monotonic() - begun < 0.7
    late = bind(
        artifact(open_tables(), (name(ALLOW, "never.example"),), ALL_RULES),
        {},
        slow,
        cwd="/",
        deadline=0.1,
    )
    assert codes(late) == [Code.NAME_UNBOUND]


LISTENS: list[tuple[int, str, str, set[str]]] = [
    (LISTEN_ALLOW, "target", "10.0.0.1", {"listen4"}),
    (LISTEN_DENY, "target", "10.0.0.1", {"listen4", "listen-any4", "listen-any6"}),
    (LISTEN_DENY, "target", "2001:db8::1", {"listen6", "listen-any6"}),
    (LISTEN_ALLOW, "target", "0.0.0.0", {"listen4", "listen-any4"}),
    (LISTEN_DENY, "target", "0.0.0.0", {"listen4", "listen-any4", "listen-any6"}),
    (LISTEN_ALLOW, "target", "::", {"listen4", "listen6", "listen-any4", "listen-any6"}),
    (LISTEN_DENY, "except", "10.0.0.1", {"listen4"}),
    (LISTEN_ALLOW, "except", "10.0.0.1", {"listen4", "listen-any4", "listen-any6"}),
]


@pytest.mark.parametrize(("rule", "role", "text", "planes"), LISTENS)
def test_a_listen_is_cut_where_it_touches_or_covers(
    rule: int, role: str, text: str, planes: set[str]
) -> None:
    found = bound(variable(rule, role), environ={"HOST": text}, tables=open_tables(Entry()))
    assert isinstance(found, Bound)
    whole = open_tables(Entry())
    changed = {
        plane
        for plane in PLANES
        if any(
            found.tables.entries[entry] != whole.entries[0]
            for cell in found.tables.planes[plane].cells
            for entry in found.tables.ports[cell].entries
        )
    }
    assert changed == planes


def test_unix_paths_get_their_folders_and_lose_their_links(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    environ = {"HOME": str(tmp_path / "link"), "RUN": str(real), "TMPDIR": str(tmp_path)}
    rows = tuple(
        UnixRow(path, 0, 0)
        for path in ("~/a", "${cwd}/b", "${tmp}/link/c", "${RUN}/d", "/run/../e", "@name", "f")
    )
    made = artifact(replace(open_tables(), unix=rows), (), ALL_RULES)
    found = bind(made, environ, cwd=str(tmp_path / "link"))
    assert isinstance(found, Bound)
    expected = [
        f"{real}/a",
        f"{real}/b",
        f"{real}/c",
        f"{real}/d",
        os.path.realpath("/e"),
        "@name",
        f"{real}/f",
    ]
    assert [row.path for row in found.tables.unix] == expected


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({}, Code.VARIABLE_UNSET),
        ({"RUN": "relative"}, Code.VARIABLE_INVALID),
        ({"RUN": "/a/../b"}, Code.VARIABLE_INVALID),
    ],
)
def test_a_folder_that_is_no_folder_stops_the_run(environ: dict[str, str], code: Code) -> None:
    rows = (UnixRow("${RUN}/x", 0, 0),)
    found = bind(artifact(replace(open_tables(), unix=rows), (), ALL_RULES), environ, cwd="/")
    assert codes(found) == [code]


def test_binding_many_names_leaves_the_rest_as_it_was() -> None:
    symbols = tuple(name(ALLOW, f"n{at}.example") for at in range(200))
    answers = {f"n{at}.example": (f"203.0.{at}.7",) for at in range(200)}
    made = artifact(open_tables(), symbols, ALL_RULES)
    found = bind(made, {}, lambda asked: answers[asked], cwd="/")
    assert isinstance(found, Bound)
    assert len(found.tables.planes["tcp4"].starts) == 401
    assert len(found.tables.entries) == 2


def test_a_listen_that_a_refusal_excepts_is_not_refused_by_the_fixed_meaning() -> None:
    meant = policy(
        {
            "no": "deny listen on anything:1-1023 except ${OURS}:80",
            "out": "deny connect to 192.0.2.1",
        }
    )
    made = compile_policy(meant, "linux-x86_64")
    found = bind(made, {"OURS": "198.51.100.7"}, lambda _asked: (), cwd="/")
    assert isinstance(found, Bound)

    def refused(address: str, port: int) -> str | None:
        decision = found.decisions.address("listen4", value(address), port)
        return made.rules[decision.by].id if decision.refused and decision.by is not None else None

    assert refused("198.51.100.7", 80) is None
    assert refused("198.51.100.7", 81) == "no"
    assert refused("198.51.100.8", 80) == "no"
    assert refused("198.51.100.7", 8080) == "p.implied.listen"
