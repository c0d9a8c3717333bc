"""Cells of an address line in words: an interval of addresses and the ports that go with it."""

from __future__ import annotations

from flowproof.addresses import format_address
from flowproof.ir.ports import LAST_PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowproof.ir.regions import Region

__all__ = ["cell_words", "interval_words", "port_words"]


def interval_words(family: int, first: int, last: int) -> str:
    """Return an interval as an address, a network, or its two ends."""
    if first == last:
        return format_address(family, first)
    size = last - first + 1
    if size & (size - 1) == 0 and first % size == 0:
        width = 32 if family == 4 else 128
        return f"{format_address(family, first)}/{width - size.bit_length() + 1}"
    return f"{format_address(family, first)} - {format_address(family, last)}"


def port_words(ports: Sequence[tuple[int, int]]) -> str:
    """Return a set of ports in words; none written is any."""
    if not ports or tuple(ports) == ((0, LAST_PORT),):
        return "any port"
    parts = [str(low) if low == high else f"{low}-{high}" for low, high in ports]
    single = len(parts) == 1 and "-" not in parts[0]
    return f"port{'' if single else 's'} {','.join(parts)}"


def cell_words(region: Region, *, addresses: bool = True) -> tuple[str, ...]:
    """Return the boxes of *region*, each once: joined where they touch, so that equal regions read alike.
    Without *addresses* the ports alone, for what has one address.
    """
    return tuple(
        f"{interval_words(family, first, last)} {port_words(ports)}"
        if addresses
        else port_words(ports)
        for _, family, first, last, ports in region
    )
