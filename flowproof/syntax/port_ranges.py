"""What stands where a port or a range of them may stand."""

from __future__ import annotations

from flowproof.syntax.tree import PortRange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span

__all__ = ["LAST_PORT", "ports"]

LAST_PORT = 65535


def ports(text: str, span: Span, report: Report) -> PortRange | None:
    """Return the port or the range of ports that *text* is."""
    if text.isascii() and text.isdigit() and text[0] != "0" and len(text) < 5:  # most of them
        return PortRange(int(text), int(text), span)
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
