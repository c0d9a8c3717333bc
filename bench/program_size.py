"""Program size: instructions on the way to an answer, by how many arguments are read, and in all.

The bytes that ``compile --emit bin`` gives are walked for every syscall number on both architectures:
branches on the number and the arch are decided, branches on arguments taken both ways.
"""

from __future__ import annotations

import struct
import subprocess

from bench.flows import contained, twelve
from bench.place import Place
from bench.table import Row

__all__ = ["Walked", "rows", "walk"]

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*, linux/audit.h
NUMBERS = range(600)  # past the last syscall number of either table
FIRST_ARGUMENT = 16  # offset of args[0] in struct seccomp_data
LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP, EQUAL, GREATER, AT_LEAST, ANY_BIT = 0x05, 0x15, 0x25, 0x35, 0x45


class Walked:
    """The longest way for a syscall number: instructions, by the number of arguments read."""

    def __init__(self) -> None:
        self.longest: dict[int, int] = {}

    def add(self, arguments: int, steps: int) -> None:
        """Keep the longest."""
        self.longest[arguments] = max(steps, self.longest.get(arguments, 0))


def _branches(code: int, value: int | None, k: int) -> tuple[bool, ...]:
    if value is None:
        return (True, False)
    tests = {EQUAL: value == k, GREATER: value > k, AT_LEAST: value >= k, ANY_BIT: bool(value & k)}
    return (tests[code],)


def walk(program: bytes, arch: int, number: int) -> Walked:
    """Return the longest ways of *number*; an argument's value is unknown, so both branches are taken."""
    rows = list(struct.iter_unpack("=HBBI", program))
    walked = Walked()
    waiting: list[tuple[int, int | None, frozenset[int], int]] = [(0, None, frozenset(), 0)]
    while waiting:
        at, value, read, steps = waiting.pop()
        code, yes, no, k = rows[at]
        steps += 1
        if code == RETURN:
            walked.add(len(read), steps)
        elif code == LOAD:
            if k >= FIRST_ARGUMENT:
                read |= {(k - FIRST_ARGUMENT) // 8}  # both words of a pointer are one argument
                value = None
            else:
                value = {0: number, 4: arch}[k]
            waiting.append((at + 1, value, read, steps))
        elif code == AND:
            waiting.append((at + 1, None if value is None else value & k, read, steps))
        elif code == JUMP:
            waiting.append((at + 1 + k, value, read, steps))
        else:
            waiting.extend(
                (at + 1 + (yes if taken else no), value, read, steps)
                for taken in _branches(code, value, k)
            )
    return walked


def _compiled(place: Place, flow: str, arch: str) -> bytes:
    words = place.flowproof("compile", flow, "--target", f"linux-{arch}", "--emit", "bin")
    return subprocess.run(
        words, cwd=place.folder, env=place.environment, check=True, capture_output=True
    ).stdout


def rows(place: Place) -> list[Row]:
    """Return the row of each architecture, the worse of two flows."""
    flows = [
        str(place.write(name, document))
        for name, document in (
            ("size-12.flow.yaml", twelve()),
            ("size.flow.yaml", contained(["true"])),
        )
    ]
    out = []
    for arch, audit in ARCHES.items():
        total, none, one = 0, 0, 0
        for flow in flows:
            program = _compiled(place, flow, arch)
            total = max(total, len(program) // 8)
            for number in NUMBERS:
                longest = walk(program, audit, number).longest
                none, one = max(none, longest.get(0, 0)), max(one, longest.get(1, 0))
        out.append(
            Row(
                f"instructions, connect lane, {arch}: worst number, no argument read; one read; whole",
                "≤ 10; ≤ 20; ≤ 64",
                f"{none}; {one}; {total}",
                holds=none <= 10 and one <= 20 and total <= 64,
            )
        )
    return out
