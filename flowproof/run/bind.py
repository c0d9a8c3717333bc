"""The symbolic parts of an artifact bound for one run: names, variables and folders.

A run with a part that cannot be bound does not start; each such part gives a typed reason that names it,
never a variable's value.
"""

from __future__ import annotations

import os
import re

from flowproof.addresses import (
    CLASSES,
    LAST,
    LOOPBACK,
    METADATA,
    UNBINDABLE,
    Interval,
    canonical,
    format_address,
    parse_address,
)
from flowproof.record.codes import Code
from flowproof.run.bind_paths import bound_rows, spelt_out
from flowproof.run.decide import Decisions
from flowproof.run.names import RESOLVE_DEADLINE, resolve_all, system_resolver
from flowproof.run.patch import Patch, patched
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.artifact.model import Artifact, Symbol, Tables, UnixRow
    from flowproof.run.names import Resolver

__all__ = ["Bound", "Reason", "bind"]

Reason = tuple[Code, str]
"""Why the run does not start, and the part that it is about."""

_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")


class Bound(Value):
    """What a run decides by: *decisions*, over *tables* in which nothing is symbolic any more.

    *names* maps addresses in text form to the name that was bound to them, for reports; *bindings* maps
    each name to its addresses. A variable appears as ``${NAME}`` there.
    """

    artifact: Artifact
    tables: Tables
    decisions: Decisions
    names: Mapping[str, str]
    bindings: Mapping[str, tuple[str, ...]]


class _Part(Value):
    """A symbol with what it stands for: a name yet to be resolved, or intervals."""

    symbol: Symbol
    name: str | None
    intervals: tuple[Interval, ...]
    exact: bool


def bind(
    artifact: Artifact,
    environ: Mapping[str, str],
    resolve: Resolver = system_resolver,
    *,
    cwd: str,
    deadline: float = RESOLVE_DEADLINE,
) -> Bound | list[Reason]:
    """Return the artifact bound for this run, or every reason why it cannot be.

    Names that the artifact brings addresses for are not resolved; the others are, in parallel, and what
    has no answer after *deadline* seconds has none. *cwd* is the command's start folder.
    """
    reasons: list[Reason] = []
    parts = [
        part for symbol in artifact.symbols if (part := _part(artifact, symbol, environ, reasons))
    ]
    wanted = {part.name for part in parts if part.name and part.name not in artifact.hosts}
    answers = {**resolve_all(sorted(wanted), resolve, deadline), **artifact.hosts}
    patches: list[Patch] = []
    names: dict[str, str] = {}
    bindings: dict[str, tuple[str, ...]] = {}
    for part in parts:
        shown = part.name if part.symbol.kind == "name" else f"${{{part.symbol.value}}}"
        bound = part
        if part.name is not None:
            found = _addresses(str(shown), answers.get(part.name, ()), reasons)
            bound = replace(part, intervals=tuple((f, v, v) for f, v in found), exact=True)
            texts = tuple(format_address(family, value) for family, value in found)
            bindings[str(shown)] = texts
            names.update(dict.fromkeys(texts, str(shown)))
        patches += _patches(artifact, bound)
    rows = tuple(
        row for row in (_row(row, environ, cwd, reasons) for row in artifact.tables.unix) if row
    )
    files = bound_rows(artifact.tables.files, artifact.rules, environ, cwd, reasons)
    if reasons:
        return sorted(set(reasons), key=lambda reason: (reason[0].value, reason[1]))
    tables = replace(patched(artifact.tables, artifact.rules, patches), unix=rows, files=files)
    return Bound(artifact, tables, Decisions(tables, artifact.rules), names, bindings)


def _part(
    artifact: Artifact, symbol: Symbol, environ: Mapping[str, str], reasons: list[Reason]
) -> _Part | None:
    """Return what a symbol stands for, or None with a reason."""
    if symbol.kind == "name":
        return _Part(symbol, symbol.value, (), True)
    if symbol.kind != "variable":
        reasons.append((Code.NOT_CARRIED, f"`{symbol.value}` cannot be bound to addresses"))
        return None
    shown = f"${{{symbol.value}}}"
    value = environ.get(symbol.value)
    if value is None:
        reasons.append((Code.VARIABLE_UNSET, f"`{shown}` is not set"))
        return None
    if not value:
        reasons.append((Code.VARIABLE_UNSET, f"`{shown}` is empty"))
        return None
    part = _value(symbol, value)
    if part is None:
        reasons.append(
            (Code.VARIABLE_INVALID, f"`{shown}` is not exactly one host, address or CIDR")
        )
    elif part.name is not None and not _may_be_name(artifact, symbol):
        verb = artifact.rules[symbol.rule].verb
        reasons.append(
            (
                Code.VARIABLE_INVALID,
                f"`{shown}` is a name, and `{verb}` here needs an address or CIDR",
            )
        )
        return None
    return part


def _may_be_name(artifact: Artifact, symbol: Symbol) -> bool:
    """Tell whether a name is exact there: it is where more addresses would only refuse less."""
    rule = artifact.rules[symbol.rule]
    if rule.action != "connect":
        return False
    if symbol.role == "except":
        return rule.verb != "allow"
    return rule.verb in ("allow", "observe")


def _value(symbol: Symbol, text: str) -> _Part | None:
    """Return what a variable's value stands for, or None if it is not exactly one host."""
    if text.startswith("[") and text.endswith("]") and ":" in text:
        text = text[1:-1]
    if text.lower().rstrip(".") == "localhost":
        return _Part(symbol, None, LOOPBACK, True)
    address = parse_address(text)
    if address is not None:
        family, value = canonical(*address)
        return _Part(symbol, None, ((family, value, value),), True)
    if "/" in text:
        interval = _cidr(text)
        if interval is None:
            return None
        return _Part(symbol, None, (interval,), interval[1] == interval[2])
    name = _dns_name(text)
    return None if name is None else _Part(symbol, name, (), True)


def _cidr(text: str) -> Interval | None:
    """Return the interval of a CIDR without host bits, a v4-mapped one of /96 or longer as v4."""
    base, _, prefix = text.partition("/")
    address = parse_address(base)
    if address is None or not _PREFIX.fullmatch(prefix):
        return None
    family, first = address
    width = LAST[family].bit_length()
    if int(prefix) > width or first & ((1 << (width - int(prefix))) - 1):
        return None
    last = first | ((1 << (width - int(prefix))) - 1)
    if family == 6 and first >> 32 == 0xFFFF:
        return (4, first & LAST[4], last & LAST[4]) if int(prefix) >= 96 else None
    return family, first, last


def _dns_name(text: str) -> str | None:
    """Return a DNS name in its lower-case ASCII form, or None if it is none."""
    name = text.lower().removesuffix(".")
    if not name.isascii():
        import idna  # noqa: PLC0415  only a name beyond ASCII needs it

        try:
            name = idna.encode(name, uts46=True, transitional=False).decode("ascii")
        except idna.IDNAError:
            return None
    if name in CLASSES or not _NAME.fullmatch(name) or _NUMERIC.fullmatch(name.rpartition(".")[2]):
        return None
    return name


def _addresses(
    shown: str, texts: tuple[str, ...], reasons: list[Reason]
) -> tuple[tuple[int, int], ...]:
    """Return the addresses that a name is bound to, in order; where it may not be, with a reason."""
    parsed = (parse_address(text.partition("%")[0]) for text in texts)
    found = tuple(sorted({canonical(*address) for address in parsed if address is not None}))
    if not found:
        reasons.append((Code.NAME_UNBOUND, f"`{shown}` resolves to no address"))
    for family, value in found:
        space = next(
            (
                name
                for name, intervals in UNBINDABLE
                if any(f == family and low <= value <= high for f, low, high in intervals)
            ),
            "loopback" if value == 0 else None,  # connect(2) to 0.0.0.0 or :: is loopback
        )
        if space is not None:
            reasons.append((Code.NAME_UNBOUND, f"`{shown}` resolves to a {space} address"))
    return found


def _patches(artifact: Artifact, part: _Part) -> list[Patch]:
    """Return where a bound symbol puts its rule in, or takes it out."""
    rule = artifact.rules[part.symbol.rule]
    intervals = part.intervals if part.exact else _narrowed(part, allow=rule.verb == "allow")
    if rule.action == "listen":
        return [patch for each in intervals for patch in _listen_patches(part, rule.verb, each)]
    if part.exact:
        intervals = tuple(map(_wildcard_as_loopback, intervals))
    return [
        Patch(
            f"{protocol}{family}",
            first,
            last,
            part.symbol.ports,
            part.symbol.rule,
            part.symbol.role,
        )
        for family, first, last in intervals
        for protocol in part.symbol.protocols or ("tcp", "udp")
    ]


def _wildcard_as_loopback(interval: Interval) -> Interval:
    """Return loopback for exactly 0.0.0.0 or ``::``, as connect(2) takes them."""
    if interval[1:] != (0, 0):
        return interval
    family, first, _last = LOOPBACK[0] if interval[0] == 4 else LOOPBACK[1]
    value = first + 1 if family == 4 else first  # 127.0.0.1, ::1
    return family, value, value


def _narrowed(part: _Part, *, allow: bool) -> tuple[Interval, ...]:
    """Return a CIDR's intervals without loopback (unless it lies inside) and, allowed, metadata."""
    family, first, last = part.intervals[0]
    holes: list[Interval] = []
    if not any(f == family and low <= first and last <= high for f, low, high in LOOPBACK):
        holes += LOOPBACK
    if allow and part.symbol.role == "target":
        holes += METADATA
    found: list[Interval] = []
    for _f, low, high in sorted(hole for hole in holes if hole[0] == family):
        if high < first or low > last:
            continue
        if low > first:
            found.append((family, first, low - 1))
        first = high + 1
    if first <= last:
        found.append((family, first, last))
    return tuple(found)


def _listen_patches(part: _Part, verb: str, interval: Interval) -> list[Patch]:
    """Return the patches of a listen: 0.0.0.0 is every IPv4 address there, ``::`` every address."""
    family, first, last = interval
    symbol = part.symbol

    def patch(plane: str, low: int, high: int) -> Patch:
        return Patch(plane, low, high, symbol.ports, symbol.rule, symbol.role)

    whole4, whole6 = patch("listen4", 0, LAST[4]), patch("listen6", 0, LAST[6])
    any4, any6 = patch("listen-any4", 0, 0), patch("listen-any6", 0, 0)
    if (first, last) == (0, 0):
        if family == 6:
            return [whole4, whole6, any4, any6]
        # An exception of IPv4 leaves the IPv6 half of a listen on `::`: for an allow that is a hole in it.
        touched = symbol.role == "target" and verb != "allow"
        touched = touched or (symbol.role == "except" and verb == "allow")
        return [whole4, any4, any6] if touched else [whole4, any4]
    own = patch(f"listen{family}", first, last)
    touches = (symbol.role == "target") != (verb == "allow")
    if not touches:
        return [own]
    return [own, any4, any6] if family == 4 else [own, any6]


def _row(
    row: UnixRow, environ: Mapping[str, str], cwd: str, reasons: list[Reason]
) -> UnixRow | None:
    """Return a unix row with its folder put in and its links resolved, or None with a reason."""
    if row.path.startswith("@"):
        return row
    path = spelt_out(row.path, environ, cwd, reasons)
    return None if path is None else replace(row, path=os.path.realpath(path))
