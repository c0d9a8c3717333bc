"""Options that choose the way, by a table written by hand from the decision and the headers of Linux.

docs/decisions/0004 says which they are and where they fail. The table has the socket's family as well, though a filter
never sees it: a socket of IPv6 takes the options of IPv4 for mapped addresses, so neither may depend on it.
Levels and options: linux/in.h, linux/in6.h, linux/socket.h (Linux 6.1).
"""

from __future__ import annotations

import pytest
from authored import policy

from flowproof.lower.backend import compile_policy
from flowproof.verify import bpf
from flowproof.verify.require import ALLOWED, ARCH, NUMBERS, REFUSED, argument, required

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOL_IP, SOL_SOCKET, SOL_TCP, SOL_UDP, SOL_IPV6, SOL_RAW = 0, 1, 6, 17, 41, 255
EPERM, ALLOW = 0x00050001, 0x7FFF0000

TABLE: list[tuple[str, int, int, int, bool]] = [
    # name, family, level, option, refused
    ("IP_OPTIONS", AF_INET, SOL_IP, 4, True),  # a loose source route (RFC 791)
    ("IP_OPTIONS", AF_INET6, SOL_IP, 4, True),  # the same for a mapped address
    ("IPV6_RTHDR", AF_INET6, SOL_IPV6, 57, True),  # a routing header (RFC 3542)
    ("IPV6_2292PKTOPTIONS", AF_INET6, SOL_IPV6, 6, True),  # its older form (RFC 2292)
    ("IPV6_FLOWLABEL_MGR", AF_INET6, SOL_IPV6, 32, True),  # in the options of a flow label
    ("SO_BINDTODEVICE", AF_INET, SOL_SOCKET, 25, True),  # loopback's datagrams leave by it
    ("SO_BINDTOIFINDEX", AF_INET6, SOL_SOCKET, 62, True),
    ("IP_UNICAST_IF", AF_INET, SOL_IP, 50, True),
    ("IP_UNICAST_IF", AF_INET6, SOL_IP, 50, True),  # the same for a mapped address
    ("IPV6_UNICAST_IF", AF_INET6, SOL_IPV6, 76, True),
    ("IPV6_PKTINFO", AF_INET6, SOL_IPV6, 50, True),  # the source, and an interface
    ("IP_PKTINFO", AF_INET, SOL_IP, 8, False),  # a switch: tell where it arrived
    ("IP_MULTICAST_IF", AF_INET, SOL_IP, 32, False),  # multicast alone
    ("SO_MARK", AF_INET, SOL_SOCKET, 36, False),  # the network's administrator alone
    ("no option of a socket", AF_INET, SOL_SOCKET, 76, False),
    ("no option of IPv6", AF_INET6, SOL_IPV6, 62, False),
    ("IP_TOS", AF_INET, SOL_IP, 1, False),
    ("IP_TTL", AF_INET, SOL_IP, 2, False),
    ("IP_HDRINCL", AF_INET, SOL_IP, 3, False),  # raw sockets alone, and those are refused
    ("IP_ROUTER_ALERT", AF_INET, SOL_IP, 5, False),
    ("IP_RECVOPTS", AF_INET, SOL_IP, 6, False),  # what arrives, not what leaves
    ("IP_RETOPTS", AF_INET, SOL_IP, 7, False),
    ("IP_MTU_DISCOVER", AF_INET, SOL_IP, 10, False),
    ("no option of IPv4", AF_INET, SOL_IP, 57, False),
    ("IPV6_ADDRFORM", AF_INET6, SOL_IPV6, 1, False),
    ("IPV6_2292HOPOPTS", AF_INET6, SOL_IPV6, 3, False),
    ("IPV6_2292DSTOPTS", AF_INET6, SOL_IPV6, 4, False),
    ("IPV6_2292RTHDR", AF_INET6, SOL_IPV6, 5, False),  # a switch: tell of headers that arrive
    ("IPV6_UNICAST_HOPS", AF_INET6, SOL_IPV6, 16, False),
    ("IPV6_V6ONLY", AF_INET6, SOL_IPV6, 26, False),
    ("IPV6_FLOWINFO_SEND", AF_INET6, SOL_IPV6, 33, False),
    ("IPV6_HOPOPTS", AF_INET6, SOL_IPV6, 54, False),
    (
        "IPV6_RTHDRDSTOPTS",
        AF_INET6,
        SOL_IPV6,
        55,
        False,
    ),  # options, which need a header to be of use
    ("IPV6_RECVRTHDR", AF_INET6, SOL_IPV6, 56, False),
    ("IPV6_RECVDSTOPTS", AF_INET6, SOL_IPV6, 58, False),
    ("IPV6_DSTOPTS", AF_INET6, SOL_IPV6, 59, False),
    ("IPV6_TCLASS", AF_INET6, SOL_IPV6, 67, False),
    ("SO_BROADCAST", AF_INET, SOL_SOCKET, 6, False),
    ("SO_PASSCRED", AF_UNIX, SOL_SOCKET, 16, False),
    ("SO_ATTACH_BPF", AF_INET, SOL_SOCKET, 50, False),
    ("no option of a socket", AF_INET, SOL_SOCKET, 57, False),
    ("TCP_CORK", AF_INET, SOL_TCP, 3, False),
    ("TCP_DEFER_ACCEPT", AF_INET, SOL_TCP, 9, False),
    ("UDP_SEGMENT", AF_INET, SOL_UDP, 103, False),
    ("ICMP_FILTER", AF_INET, SOL_RAW, 1, False),
    ("no option of that level", AF_INET6, 40, 57, False),
    ("no option of that level", AF_INET6, 42, 57, False),
]
RULES = {"rest": "deny connect to anything else"}
HIGH = (
    0,
    1 << 32,
    0xFFFFFFFF << 32,
)  # the kernel reads ints: what a caller leaves above does not count


def _required(rules: dict[str, str], arch: str, level: int, option: int) -> tuple[str, ...]:
    """Return what the verifier wants of a setsockopt, from the words that a filter sees."""
    words = {4: ARCH[arch], 0: NUMBERS[arch]["setsockopt"]}
    words |= {argument(at, high=high): 0 for at in range(6) for high in (False, True)}
    words |= {argument(1): level, argument(2): option}
    return required(policy(rules), arch).of(words)


def _action(rules: dict[str, str], arch: str, level: int, option: int) -> int:
    program = compile_policy(policy(rules), f"linux-{arch}").program
    assert program is not None
    code = [(s.code, s.jt, s.jf, s.k) for s in program.instructions]
    number = NUMBERS[arch]["setsockopt"]
    return bpf.run(code, bpf.data(number, ARCH[arch], (3, level, option, 1 << 40, 16, 0))).action


@pytest.mark.parametrize("arch", ARCH)
@pytest.mark.parametrize(("name", "family", "level", "option", "refused"), TABLE)
def test_the_verifier_wants_what_the_decision_says(
    name: str, family: int, level: int, option: int, refused: bool, arch: str
) -> None:
    wanted = _required(RULES, arch, level, option)
    assert wanted == (REFUSED if refused else ALLOWED), (name, family)
    assert REFUSED == ("errno", "EPERM")


@pytest.mark.parametrize("arch", ARCH)
def test_the_program_does_what_the_table_says(arch: str) -> None:
    for name, _, level, option, refused in TABLE:
        for high in HIGH:
            action = _action(RULES, arch, high | level, high | option)
            assert action == (EPERM if refused else ALLOW), (name, hex(high))


def test_the_table_has_every_option_that_is_refused_and_both_its_neighbours() -> None:
    listed = {(level, option): refused for _, _, level, option, refused in TABLE}
    routing = {pair for pair, refused in listed.items() if refused}
    assert routing == {
        *((1, 25), (1, 62)),
        *((0, 4), (0, 50)),
        *((41, 6), (41, 32), (41, 50), (41, 57), (41, 76)),
    }
    held = required(policy(RULES), "x86_64").options()
    assert {(level, option) for _, level, option in held} == routing
    near = {(level, option + by) for level, option in routing for by in (-1, 1)}
    for level, option in near - set(listed):
        assert _required(RULES, "x86_64", level, option) == ALLOWED


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        ({"a": "deny connect to 10.0.0.1"}, True),
        ({"a": "never connect to anything else"}, True),
        ({"a": "allow connect to 10.0.0.1"}, True),
        (
            {"a": "observe connect to anything"},
            True,
        ),  # what is only looked at would be another address
        ({"a": "expect no connect to 10.0.0.1"}, True),
        ({"a": "deny connect to unix:/run/x.sock"}, True),
        ({"a": "observe listen"}, False),  # no rule looks at connections
        ({"a": "deny listen on anything:80"}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("arch", ARCH)
def test_they_fail_where_a_connect_rule_looks_at_connections(
    rules: dict[str, str], refused: bool, arch: str
) -> None:
    for pair in ((0, 4), (41, 6), (41, 32), (41, 57)):
        assert _required(rules, arch, *pair) == (REFUSED if refused else ALLOWED)
        assert _action(rules, arch, *pair) == (EPERM if refused else ALLOW)
