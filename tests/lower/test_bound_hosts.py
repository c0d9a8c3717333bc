"""Names bound at compile time: what is in the tables then, and what is refused."""

from __future__ import annotations

import pytest
from authored import policy

from flowproof.diagnostics import DiagnosticsError
from flowproof.lower.backend import compile_policy
from flowproof.lower.hosts import names_of

CONTROL = policy(
    {
        "api": "allow connect tcp to api.example.com:443",
        "rest": "deny connect to anything else except cdn.example.com",
    }
)


def test_names_become_addresses_in_the_tables() -> None:
    hosts = {"api.example.com": ("10.9.9.9", "2001:db8::9"), "cdn.example.com": ("192.0.2.7",)}
    artifact = compile_policy(CONTROL, "linux-x86_64", hosts=hosts)
    assert artifact.symbols == ()
    assert artifact.hosts == hosts
    assert 0x0A090909 in artifact.tables.planes["tcp4"].starts
    assert 0x0A090909 not in artifact.tables.planes["udp4"].starts
    assert 0xC0000207 in artifact.tables.planes["udp4"].starts


def test_hosts_that_no_rule_names_are_left_out() -> None:
    hosts = dict.fromkeys((*names_of(CONTROL), "other.example.com"), ("10.9.9.9",))
    assert set(compile_policy(CONTROL, "windows", hosts=hosts).hosts) == set(names_of(CONTROL))


def test_without_hosts_names_stay_symbols() -> None:
    assert [symbol.value for symbol in compile_policy(CONTROL, "linux-x86_64").symbols] == [
        "api.example.com",
        "cdn.example.com",
    ]


def test_the_fidelity_of_a_name_is_that_of_a_name_even_where_it_is_bound() -> None:
    control = policy({"ads": "deny connect to ads.example.com"})
    bound = compile_policy(control, "linux-x86_64", hosts={"ads.example.com": ("10.9.9.9",)})
    assert bound.fidelity[0].refusing == "over-permits"
    assert bound.digests == compile_policy(control, "linux-x86_64").digests


@pytest.mark.parametrize(
    ("addresses", "says"),
    [
        ((), "bound to no address"),
        (("127.0.0.1",), "loopback"),
        (("::1",), "loopback"),
        (("0.0.0.0",), "loopback"),
        (("169.254.1.1",), "link-local"),
        (("169.254.169.254",), "metadata"),
        (("fd00:ec2::254",), "metadata"),
        (("224.0.0.1",), "multicast"),
        (("10.0.0.9", "::ffff:127.0.0.1"), "loopback"),
    ],
)
def test_a_name_bound_to_space_that_no_name_may_have_ends_with_3(
    addresses: tuple[str, ...], says: str
) -> None:
    hosts = {"api.example.com": addresses, "cdn.example.com": ("192.0.2.7",)}
    with pytest.raises(DiagnosticsError) as caught:
        compile_policy(CONTROL, "linux-x86_64", hosts=hosts)
    assert caught.value.exit == 3
    (found,) = caught.value.diagnostics
    assert says in found.message
    assert "`api.example.com`" in found.message
    assert found.help
    assert found.span is not None
    assert found.span.line == 3


def test_every_name_without_a_binding_is_reported() -> None:
    with pytest.raises(DiagnosticsError) as caught:
        compile_policy(CONTROL, "linux-x86_64", hosts={})
    assert [found.code for found in caught.value.diagnostics] == ["FP115", "FP115"]
