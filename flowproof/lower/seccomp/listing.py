"""The listing of a Linux artifact: what a reviewer reads and goldens pin. Bytes follow from it."""

from __future__ import annotations

from flowproof.lower import listing as common
from flowproof.lower.file_listing import file_lines
from flowproof.lower.seccomp.bpf import AND, JA, JEQ, JGE, JSET, LOAD, MNEMONICS, RETURN
from flowproof.lower.seccomp.file_calls import AMOUNTS_TO, FLAGS
from flowproof.lower.seccomp.numbers import SYSCALLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.model import Artifact, Instruction, Program

__all__ = ["listing"]

# as wide as what stands there: a jump far off moves its own line alone
_COLUMNS = (4, 4, 3, 3, 10, 28, 43)


def listing(artifact: Artifact) -> str:
    """Return *artifact* in words, the program instruction by instruction."""
    program = artifact.program
    if program is None:
        raise ValueError(f"`{artifact.target}` has no program")
    sections = [
        list(common.heading(artifact)),
        list(_summary(program)),
        list(common.rules(artifact)),
        list(common.fidelity(artifact)),
        list(common.symbols(artifact)),
        list(_program(program)),
        list(common.tables(artifact)) if "connect" in artifact.lanes else [],
        list(file_lines(artifact)),
        list(_cached(program)),
        list(common.places(artifact)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _summary(program: Program) -> Iterator[str]:
    yield "In words"
    if not program.trapped:
        yield "  no rule needs to see a system call: every call is allowed, nothing is recorded"
        return
    calls = [
        "sendto with an address" if call.call == "sendto" else call.call for call in program.trapped
    ]
    decided: list[str] = []
    seen: list[str] = []
    for words, call in zip(calls, program.trapped, strict=True):
        (seen if call.call in AMOUNTS_TO else decided).append(words)
    if decided:
        yield f"  decided by the supervisor: {', '.join(decided)}"
    if seen:
        opening = [call for call in seen if call in FLAGS]
        yield f"  seen by the supervisor and let through: {', '.join(seen)}"
        if opening:
            yield f"    {', '.join(opening)} where the flags ask for it"
    for special in dict.fromkeys(reply.special for reply in program.fixed):
        events = [reply.event for reply in program.fixed if reply.special == special]
        errno = next(reply.errno for reply in program.fixed if reply.special == special)
        what = _fixed(events, program.arch)
        how = f"{errno} by a fixed reply, recorded" if errno else "recorded and let through,"
        yield f"  {how} as {special}: {what}"
    for errno in dict.fromkeys(call.errno for call in program.refused):
        refused = [call.call for call in program.refused if call.errno == errno]
        yield f"  {errno} by the kernel, not counted: {', '.join(refused)}"
    if program.options:
        names = ", ".join(option.name for option in program.options)
        yield f"  EPERM by the kernel, not counted: setsockopt with {names}, which route by source"
    yield "  allowed without a look at any argument: every other call"


def _fixed(events: list[str], arch: str) -> str:
    if events == ["foreign-abi"]:
        x32 = " or with the x32 bit" if arch == "x86_64" else ""
        return f"calls of another architecture{x32}"
    return (
        f"{' and '.join(events)} but for INET and INET6 with TCP or UDP, UNIX, and NETLINK with"
        " NETLINK_ROUTE"
    )


def _cached(program: Program) -> Iterator[str]:
    if program.cached:
        yield "Answered by the kernel's action cache (Linux 5.11 and later), the program not run"
        names = {number: name for name, number in SYSCALLS[program.arch].items()}
        ranges = [f"{low}-{high}" if low < high else f"{low}" for low, high in program.cached]
        yield f"  numbers {', '.join(ranges)}"
        known = program.cached[-1][1] + 1
        held = {n for low, high in program.cached for n in range(low, high + 1)}
        left = [names.get(number, str(number)) for number in range(known) if number not in held]
        yield f"  the program runs for {', '.join(left) or 'none below them'}"


def _program(program: Program) -> Iterator[str]:
    yield (
        f"Program for {program.arch}, {len(program.instructions)} instructions; the last column is what each"
        " is for, and the rules say what they ask for"
    )
    heads = ("", "code", "jt", "jf", "k", "operation", "in words", "for")
    yield f"  {common.row(*heads, widths=_COLUMNS)}"
    for at, step in enumerate(program.instructions):
        cells = (
            f"{at:04}",
            f"{step.code:#04x}",
            str(step.jt),
            str(step.jf),
            f"{step.k:#010x}",
            _operation(at, step),
            step.words,
            ", ".join(step.causes),
        )
        yield f"  {common.row(*cells, widths=_COLUMNS)}"


def _operation(at: int, step: Instruction) -> str:
    """Return the instruction as an assembler would write it, jumps with the index they go to."""
    name = MNEMONICS[step.code]
    match step.code:
        case _ if step.code == LOAD:
            return f"{name} [{step.k}]"
        case _ if step.code == AND:
            return f"{name} {step.k:#x}"
        case _ if step.code == JA:
            return f"{name} {at + 1 + step.k:04}"
        case _ if step.code in (JEQ, JGE, JSET):
            return f"{name} {step.k:#x} ? {at + 1 + step.jt:04} : {at + 1 + step.jf:04}"
        case _ if step.code == RETURN:
            return f"{name} {step.k:#x}"
        case _:
            raise ValueError(f"{step.code:#x} is no code of this backend")
