"""Public bug reports of other tools that concern a compile, each with what this compiler makes of it.

Cited as repository#number. What of a report only a run can show is tried in tests/enforce.
"""

from __future__ import annotations

import pytest
from authored import policy, resolved

from flowproof.artifact import codec
from flowproof.ir.evaluate import evaluate
from flowproof.ir.events import Connect
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy, refusals
from flowproof.verify import bpf
from flowproof.verify.cache import cached
from flowproof.verify.found import Proof
from flowproof.verify.prove import verify
from flowproof.verify.require import ARCH, IO_URING, NUMBERS

ALLOW, NOTIFY, EPERM = 0x7FFF0000, 0x7FC00000, 0x00050001
DENY_ALL = {"rest": "deny connect to anything else"}


def _code(rules: dict[str, str], arch: str = "x86_64") -> list[bpf.Code]:
    meant = policy(rules)
    artifact = compile_policy(meant, f"linux-{arch}")
    assert isinstance(verify(meant, codec.dumps(artifact)), Proof)
    assert artifact.program is not None
    return [(s.code, s.jt, s.jf, s.k) for s in artifact.program.instructions]


def _action(code: list[bpf.Code], number: int, arch: int, *arguments: int) -> int:
    return bpf.run(code, bpf.data(number, arch, arguments)).action


def _handling(meant: Policy, event: Connect) -> str:
    return evaluate(meant, event).handling


# --- filter bypass, code generation


def test_fbbc_01_foreign_abi_x32_and_io_uring_do_not_pass() -> None:  # sympozium-ai/celln#30
    code = _code(DENY_ALL)
    assert _action(code, 102, 0x40000003) == NOTIFY  # int 0x80 socketcall
    assert _action(code, NUMBERS["x86_64"]["connect"] | 0x40000000, ARCH["x86_64"]) == NOTIFY
    assert _action(code, 425, ARCH["x86_64"]) == EPERM


@pytest.mark.parametrize("arch", ARCH)
def test_fbbc_02_every_io_uring_call_is_refused(arch: str) -> None:  # openai/codex#10814
    code = _code(DENY_ALL, arch)
    assert {_action(code, number, ARCH[arch]) for number in IO_URING} == {EPERM}


def test_fbbc_03_both_words_of_a_pointer_count() -> None:  # seccomp/libseccomp#139
    code, sendto = _code(DENY_ALL), NUMBERS["x86_64"]["sendto"]
    for address in (1, 0xFFFFFFFF, 1 << 32, (1 << 32) + 1, 1 << 63):
        assert _action(code, sendto, ARCH["x86_64"], 3, 0, 0, 0, address) == NOTIFY
    assert _action(code, sendto, ARCH["x86_64"], 3, 0, 0, 0, 0) == ALLOW


def test_fbbc_05_bit_31_of_an_int_is_no_sign() -> None:  # firecracker-microvm/firecracker#1206
    code, socket = _code(DENY_ALL), NUMBERS["x86_64"]["socket"]
    for high in (0, 0xFFFFFFFF << 32):  # zero- and sign-extended by the caller
        assert _action(code, socket, ARCH["x86_64"], high | 0x80000002, 1, 0) == NOTIFY
        assert _action(code, socket, ARCH["x86_64"], high | 2, 1, 0) == ALLOW


def test_fbbc_06_x32_is_refused_before_any_rule() -> None:  # google/kafel#26
    rules = {"look": "observe connect to private", "let": "allow connect to anything"}
    code = _code(rules)
    program = compile_policy(policy(rules), "linux-x86_64").program
    assert program is not None
    trapped = {call.number for call in program.trapped}
    for number in (0x40000000, 0x40000065, 0x40000209, NUMBERS["x86_64"]["connect"] | 0x40000000):
        assert _action(code, number, ARCH["x86_64"]) == NOTIFY
        assert number not in trapped, "no table decides it"
    assert _action(code, 0xFFFFFFFF, ARCH["x86_64"]) == NOTIFY
    (reply,) = (fixed for fixed in program.fixed if fixed.event == "foreign-abi")
    assert (reply.number, reply.errno) == (None, "EPERM"), (
        "one answer, whatever the rules let through"
    )


def test_fbbc_08_an_unknown_word_is_an_error_with_its_near_miss() -> (
    None
):  # netblue30/firejail#2931
    found, report = resolved({"a": "deny conect to 10.0.0.1"})
    assert found is None
    (error,) = report.errors
    assert error.span is not None
    assert (error.exit, error.span.line, error.span.column) == (2, 3, 12)
    assert "`connect`" in f"{error.message} {error.help}"


def test_fbbc_10_a_rule_equal_to_the_default_compiles() -> None:  # opencontainers/runc#1847
    without = {"a": "allow connect to 10.0.0.0/8"}
    meant = policy({**without, "rest": "deny connect to anything else"})
    assert {rule.id for rule in meant.rules} >= {"rest", "p.default.connect"}
    _code({**without, "rest": "deny connect to anything else"})
    for address in (0x08080808, 0x0A000001):
        event = Connect("tcp", 4, address, 443)
        assert _handling(meant, event) == _handling(policy(without), event)
    assert evaluate(meant, Connect("tcp", 4, 0x08080808, 443)).by == "rest", (
        "the author's own goes first"
    )


def test_fbbc_12_an_allow_that_a_refusal_takes_whole_is_an_error() -> None:  # runtime-spec#1159
    found, report = resolved({"a": "deny connect to 10.0.0.1", "b": "allow connect to 10.0.0.1"})
    assert found is None
    (error,) = report.errors
    assert error.code == "FP515"
    assert error.span is not None
    assert (error.span.line, [span.line for span, _ in error.related]) == (4, [3])


def test_fbbc_14_one_policy_is_proved_for_each_architecture() -> None:  # google/kafel#47
    assert _code(DENY_ALL, "x86_64") != _code(DENY_ALL, "aarch64")
    meant = policy(DENY_ALL)
    artifacts = [compile_policy(meant, f"linux-{arch}") for arch in ARCH]
    assert len({artifact.digests["ir"] for artifact in artifacts}) == 1
    assert artifacts[0].tables == artifacts[1].tables


def test_fbbc_15_a_call_that_nobody_knows_yet_is_let_be() -> None:  # moby/moby#42680
    code = _code(DENY_ALL)
    for number in (435, 511, 0x3FFFFFFF):  # clone3, and numbers without a call
        assert _action(code, number, ARCH["x86_64"]) == ALLOW
    assert any(low <= 435 <= high for low, high in cached(code, "x86_64"))


# --- egress agents of CI


def test_cea_01_a_wildcard_is_refused_and_never_matches_nothing() -> None:  # harden-runner#83
    meant = policy({"a": "allow connect to *.blob.core.windows.net:443"})
    for target in ("linux-x86_64", "windows"):
        (row,) = refusals(compile_policy(meant, target))
        assert (row.subject, row.refusing) == ("a", "unsupported")
        assert "p.policy.yaml:3" in (row.reason or "")


def test_cea_08_a_host_that_cannot_be_is_an_error() -> None:  # Automattic/vip-go-mu-plugins#2815
    found, report = resolved({"a": "allow connect to undefined:3306"})
    assert found is None, "a single label is no host"
    assert report.errors


def test_cea_09_addresses_and_names_take_any_port() -> None:  # netblue30/firejail#5485
    rules = {
        "a": "allow connect to 1.1.1.1:1025, dns.quad9.net:53, whois.pir.org:43, debian.example:80",
        "b": "allow connect to debian.example:443",
        "rest": "deny connect to anything else",
    }
    artifact = compile_policy(policy(rules), "linux-x86_64")
    assert not refusals(artifact)
    held = {(symbol.value, symbol.ports) for symbol in artifact.symbols}
    assert ("dns.quad9.net", ((53, 53),)) in held
    assert {ports for name, ports in held if name == "debian.example"} == {
        ((80, 80),),
        ((443, 443),),
    }


# --- sandboxes for agents


def test_asn_04_an_allow_is_no_exception_to_deny_anything() -> None:  # sandbox-runtime#353
    rules = {"api": "allow connect to 10.0.0.1:443", "rest": "deny connect to anything"}
    found, report = resolved(rules)
    assert found is None
    assert [error.code for error in report.errors] == ["FP515"]
    open_one = policy({**rules, "rest": "deny connect to anything else"})
    assert _handling(open_one, Connect("tcp", 4, 0x0A000001, 443)) == "let-through"


def test_asn_05_a_name_server_off_the_host_is_refused_unless_declared() -> (
    None
):  # sandbox-runtime#88
    server = Connect("udp", 4, 0x08080808, 53)
    assert _handling(policy(DENY_ALL), server) == "refused"
    declared = policy({**DENY_ALL, "dns": "allow connect udp to 8.8.8.8:53"})
    assert _handling(declared, server) == "let-through"


def test_asn_07_what_is_refused_does_not_hang_on_a_proxy_setting() -> None:  # nolabs-ai/nono#713
    code, connect = _code(DENY_ALL), NUMBERS["x86_64"]["connect"]
    assert _action(code, connect, ARCH["x86_64"], 3, 1 << 40, 16) == NOTIFY


def test_asn_14_a_lookup_can_be_allowed_beside_its_host() -> None:  # openai/codex#22387
    rules = {
        "api": "allow connect to 10.0.0.1:443",
        "dns": "allow connect to 10.0.0.53:53",
        **DENY_ALL,
    }
    for protocol in ("tcp", "udp"):
        assert _handling(policy(rules), Connect(protocol, 4, 0x0A000035, 53)) == "let-through"
