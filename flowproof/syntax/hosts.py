"""What stands where a host may stand: told apart, validated, and named when it is none."""

from __future__ import annotations

import re

from flowproof.addresses import CLASSES, canonical, format_address, parse_address
from flowproof.near import near_miss
from flowproof.syntax.names import NameRefusedError, normalise, numeric
from flowproof.syntax.tree import (
    Address,
    AddressClass,
    Cidr,
    Name,
    PortRange,
    SetReference,
    Variable,
    Wildcard,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span

    Plain = Name | Wildcard | Address | Cidr | AddressClass | Variable | SetReference

__all__ = ["bracketed", "ports", "quoted", "word"]

LAST_PORT = 65535
_WORDS = (*CLASSES, "localhost", "anything")
_EVERYTHING = ("everything", "all", "any", "internet", "everywhere")
_SET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OCTETS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/:]*)(?::([0-9]+))?")


def word(text: str, span: Span, report: Report) -> Plain | None:
    """Return the host that the unquoted *text* is, or None with an error in *report*."""
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
        return _v6(text, span, report)
    if ":" in text:
        _refuse_port(text, span, report)
        return None
    if "/" in text:
        return _network(text, span, report, bracket=False)
    if _OCTETS.fullmatch(text):
        return _v4(text, span, report)
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
        return _network(inner, span, report, bracket=True)
    return _address6(inner, span, report)


def ports(text: str, span: Span, report: Report) -> PortRange | None:
    """Return the port or the range of ports that *text* is."""
    low, dash, high = text.partition("-")
    bounds = []
    for part in (low, high) if dash else (low,):
        value = _port(part, text, span, report)
        if value is None:
            return None
        bounds.append(value)
    if bounds[0] > bounds[-1]:
        report.error(
            "FP404",
            f"the range `{text}` is empty: it ends before it begins",
            span,
            f"write `{high}-{low}`",
        )
        return None
    return PortRange(bounds[0], bounds[-1], span)


def _port(part: str, text: str, span: Span, report: Report) -> int | None:
    shown = f"`{part}`" if part == text else f"`{part}` in `{text}`"
    if not (part.isascii() and part.isdigit()):
        report.error(
            "FP404",
            f"`{text}` is no port",
            span,
            "a port is a number from 1 to 65535, a range two of them: `443`, `8000-8010`",
        )
    elif len(part) > 1 and part[0] == "0":
        plain = part.lstrip("0") or "0"
        way = f"write `{plain}`" if plain != "0" else "ports go from 1 to 65535"
        report.error("FP404", f"the port {shown} has leading zeros", span, way)
    elif part == "0":
        report.error("FP404", f"{shown} is no port to connect to", span, "ports go from 1 to 65535")
    elif len(part) > 5 or int(part) > LAST_PORT:
        way = "ports go from 1 to 65535"
        report.error("FP404", f"the port {shown} is over 65535, the last one", span, way)
    else:
        return int(part)
    return None


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


def _v6(text: str, span: Span, report: Report) -> Plain | None:
    if "/" in text:
        return _network(text, span, report, bracket=False)
    node = _address6(text, span, report)
    head, _, last = text.rpartition(":")
    # `2001:db8::1:443` reads as one address; with the last group off it is one too
    if node is not None and _reads_as_port(last) and parse_address(head) is not None:
        report.warning(
            "FP406",
            f"the last group of `{text}` is part of the address, not a port",
            span,
            f"write `[{head}]:{last}` for the port, `[{text}]` for the address",
        )
    return node


def _reads_as_port(text: str) -> bool:
    return text.isdigit() and text[0] != "0" and len(text) <= 5 and int(text) <= LAST_PORT


def _address6(text: str, span: Span, report: Report) -> Address | None:
    if "%" in text:
        report.error(
            "FP401",
            f"`{text}` carries a zone id, which means something on one host only",
            span,
            f"write `{text.partition('%')[0]}`",
        )
        return None
    parsed = parse_address(text)
    if parsed is None:
        host, _, port = text.rpartition(":")
        way = "an IPv6 address is eight groups, or fewer with `::` once: `2001:db8::1`"
        if _OCTETS.fullmatch(host.rstrip(":")):
            way = f"write `{host.rstrip(':')}:{port}`"
        elif "." in text:
            way = (
                "a destination has one host and one `:` in front of its ports: `10.0.0.1:{80,443}`"
            )
        report.error("FP401", f"`{text}` is no IPv6 address", span, way)
        return None
    return Address(*canonical(*parsed), span)


def _v4(text: str, span: Span, report: Report) -> Address | None:
    if (why := _octets_wrong(text)) is not None:
        report.error("FP401", f"`{text}` is no address: {why[0]}", span, why[1])
        return None
    parsed = parse_address(text)
    assert parsed is not None, text
    return Address(*parsed, span)


def _octets_wrong(text: str) -> tuple[str, str | None] | None:
    """Return what is wrong with four decimal octets, and the way out, or None."""
    for octet in text.split("."):
        if len(octet) > 1 and octet[0] == "0":
            plain = ".".join(o.lstrip("0") or "0" for o in text.split("."))
            return (
                f"`{octet}` has a leading zero, which some programs read as octal",
                f"write `{plain}` if that is meant",
            )
        if len(octet) > 3 or int(octet) > 255:
            return f"`{octet}` is over 255", "an IPv4 address has four numbers from 0 to 255"
    return None


def _network(text: str, span: Span, report: Report, *, bracket: bool) -> Cidr | Address | None:
    base, _, prefix = text.partition("/")
    if not bracket and ":" in prefix:
        bare, _, port = prefix.partition(":")
        report.error(
            "FP405",
            f"a bare IPv6 network takes no port, and `{base}/{bare}` is followed by `:{port}`",
            span,
            f"write `[{base}/{bare}]:{port}`",
        )
        return None
    if ":" not in base and _OCTETS.fullmatch(base):
        why = _octets_wrong(base)
        if why is not None:
            report.error("FP401", f"`{base}` in `{text}` is no address: {why[0]}", span, why[1])
            return None
    parsed = parse_address(base)
    if parsed is None:
        _no_network(text, base, span, report)
        return None
    width = 32 if parsed[0] == 4 else 128
    if not (prefix.isascii() and prefix.isdigit()) or (len(prefix) > 1 and prefix[0] == "0"):
        report.error(
            "FP402",
            f"`{prefix}` in `{text}` is no prefix",
            span,
            f"a prefix is a number of bits from 0 to {width}, as in `10.0.0.0/8`",
        )
        return None
    if len(prefix) > 3 or int(prefix) > width:
        way = f"a prefix is a number of bits from 0 to {width}"
        report.error("FP402", f"the prefix of `{text}` is over {width} bits", span, way)
        return None
    return _masked(text, parsed, int(prefix), span, report)


def _masked(
    text: str, parsed: tuple[int, int], prefix: int, span: Span, report: Report
) -> Cidr | Address | None:
    family, value = parsed
    width = 32 if family == 4 else 128
    if canonical(family, value)[0] != family:
        if prefix < 96:
            report.error(
                "FP402",
                f"`{text}` is wider than the v4-mapped addresses that it begins with",
                span,
                "write the IPv4 network, or an IPv6 one that is not v4-mapped",
            )
            return None
        family, value = canonical(family, value)
        width, prefix = 32, prefix - 96
    base = value >> (width - prefix) << (width - prefix)
    if base != value:
        right = f"{format_address(family, base)}/{prefix}"
        report.error(
            "FP403",
            f"`{text}` has host bits set",
            span,
            f"write `{right}` for the network, `{format_address(family, value)}` for the address",
        )
        return None
    if prefix == width:
        return Address(family, value, span)
    return Cidr(family, value, prefix, span)


def _no_network(text: str, base: str, span: Span, report: Report) -> None:
    if ":" in base:
        report.error(
            "FP401", f"`{base}` in `{text}` is no IPv6 address", span, "as in `2001:db8::/32`"
        )
    elif re.fullmatch(r"[0-9.]+", base):
        report.error(
            "FP401", f"`{base}` in `{text}` is no IPv4 address", span, "as in `10.0.0.0/8`"
        )
    else:
        report.error(
            "FP412",
            f"`{text}` is no destination: a name takes neither a prefix nor a path",
            span,
            f"write `{base}`" if base else "a destination is a host and its ports",
        )


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
    if _OCTETS.fullmatch(name) and _octets_wrong(name) is None:
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
