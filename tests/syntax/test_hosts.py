"""What stands where a host may stand: each form, and each way to get it wrong."""

from __future__ import annotations

import pytest
from strategies import text_of

from flowproof.diagnostics import Report, Severity
from flowproof.syntax.parse import parse_destination, parse_destinations
from flowproof.syntax.render import render_destination


def canonical(text: str) -> str:
    report = Report()
    node = parse_destination(text_of(text), report)
    assert not list(report), list(report)
    assert node is not None
    return render_destination(node)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("10.0.0.1/32", "10.0.0.1"),
        ("2001:DB8::1/128", "2001:db8::1"),
        ("2001:0db8:0:0::1", "2001:db8::1"),
        ("::", "::"),
        ("::/0", "::/0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("[::ffff:10.0.0.1]:443", "10.0.0.1:443"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:10.0.0.1/128", "10.0.0.1"),
        ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("API.Example.COM.", "api.example.com"),
        ("bücher.example:443", "xn--bcher-kva.example:443"),
        ("BÜCHER。example", "xn--bcher-kva.example"),
        ("straße.example", "xn--strae-oqa.example"),  # non-transitional: not strasse
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("a_b.bücher.example", "a_b.xn--bcher-kva.example"),
        ("127.0.0.1.nip.example", "127.0.0.1.nip.example"),
        ("1e.100e", "1e.100e"),
        ('"db":5432', '"db":5432'),
        ('"DB."', '"db"'),
        ('"under":80', '"under":80'),
        ('"api.example.com"', "api.example.com"),
        ('"anything"', '"anything"'),
        ("*.Example.com.:443", "*.example.com:443"),
        ("*.bücher.example", "*.xn--bcher-kva.example"),
        ("localhost:80", "loopback:80"),
        ("LocalHost.", "loopback"),
        ('"localhost"', "loopback"),
        ("link-local", "link-local"),
        ("metadata:80", "metadata:80"),
        ("@crm", "@crm"),
        ("@CRM_1.x-y:443", "@CRM_1.x-y:443"),
        ("${PROXY}", "${PROXY}"),
        ("${PROXY}:8080", "${PROXY}:8080"),
        ("10.0.0.1:{22,80-90, 443}", "10.0.0.1:{22,80-90,443}"),
        ("10.0.0.1:{22}", "10.0.0.1:22"),
        ("10.0.0.1:443-443", "10.0.0.1:443"),
        ("10.0.0.1:1-65535", "10.0.0.1:1-65535"),
        ("10.0.0.0/8:443", "10.0.0.0/8:443"),
        ("unix:/run//x.sock/", "unix:/run/x.sock"),
        ("unix:x.sock", "unix:${cwd}/x.sock"),
        ("unix:~/x.sock", "unix:~/x.sock"),
        ("unix:${RUNTIME}/x.sock", "unix:${RUNTIME}/x.sock"),
        ("unix:@bus", "unix:@bus"),
        ('unix:"@my bus"', 'unix:"@my bus"'),
        ('unix:"/run/a,b"', 'unix:"/run/a,b"'),
        ("unix:/run/x:80/y", "unix:/run/x:80/y"),
    ],
)
def test_a_destination_means_one_thing(written: str, means: str) -> None:
    assert canonical(written) == means


@pytest.mark.parametrize(
    ("written", "code", "underlined", "says"),
    [
        ("10.0.0.256", "FP401", "10.0.0.256", "`256` is over 255"),
        ("010.0.0.1", "FP401", "010.0.0.1", "`10.0.0.1`"),
        ("10.0.0.00", "FP401", "10.0.0.00", "`10.0.0.0`"),
        ("10.0.0.1000:1", "FP401", "10.0.0.1000", "over 255"),
        ("10.0.0.999999999999/8", "FP401", "10.0.0.999999999999/8", "over 255"),
        ("fe80::1%eth0", "FP401", "fe80::1%eth0", "`fe80::1`"),
        ("[fe80::1%eth0]:80", "FP401", "[fe80::1%eth0]", "zone"),
        ("2001:db8:::1", "FP401", "2001:db8:::1", "no IPv6"),
        ("10.0.0.1::80", "FP401", "10.0.0.1::80", "`10.0.0.1:80`"),
        ("[10.0.0.1]:80", "FP401", "[10.0.0.1]", "`10.0.0.1`"),
        ("[]:80", "FP401", "[]", "[2001:db8::1]"),
        ("[db]:80", "FP401", "[db]", "no IPv6"),
        (":443", "FP401", ":443", "no host"),
        ("10.0.0.0/33", "FP402", "10.0.0.0/33", "over 32"),
        ("2001:db8::/129", "FP402", "2001:db8::/129", "over 128"),
        ("10.0.0.0/9999999999", "FP402", "10.0.0.0/9999999999", "over 32"),
        ("10.0.0.0/255.0.0.0", "FP402", "10.0.0.0/255.0.0.0", "0 to 32"),
        ("10.0.0.0/8/8", "FP402", "10.0.0.0/8/8", "no prefix"),
        ("10.0.0.0/", "FP402", "10.0.0.0/", "no prefix"),
        ("10.0.0.0/08", "FP402", "10.0.0.0/08", "no prefix"),
        ("10.0.0.0/٨", "FP402", "10.0.0.0/٨", "no prefix"),
        ("10.0.0.0/-8", "FP402", "10.0.0.0/-8", "no prefix"),
        ("::ffff:0:0/90", "FP402", "::ffff:0:0/90", "v4-mapped"),
        ("10.0.0.1/8", "FP403", "10.0.0.1/8", "`10.0.0.0/8`"),
        ("2001:db8::1/32", "FP403", "2001:db8::1/32", "`2001:db8::/32`"),
        ("[2001:db8::1/32]:80", "FP403", "[2001:db8::1/32]", "`2001:db8::/32`"),
        ("::ffff:10.0.0.1/104", "FP403", "::ffff:10.0.0.1/104", "`10.0.0.0/8`"),
        ("10.0.0.1:0", "FP404", "0", "1 to 65535"),
        ("10.0.0.1:70000", "FP404", "70000", "65535"),
        ("10.0.0.1:0443", "FP404", "0443", "`443`"),
        ("10.0.0.1:00", "FP404", "00", "1 to 65535"),
        ("10.0.0.1:90-80", "FP404", "90-80", "`80-90`"),
        ("10.0.0.1:80-70000", "FP404", "80-70000", "`70000` in `80-70000`"),
        ("10.0.0.1:http", "FP404", "http", "no port"),
        ("10.0.0.1:-1", "FP404", "-1", "no port"),
        ("10.0.0.1:80-", "FP404", "80-", "no port"),
        ("10.0.0.1:", "FP404", "", "`10.0.0.1:443`"),
        ("10.0.0.1:٤٤٣", "FP404", "٤٤٣", "no port"),
        ("10.0.0.1:{80,70000}", "FP404", "70000", "65535"),
        ("10.0.0.1:{80,x}", "FP404", "x", "no port"),
        ("[::1]:http", "FP404", ":http", "1 to 65535"),
        ("2001:db8::/32:443", "FP405", "2001:db8::/32:443", "`[2001:db8::/32]:443`"),
        ("10.0.0", "FP407", "10.0.0", "last label `0`"),
        ("1.2.3.4.5", "FP407", "1.2.3.4.5", "four numbers"),
        ("10.0.0.1.", "FP407", "10.0.0.1.", "`10.0.0.1`"),
        ("example.0x7f", "FP407", "example.0x7f", "`0x7f`"),
        ("*.0.0.1", "FP407", "*.0.0.1", "last label `1`"),
        ('"10.0.0.1"', "FP407", '"10.0.0.1"', "write `10.0.0.1`"),
        ("\uff11\uff10.0.0.1", "FP407", "\uff11\uff10.0.0.1", "write `10.0.0.1`"),
        ("loopbak", "FP408", "loopbak", "did you mean `loopback`"),
        ("Loopback:80", "FP408", "Loopback", "did you mean `loopback`"),
        ("linklocal", "FP408", "linklocal", "did you mean `link-local`"),
        ("anythin", "FP408", "anythin", "did you mean `anything`"),
        ("db:5432", "FP408", "db", '`"db"`'),
        ("db.", "FP408", "db.", '`"db"`'),
        ("443", "FP408", "443", "`:{80,443}`"),
        ("everything", "FP408", "everything", "did you mean `anything`"),
        ("0x7f000001:80", "FP408", "0x7f000001", "no destination"),
        ("a..example", "FP409", "a..example", "empty"),
        (".example", "FP409", ".example", "empty"),
        ("a.example..", "FP409", "a.example..", "empty"),
        (f"{'a' * 64}.example", "FP409", f"{'a' * 64}.example", "63"),
        (".".join(["a" * 60] * 5), "FP409", ".".join(["a" * 60] * 5), "253"),
        ("-a.example", "FP409", "-a.example", "hyphen"),
        ("a-.example", "FP409", "a-.example", "hyphen"),
        ("ab--c.example", "FP409", "ab--c.example", "third and fourth"),
        ("xn--a.example", "FP409", "xn--a.example", "IDNA"),
        ("a\u00a0b.example", "FP409", "a\u00a0b.example", "no DNS name"),
        ("אa.example", "FP409", "אa.example", "directions"),
        ("a!b.example", "FP409", "a!b.example", "letters"),
        ('"a b"', "FP409", '"a b"', "letters"),
        ('""', "FP409", '""', "no label"),
        ("*", "FP410", "*", "`anything`"),
        ("*:443", "FP410", "*", "`anything`"),
        ("*.*.example.com", "FP410", "*.*.example.com", "once"),
        ("*example.com", "FP410", "*example.com", "in front"),
        ("*.", "FP410", "*.", "in front"),
        ('"*.example.com"', "FP410", '"*.example.com"', "without the quotes"),
        ("@", "FP411", "@", "a set is"),
        ("@a/b", "FP411", "@a/b", "a set is"),
        (
            "https://api.example.com/v1",
            "FP412",
            "https://api.example.com/v1",
            "`api.example.com:443`",
        ),
        ("api.example.com/v1", "FP412", "api.example.com/v1", "`api.example.com`"),
        ("api.example.com/24", "FP412", "api.example.com/24", "neither a prefix"),
        ("/srv", "FP412", "/srv", "a unix socket is `unix:/srv`"),
        ("~/db.sock", "FP412", "~/db.sock", "`unix:~/db.sock`"),
        ("anything", "FP413", "anything", "allow connect to anything"),
        ("anything else:443", "FP413", "anything else:443", "leave out"),
        ("10.0.0.1, 10.0.0.2", "FP413", "10.0.0.1, 10.0.0.2", "2 destinations"),
        ("${A}x", "FP414", "${A}x", "alone"),
        ("${1A}", "FP414", "${1A}", "alone"),
        ("$A", "FP414", "$A", "alone"),
        ("${cwd}", "FP414", "${cwd}", "folder"),
        ("${tmp}:80", "FP414", "${tmp}", "folder"),
        ('unix:"/x":80', "FP310", 'unix:"/x":80', "no port"),
        ("unix:@", "FP306", "unix:@", "has a name"),
        ("unix:/a/../b", "FP306", "unix:/a/../b", "`..`"),
        ("", "FP303", "", "a destination"),
        ("10.0.0.1:{}", "FP301", "}", "a port"),
        ("10.0.0.1:{80,}", "FP301", "}", "a port"),
        ("10.0.0.1 :443", "FP301", ":443", "`,`"),
        ("10.0.0.1 because", "FP301", "because", "`because`"),
        ("no", "FP301", "no", '`"no"`'),
        ("on:443", "FP301", "on", '`"on"`'),
        ("10.0.0.1,", "FP303", "", "last comma"),
        ("[::1", "FP304", "[::1", "`[`"),
        ("{80}", "FP304", "{80}", "`{`"),
        ('"db', "FP305", '"db', "not closed"),
        ('"d\\b"', "FP305", '"d\\b"', "escape"),
        ('"db"x', "FP304", '"db"x', "quote in the middle"),
        ('x"db"', "FP304", 'x"db"', "quote in the middle"),
    ],
)
def test_what_is_no_destination_is_underlined_with_a_way_out(
    written: str, code: str, underlined: str, says: str
) -> None:
    report = Report()
    assert parse_destination(text_of(written), report) is None
    (error,) = report
    assert error.span is not None
    assert (error.code, error.span.text) == (code, underlined)
    assert error.severity is Severity.ERROR
    assert says in f"{error.message} | {error.help}"


@pytest.mark.parametrize("written", ["2001:db8::1:443", "::1:80", "fe80::1:22"])
def test_a_bare_v6_whose_last_group_looks_like_a_port_is_a_warning(written: str) -> None:
    report = Report()
    assert parse_destination(text_of(written), report) is not None
    (warning,) = report
    assert (warning.code, warning.severity) == ("FP406", Severity.WARNING)
    head, _, last = written.rpartition(":")
    assert f"`[{head}]:{last}`" in (warning.help or "")


@pytest.mark.parametrize(
    "written",
    [
        "2001:db8::1",
        "2001:db8::9",
        "::1",
        "2001:db8:0:0:0:0:1:443",
        "2001:db8::1:44f",
        "2001:db8::1:0443",
        "[::1:80]",
    ],
)
def test_a_v6_that_reads_one_way_only_is_not_warned_about(written: str) -> None:
    report = Report()
    assert parse_destination(text_of(written), report) is not None
    assert not list(report)


def test_each_member_that_is_right_is_kept_beside_those_that_are_not() -> None:
    report = Report()
    found = parse_destinations(text_of("10.0.0.1, 10.0.0.256, anything else, anything:80"), report)
    assert [render_destination(node) for node in found] == ["10.0.0.1", "anything:80"]
    assert [(d.code, d.span and d.span.text) for d in report] == [
        ("FP401", "10.0.0.256"),
        ("FP413", "anything else"),
    ]


def test_spans_cover_what_is_written() -> None:
    node = parse_destination(text_of("[2001:db8::1]:{80, 90-100}"), Report())
    assert node is not None
    assert node.ports is not None
    assert node.span.text == "[2001:db8::1]:{80, 90-100}"
    assert node.host.span.text == "[2001:db8::1]"
    assert node.ports.span.text == "{80, 90-100}"
    assert [port.span.text for port in node.ports.ranges] == ["80", "90-100"]
