"""Addresses and networks as a control writes them: strict, and named when they are none."""

from __future__ import annotations

import re

from flowproof.addresses import canonical, format_address, parse_address
from flowproof.syntax.port_ranges import LAST_PORT
from flowproof.syntax.tree import Address, Cidr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span

__all__ = ["OCTETS", "address6", "network", "octets_wrong", "v4", "v6"]

OCTETS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


def v6(text: str, span: Span, report: Report) -> Address | Cidr | None:
    """Return the bare IPv6 address or network that *text* is, or None with an error in *report*."""
    if "/" in text:
        return network(text, span, report, bracket=False)
    node = address6(text, span, report)
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


def address6(text: str, span: Span, report: Report) -> Address | None:
    """Return the IPv6 address that *text* is, or None with an error in *report*."""
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
        if OCTETS.fullmatch(host.rstrip(":")):
            way = f"write `{host.rstrip(':')}:{port}`"
        elif "." in text:
            way = (
                "a destination has one host and one `:` in front of its ports: `10.0.0.1:{80,443}`"
            )
        report.error("FP401", f"`{text}` is no IPv6 address", span, way)
        return None
    return Address(*canonical(*parsed), span)


def v4(text: str, span: Span, report: Report) -> Address | None:
    """Return the address that four decimal numbers are, or None with an error in *report*."""
    if (why := octets_wrong(text)) is not None:
        report.error("FP401", f"`{text}` is no address: {why[0]}", span, why[1])
        return None
    parsed = parse_address(text)
    assert parsed is not None, text
    return Address(*parsed, span)


def octets_wrong(text: str) -> tuple[str, str | None] | None:
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


def network(text: str, span: Span, report: Report, *, bracket: bool) -> Cidr | Address | None:
    """Return the network that *text* is, one address where it is of full length, or None with an error
    in *report*. *bracket*: it stands in brackets.
    """
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
    if ":" not in base and OCTETS.fullmatch(base):
        why = octets_wrong(base)
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
    elif text.startswith(("/", "~/", "./", "../")):
        report.error(
            "FP412",
            f"`{text}` is a path, and a destination is a host and its ports",
            span,
            f"a unix socket is `unix:{text}`",
        )
    else:
        report.error(
            "FP412",
            f"`{text}` is no destination: a name takes neither a prefix nor a path",
            span,
            f"write `{base}`" if base else "a destination is a host and its ports",
        )
