"""``--hosts FILE``: names bound at compile time, in the form of ``/etc/hosts`` (hosts(5))."""

from __future__ import annotations

from flowproof.addresses import canonical, format_address, parse_address
from flowproof.diagnostics import Source
from flowproof.plain_files import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report

__all__ = ["read_hosts"]


def read_hosts(path: str, report: Report) -> dict[str, tuple[str, ...]]:
    """Return name → addresses, both canonical, in the order of the file; mistakes are in *report*."""
    try:
        source = Source(path, read_plain(path).decode("utf-8"))
    except OSError as failure:
        why = failure.strerror or "unknown error"
        report.error("FP602", f"cannot read `{path}`: {why}", None, "`--hosts` takes a file")
        return {}
    except UnicodeDecodeError:
        report.error("FP602", f"`{path}` is not UTF-8", None, "save it as UTF-8")
        return {}
    found: dict[str, list[str]] = {}
    start = 0
    for line in source.text.splitlines(keepends=True):
        _line(source, start, line, found, report)
        start += len(line)
    return {name: tuple(addresses) for name, addresses in found.items()}


def _line(
    source: Source, start: int, line: str, found: dict[str, list[str]], report: Report
) -> None:
    words = line.partition("#")[0].split()
    if not words:
        return
    at = start + line.index(words[0])
    span = source.span(at, at + len(words[0]))
    parsed = parse_address(words[0])
    if parsed is None:
        report.error(
            "FP602",
            f"`{words[0]}` is no address",
            span,
            "each line is an address and the names that it stands for",
        )
        return
    if len(words) == 1:
        report.error("FP602", f"no name behind `{words[0]}`", span, "add one, or take the line out")
        return
    address = format_address(*canonical(*parsed))
    for name in words[1:]:
        addresses = found.setdefault(name.lower().removesuffix("."), [])
        if address not in addresses:
            addresses.append(address)
