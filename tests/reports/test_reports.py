"""Public bug reports of the field, each with its small input and what is right here.

One test for each row of "YAML authoring", "Policy compiler semantics", "Host and IP normalisation" and the
row on duplicate control ids. Where a report asks for something that the language page decides otherwise,
the page wins and the test says so.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from flowproof.diagnostics import Diagnostic, Report, Severity
from flowproof.ir.evaluate import Evaluation, evaluate
from flowproof.ir.events import parse_event
from flowproof.ir.model import Policy
from flowproof.ir.resolve import resolve_suite
from flowproof.source.suite import load

HEAD = "name: T\ncontrol:\n  id: c\n"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str | bytes, **more: str) -> tuple[list[Policy], list[Diagnostic]]:
    """Write `x.flow.yaml` and others beside it; return the policies of the folder and what was said."""
    Path("x.flow.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, content in more.items():
        Path(f"{name}.flow.yaml").write_bytes(content.encode())
    report = Report()
    suite = load(".", report)
    policies = [] if suite is None else [each.policy for each in resolve_suite(suite, report)]
    return policies, list(report)


def errors(text: str | bytes, **more: str) -> list[Diagnostic]:
    return [each for each in read(text, **more)[1] if each.severity is Severity.ERROR]


def rules(*sentences: str) -> str:
    return HEAD + "  rules:\n" + "".join(f"    r.{at}: {s}\n" for at, s in enumerate(sentences, 1))


def policy(*sentences: str) -> Policy:
    policies, said = read(rules(*sentences))
    assert not [each for each in said if each.severity is Severity.ERROR]
    return policies[0]


def judged(found: Policy, text: str) -> Evaluation:
    event = parse_event(text, Report())
    assert event is not None
    return evaluate(found, event)


# YAML authoring


def test_plain_booleans_stay_the_strings_that_they_are() -> None:
    """tomasz-c/nft-blackhole#4. The report's reader turned `no` into False; the page has `on` and `no` stay
    strings where a string is expected, so they are refused as what they are: names of one label.
    """
    found = errors(
        "name: T\nagent:\n  command: x\n  allow_egress: [no, se, on:443]\ncontrol:\n  id: c\n"
    )
    assert [(each.span.text if each.span else "") for each in found] == ["no", "se", "on"]
    assert all("quoted" in (each.help or "") for each in found)


def test_a_key_given_twice_names_both_lines() -> None:
    """yaml/libyaml#166."""
    (found,) = errors(
        "name: T\nagent:\n  command: x\n  allow_egress: [10.0.0.1]\n  allow_egress: [10.0.0.2]\n"
    )
    assert found.span is not None
    assert found.span.line == 5
    assert "line 4" in found.message
    assert [place.line for place, _ in found.related] == [4]


def test_a_byte_order_mark_shifts_no_column_and_breaks_no_indentation() -> None:
    """biojppm/rapidyaml#559."""
    text = "\ufeffname: T\ncontrol: {id: c}\nnmae: x\n"
    (found,) = errors(text)
    assert found.span is not None
    assert (found.span.line, found.span.column) == (3, 1)
    (first,) = errors("\ufeffnmae: x\nname: T\ncontrol: {id: c}\n")
    assert first.span is not None
    assert (first.span.line, first.span.column) == (1, 1)


def test_lines_that_end_in_two_characters_are_counted_once() -> None:
    """JuliaData/YAML.jl#250."""
    (found,) = errors(b"name: T\r\ncontrol:\r\n  idd: c\r\n")
    assert found.span is not None
    assert (found.span.line, found.span.column) == (3, 3)


def test_an_error_names_the_line_of_the_mistake_and_no_comment_in_front_of_it() -> None:
    """coddy-project/coddy-agent#229."""
    comments = "".join(f"  # comment {at}\n" for at in range(17))
    (found,) = errors(HEAD + "  title: T\n" + comments + "     rules: {}\n")
    assert found.span is not None
    assert found.span.line == 4 + 17 + 1


def test_an_alias_bomb_is_refused_at_once() -> None:
    """nodeca/js-yaml#738."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{now}: &{now} [{', '.join([f'*{before}'] * 9)}]"
        for before, now in zip("abcdefghi", "bcdefghij", strict=True)
    ]
    before = time.process_time()
    found = errors("\n".join(lines))
    assert time.process_time() - before < 1
    assert {each.code for each in found} >= {"FP205"}


def test_a_single_anchor_is_refused_too_and_shown_another_way() -> None:
    """hivemoot/hivemoot#72 asks for legitimate anchors; the page refuses all of them and has sets instead."""
    found = errors(HEAD + "  rules:\n    r.a: &x allow connect to 10.0.0.1\n    r.b: *x\n")
    assert [each.code for each in found] == ["FP205", "FP205"]
    assert "set" in (found[0].help or "")


def test_a_tab_that_indents_is_called_a_tab() -> None:
    """pinpox/base16-universal-manager#22."""
    (found,) = errors("name: T\ncontrol:\n\tid: c\n")
    assert found.span is not None
    assert (found.span.line, found.span.column) == (3, 1)
    assert "tab" in found.message


# Policy compiler semantics


def test_an_exception_of_the_other_family_is_an_error_and_never_widens() -> None:
    """google/capirca#137: an empty intersection of families."""
    (found,) = errors(rules("deny connect to 10.0.0.0/8 except 2001:db8::1"))
    assert found.span is not None
    assert found.span.text == "2001:db8::1"


def test_a_protocol_that_the_language_has_not_is_a_diagnostic() -> None:
    """google/capirca#23: ICMP on the wrong family gave a traceback."""
    (found,) = errors(rules("deny connect icmp to 2001:db8::1"))
    assert found.span is not None
    assert found.span.text == "icmp"
    assert "`tcp`" in found.message


def test_allowing_addresses_of_one_family_allows_none_of_the_other() -> None:
    """DefGuard/defguard#1868 and DefGuard/defguard#2117."""
    found = policy("allow connect to 1.1.1.1, 2.2.2.2")
    assert judged(found, "connect tcp [2001:db8::1]:443").by == "c.default.connect"
    assert judged(found, "connect tcp 2.2.2.2:443").handling == "let-through"


def test_neighbouring_networks_lose_no_address() -> None:
    """DefGuard/defguard#1362."""
    found = policy("allow connect to 10.123.1.4/30, 10.123.1.8/30")
    through = [
        at
        for at in range(16)
        if judged(found, f"connect tcp 10.123.1.{at}:1").handling != "refused"
    ]
    assert through == list(range(4, 12))


def test_a_named_refusal_holds_inside_a_wider_allow_whatever_the_order() -> None:
    """Wide-Moat/open-computer-use#464. The report's lint on ineffective rules is not needed: a refusal is
    never ineffective here, and it is the `allow` that is an error where nothing of it is left.
    """
    sentences = ["allow connect to 0.0.0.0/0, 169.254.169.254", "deny connect to 169.254.169.254"]
    for each in (sentences, sentences[::-1]):
        found = judged(policy(*each), "connect tcp 169.254.169.254:80")
        assert found.handling == "refused"
    (error,) = errors(rules("allow connect to 169.254.169.254", "deny connect to 169.254.169.254"))
    assert error.code == "FP515"


def test_an_allow_of_everything_leaves_narrower_allows_and_refusals_in_force() -> None:
    """ansible/eda-server-operator#362. The report asks for a lint that earlier rules are dead; the page knows
    no order, so an `allow` beside a wider one changes nothing, and refusals still hold.
    """
    found = policy(
        "allow connect to 10.0.0.53:53",
        "allow connect to anything",
        "deny connect to 10.0.0.9",
    )
    assert judged(found, "connect udp 10.0.0.53:53").by == "r.1"
    assert judged(found, "connect tcp 192.0.2.1:443").by == "r.2"
    assert judged(found, "connect tcp 10.0.0.9:443").by == "r.3"


def test_an_exception_wider_than_its_network_is_an_error() -> None:
    """kubernetes/kubernetes#86578."""
    (found,) = errors(rules("allow connect to 192.168.0.0/24 except 192.168.0.0/16"))
    assert found.span is not None
    assert found.span.text == "192.168.0.0/16"


# Host and IP normalisation


def test_a_trailing_dot_neither_evades_nor_breaks_a_rule() -> None:
    """browser-use/browser-use#5069."""
    found = policy("allow connect to example.com.:443", "expect no connect to EVIL.com")
    assert judged(found, "connect tcp example.com:443").by == "r.1"
    assert judged(found, "connect tcp Example.COM.:443").by == "r.1"
    assert judged(found, "connect tcp evil.com.:443").asserting == ("r.2",)


def test_a_name_in_another_script_is_the_name_that_is_asked_for() -> None:
    """stripe/smokescreen#264."""
    found = policy("allow connect to bücher.example:443")
    assert judged(found, "connect tcp xn--bcher-kva.example:443").by == "r.1"
    assert "xn--bcher-kva.example" in found.rules[-1].sentence + found.rules[0].sentence + str(
        [symbol.value for rule in found.rules for symbol in rule.targets.symbols]
    )


def test_a_wildcard_matches_at_labels_and_not_the_name_itself() -> None:
    """tinyproxy/tinyproxy#627."""
    found = policy("allow connect to *.trusted.net")
    assert judged(found, "connect tcp a.trusted.net:443").handling == "let-through"
    assert judged(found, "connect tcp a.b.trusted.net:443").handling == "let-through"
    assert judged(found, "connect tcp nottrusted.net:443").handling == "refused"
    assert judged(found, "connect tcp trusted.net:443").handling == "refused"


def test_a_mapped_address_is_the_address_for_allow_and_deny() -> None:
    """librefang/librefang#2396."""
    found = policy("deny connect to metadata", "allow connect to 10.0.0.0/8")
    assert judged(found, "connect tcp [::ffff:169.254.169.254]:80").by == "r.1"
    assert judged(found, "connect tcp [::ffff:10.0.0.1]:80").by == "r.2"
    mapped = policy("deny connect to ::ffff:169.254.169.254")
    assert judged(mapped, "connect tcp 169.254.169.254:80").by == "r.1"


# Control ids


def test_control_ids_are_strings_and_unique_across_a_suite() -> None:
    """ComplianceAsCode/content#14921. The report asks that unquoted `1.10` be refused; the page keeps a plain
    scalar as its source text, so 1.1 and 1.10 are two ids without quotes.
    """
    flow = "name: T\ncontrol:\n  id: {}\n"
    policies, said = read(flow.format("1.1"), y=flow.format("1.10"))
    assert not said
    assert {each.control for each in policies} == {"1.1", "1.10"}
    (found,) = errors(flow.format("1.1"), y=flow.format("1.1"))
    assert found.code == "FP501"
    assert {found.span.file if found.span else "", *(place.file for place, _ in found.related)} == {
        "./x.flow.yaml",
        "./y.flow.yaml",
    }
