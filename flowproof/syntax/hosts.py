"""What stands where a host may stand: told apart, validated, and named when it is none."""

from __future__ import annotations

import re

from flowproof.addresses import CLASSES, parse_address
from flowproof.near import near_miss
from flowproof.syntax.names import NameRefusedError, normalise, numeric
from flowproof.syntax.networks import OCTETS, address6, network, octets_wrong, v4, v6
from flowproof.syntax.port_ranges import ports
from flowproof.syntax.tree import Address, AddressClass, Name, SetReference, Variable, Wildcard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span
    from flowproof.syntax.tree import Cidr

    Plain = Name | Wildcard | Address | Cidr | AddressClass | Variable | SetReference

__all__ = ["bracketed", "quoted", "word"]

_WORDS = (*CLASSES, "localhost", "anything")
_EVERYTHING = ("everything", "all", "any", "internet", "everywhere")
_SET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_V4 = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/:]*)(?::([0-9]+))?")


def word(text: str, span: Span, report: Report) -> Plain | None:
    """Return the host that the unquoted *text* is, or None with an error in *report*."""
    if _V4.fullmatch(text) and (parsed := parse_address(text)) is not None:  # most of many
        return Address(*parsed, span)
    if text[0] == "@":
        return _set(text, span, report)
    if text[0] == "$":
        return _variable(text, span, report)
    if text.startswith("*"):
        return _wildcard(text, span, report)
    if url := _URL.match(text):
        host = url.group(1)
        way = f"write `{host}:443`, or the port that is meant" if host else "write the host"
        if host and url.group(2):
            way = f"write `{host}:{url.group(2)}`"
        report.error(
            "FP412", f"`{text}` is a URL, and a destination is a host and its ports", span, way
        )
        return None
    if text.count(":") >= 2:
        return v6(text, span, report)
    if ":" in text:
        _refuse_port(text, span, report)
        return None
    if "/" in text:
        return network(text, span, report, bracket=False)
    if OCTETS.fullmatch(text):
        return v4(text, span, report)
    return _name(text, span, report, in_quotes=False)


def quoted(text: str, span: Span, report: Report) -> Plain | None:
    """Return the DNS name that stands in quotes as *text*."""
    if text.startswith("*"):
        report.error(
            "FP410",
            f'`"{text}"` is no DNS name: what is quoted is a name as it stands',
            span,
            f"write `{text}` without the quotes",
        )
        return None
    return _name(text, span, report, in_quotes=True)


def bracketed(text: str, span: Span, report: Report) -> Plain | None:
    """Return the IPv6 address or network in brackets; *text* begins with the bracket."""
    inner, _, tail = text[1:].partition("]")
    if tail:
        report.error(
            "FP404" if tail[0] == ":" else "FP401",
            f"`{tail}` behind `[{inner}]` is no port",
            span.source.span(span.end - len(tail), span.end),
            "a port is a number from 1 to 65535, as in `[2001:db8::1]:443`",
        )
        return None
    if ":" not in inner:
        report.error(
            "FP401",
            f"`{text}` is no IPv6 address, and only IPv6 stands in brackets",
            span,
            f"write `{inner}`" if inner else "write the address, as in `[2001:db8::1]:443`",
        )
        return None
    if "/" in inner:
        return network(inner, span, report, bracket=True)
    return address6(inner, span, report)


def _set(text: str, span: Span, report: Report) -> SetReference | None:
    if not _SET.fullmatch(text[1:]):
        report.error(
            "FP411",
            f"`{text}` names no set",
            span,
            "a set is `@` and its name: letters, digits, `_`, `.` and `-`",
        )
        return None
    return SetReference(text[1:], span)


def _variable(text: str, span: Span, report: Report) -> Variable | None:
    match = _VARIABLE.fullmatch(text)
    if match is None:
        report.error(
            "FP414",
            f"`{text}` is no host",
            span,
            "a host from the environment is `${NAME}` alone, its ports behind it",
        )
        return None
    if match.group(1) in {"cwd", "tmp"}:
        way = "write the host, or `${NAME}` for one from the environment"
        report.error("FP414", f"`{text}` is a folder, not a host", span, way)
        return None
    return Variable(match.group(1), span)


def _wildcard(text: str, span: Span, report: Report) -> Wildcard | None:
    rest = text[2:]
    if text[:2] != "*." or not rest or "*" in rest or "/" in rest or ":" in rest:
        report.error(
            "FP410",
            f"`{text}` is no destination: `*.` stands once, in front of a DNS name",
            span,
            "write `anything`" if text == "*" else "as in `*.example.com`",
        )
        return None
    name = _normalised(rest, text, span, report)
    if name is None:
        return None
    if numeric(name):
        _refuse_numeric(text, name, span, report)
        return None
    return Wildcard(name, span)


def _refuse_port(text: str, span: Span, report: Report) -> None:
    """Name what stands behind the one colon of *text* and is no port."""
    host, _, port = text.partition(":")
    at = span.source.span(span.start + len(host) + 1, span.end)
    if not host:
        report.error("FP401", f"`{text}` has no host", span, f"a host stands in front of `{text}`")
        return
    # the host is judged too: both can be wrong
    if word(host, span.source.span(span.start, span.start + len(host)), report) is None:
        return
    if port:
        ports(port, at, report)
    else:
        report.error("FP404", f"`{text}` ends where a port is expected", at, f"write `{host}:443`")


def _normalised(text: str, shown: str, span: Span, report: Report) -> str | None:
    try:
        return normalise(text)
    except NameRefusedError as error:
        way = "a name is labels of letters, digits and hyphens, parted by single dots"
        if "*" in shown:
            way = "`*.` stands once, in front of a name; addresses are a network: `10.0.0.0/24`"
        elif "@" in shown:
            way = "name the host alone, or a set as `@name`"
        report.error("FP409", f"`{shown}` is no DNS name: {error}", span, way)
        return None


def _refuse_numeric(text: str, name: str, span: Span, report: Report) -> None:
    last = name.rpartition(".")[2]
    way = "an IPv4 address has four numbers from 0 to 255"
    if OCTETS.fullmatch(name) and octets_wrong(name) is None:
        way = f"write `{name}`"
    report.error(
        "FP407",
        f"`{text}` is neither an address nor a name: its last label `{last}` is a number",
        span,
        way,
    )


def _name(text: str, span: Span, report: Report, *, in_quotes: bool) -> Name | AddressClass | None:
    shown = f'"{text}"' if in_quotes else text
    name = _normalised(text, shown, span, report)
    if name is None:
        return None
    if name == "localhost":
        return AddressClass("loopback", span)
    if "." not in name and not in_quotes:
        near = near_miss(text, _WORDS)
        way = f'a name of one label is quoted: `"{name}"`'
        if text.isascii() and text.isdigit() and len(text) <= 5:
            way = "a port stands behind its host: `anything:8080`, several of them in braces: `:{80,443}`"
        elif numeric(name):
            way = "an IPv4 address has four numbers from 0 to 255, parted by dots"
        elif text == "unix":
            way = "a socket is `unix:` and its path, as one word: `unix:/run/x.sock`"
        elif text in _EVERYTHING:
            near = "anything"
        report.error(
            "FP408",
            f"`{text}` is no destination",
            span,
            f"did you mean `{near}`? {way}" if near else way,
        )
        return None
    if numeric(name):
        _refuse_numeric(shown, name, span, report)
        return None
    return Name(name, span)
