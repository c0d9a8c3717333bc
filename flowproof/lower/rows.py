"""The decision tables as rows of which the first that fits decides: what most addresses and ports come to is
one row at the end, and each row in front of it is an exception. A rule more then adds rows and moves none.
"""

from __future__ import annotations

from flowproof.addresses import LAST
from flowproof.ir.cells import interval_words, port_words
from flowproof.ir.ports import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flowproof.artifact.model import Plane, PortTable, Tables

    Runs = tuple[tuple[int, int, str], ...]  # first and last port, what becomes of them: 0 to 65535
    Row = tuple[
        int, int, int, int, int, str
    ]  # kind, first and last address, first and last port, words

__all__ = ["rows_of"]

_ADDRESS_AND_PORT, _ADDRESS, _PORT, _ANYWHERE = range(4)  # in the order in which rows are read
_WIDTHS = {
    4: 33,
    6: 43,
}  # of an interval of addresses; a range of IPv6 may be longer and moves its row alone
_PORTS = len("ports 65534-65535")


def rows_of(
    tables: Tables, planes: Sequence[tuple[str, str]], words: Sequence[str]
) -> Iterator[str]:
    """Yield the rows of *planes*, each with what to call it (a protocol, or nothing), of one family.

    *words* are the entries in words. Of any address and port the first row that fits says what becomes of it.
    """
    found: dict[Row, list[str]] = {}
    for name, title in planes:
        for row in _rows(tables.planes[name], tables.ports, words, LAST[int(name[-1])]):
            found.setdefault(row, []).append(title)
    family = int(planes[0][0][-1])
    width = len(" ".join(title for _, title in planes))
    for row in sorted(found):
        kind, first, last, low, high, said = row
        cells = [" ".join(found[row]).ljust(width)] if width else []
        anywhere = kind in (_PORT, _ANYWHERE)
        cells += [
            ("anywhere" if anywhere else interval_words(family, first, last)).ljust(
                _WIDTHS[family]
            ),
            port_words(((low, high),)).ljust(_PORTS),
            said,
        ]
        yield "  ".join(cells)


def _rows(
    plane: Plane, ports: Sequence[PortTable], words: Sequence[str], end: int
) -> Iterator[Row]:
    runs = {cell: _runs(ports[cell], words) for cell in set(plane.cells)}
    usual = _usual(plane, runs, end)
    main = _main(usual)
    yield (_ANYWHERE, 0, end, 0, LAST_PORT, main)
    for low, high, said in usual:
        if said != main:
            yield (_PORT, 0, end, low, high, said)
    exceptions = {held: dict.fromkeys(_exceptions(held, usual)) for held in set(runs.values())}
    opened: dict[tuple[int, int, int, str], int] = {}
    for start, cell in zip(plane.starts, plane.cells, strict=True):
        held = exceptions[runs[cell]]
        for key in [key for key in opened if key not in held]:
            yield _closed(key, opened.pop(key), start - 1)
        for key in held:
            opened.setdefault(key, start)
    for key, first in opened.items():
        yield _closed(key, first, end)


def _closed(key: tuple[int, int, int, str], first: int, last: int) -> Row:
    kind, low, high, said = key
    return (kind, first, last, low, high, said)


def _runs(table: PortTable, words: Sequence[str]) -> Runs:
    """Return what becomes of the ports, neighbours that come to the same as one."""
    found: list[tuple[int, int, str]] = []
    for at, low in enumerate(table.starts):
        high = table.starts[at + 1] - 1 if at + 1 < len(table.starts) else LAST_PORT
        said = words[table.entries[at]]
        if found and found[-1][2] == said:
            found[-1] = (found[-1][0], high, said)
        else:
            found.append((low, high, said))
    return tuple(found)


def _usual(plane: Plane, runs: Mapping[int, Runs], end: int) -> Runs:
    """Return what most addresses come to; of equals what the lowest address does."""
    sizes: dict[Runs, int] = {}
    for at, cell in enumerate(plane.cells):
        last = plane.starts[at + 1] - 1 if at + 1 < len(plane.starts) else end
        sizes[runs[cell]] = sizes.get(runs[cell], 0) + last - plane.starts[at] + 1
    return max(sizes, key=lambda held: sizes[held])


def _main(runs: Runs) -> str:
    """Return what most ports come to; of equals what the lowest port does."""
    sizes: dict[str, int] = {}
    for low, high, said in runs:
        sizes[said] = sizes.get(said, 0) + high - low + 1
    return max(sizes, key=lambda said: sizes[said])


def _exceptions(runs: Runs, usual: Runs) -> Iterator[tuple[int, int, int, str]]:
    """Yield the rows, without their addresses, that make *usual* into *runs*."""
    main = _main(runs)
    if main == _main(usual):
        yield from ((_ADDRESS_AND_PORT, *run) for run in _differing(runs, usual))
        return
    yield (_ADDRESS, 0, LAST_PORT, main)
    for low, high, said in runs:
        if said != main:
            yield (_ADDRESS_AND_PORT, low, high, said)


def _differing(runs: Runs, usual: Runs) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of *runs* that are other than *usual*, neighbours that come to the same as one."""
    known: tuple[int, int, str] | None = None
    at = 0
    for low, high, said in runs:
        start = low
        while start <= high:
            while usual[at][1] < start:
                at += 1
            upto = min(high, usual[at][1])
            if said != usual[at][2]:
                if known is not None and known[1] == start - 1 and known[2] == said:
                    known = (known[0], upto, said)
                else:
                    if known is not None:
                        yield known
                    known = (start, upto, said)
            start = upto + 1
    if known is not None:
        yield known
