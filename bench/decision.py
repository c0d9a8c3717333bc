"""One decision of the supervisor: raw address bytes in, the decision out, at 10,000 intervals."""

from __future__ import annotations

import random
import socket
import struct
import time

from bench.flows import many_addresses
from bench.place import Place
from bench.rounds import ROUNDS, measure
from bench.table import Row

__all__ = ["rows"]

LOOKUPS = 20_000
BOUND = 5.0


def _decider(place: Place, addresses: int) -> tuple[float, float, int]:
    """Return microseconds of a lookup, of a lookup with the parse of its bytes, and the intervals."""
    from flowproof.artifact.codec import loads  # noqa: PLC0415  the rest of the bench needs no import
    from flowproof.run.bind import bind  # noqa: PLC0415
    from flowproof.run.sockaddr import Inet, parse  # noqa: PLC0415

    flow = place.write(f"decide{addresses}.flow.yaml", many_addresses(addresses))
    place.run(place.flowproof("compile", str(flow), "--target", "linux-x86_64", "-o", "decide"))
    artifact = loads(
        (place.folder / "decide" / f"decide{addresses}.linux-x86_64.json").read_bytes()
    )
    bound = bind(artifact, {}, cwd=str(place.folder))
    assert not isinstance(bound, list)
    decide, starts = bound.decisions.address, bound.tables.planes["tcp4"].starts
    chance = random.Random(1)
    values = [
        min(max(chance.choice(starts) + chance.randint(-1, 1), 0), 2**32 - 1)
        for _ in range(LOOKUPS)
    ]
    raws = [
        struct.pack("=HHI8x", socket.AF_INET, socket.htons(443), socket.htonl(v)) for v in values
    ]

    def lookups() -> float:
        began = time.thread_time()
        for value in values:
            decide("tcp4", value, 443)
        return time.thread_time() - began

    def from_bytes() -> float:
        began = time.thread_time()
        for raw in raws:
            found = parse(raw)
            assert isinstance(found, Inet)
            decide("tcp4", found.value, found.port)
        return time.thread_time() - began

    plain = measure(lookups, {"parsed": from_bytes}, rounds=ROUNDS)
    scale = 1e6 / LOOKUPS
    return plain.median("bare") * scale, plain.median("parsed") * scale, len(starts)


def rows(place: Place) -> list[Row]:
    """Return the row, with the same at a tenth of the intervals beside it."""
    small, _, _ = _decider(place, 500)
    large, parsed, intervals = _decider(place, 5_000)
    return [
        Row(
            f"one decision in the supervisor, {intervals:,} intervals",
            f"O(log n), ≤ {BOUND:g} us",
            f"{large:.2f} us ({parsed:.2f} with the parse of the address; {large / small:.2f}x of a tenth)",
            holds=parsed <= BOUND and large / small < 3,
        )
    ]
