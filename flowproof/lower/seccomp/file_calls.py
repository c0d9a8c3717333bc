"""The calls by which files are deleted, renamed, truncated and written, and which of them a plan traps."""

from __future__ import annotations

from flowproof.lower.seccomp.assemble import Step
from flowproof.lower.seccomp.bpf import JSET, LOAD
from flowproof.lower.seccomp.numbers import (
    O_ACCMODE,
    O_CREAT,
    O_TRUNC,
    SECCOMP_DATA_ARGS,
    SYSCALLS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.lower.seccomp.plan import Plan

__all__ = ["AMOUNTS_TO", "FLAGS", "file_leaves", "file_steps", "file_traps"]

_REMOVING = ("unlink", "unlinkat", "rmdir")
_RENAMING = ("rename", "renameat", "renameat2")
_TRUNCATING = ("truncate", "ftruncate", "creat")
_MAKING = ("link", "linkat", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat")
FLAGS = {"open": 1, "openat": 2, "open_by_handle_at": 2}
"""Calls that open a file, and which argument their flags are; those of openat2 are in memory."""

AMOUNTS_TO: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_REMOVING, ("delete", "write")),
    **dict.fromkeys(_RENAMING, ("delete", "rename", "write")),
    **dict.fromkeys((*_TRUNCATING, *FLAGS, "openat2"), ("truncate", "write")),
    **dict.fromkeys(_MAKING, ("write",)),
}
"""Call → the operations that one of it may amount to: each of them is a write as well."""

_ALLOW, _DECIDE = "allow", "decide"


def file_traps(plan: Plan, arch: str) -> dict[str, tuple[str, ...]]:
    """Return the calls of *arch* that some rule about files needs to see, with the operations asked for."""
    asked = dict(plan.files)
    found: dict[str, tuple[str, ...]] = {}
    for call, operations in AMOUNTS_TO.items():
        asking = tuple(operation for operation in operations if operation in asked)
        if asking and call in SYSCALLS[arch]:
            found[call] = asking
    return found


def file_leaves(traps: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return where each trapped call leads: to the supervisor, or to a look at its flags first."""
    return {call: (_label(call) or _DECIDE, causes) for call, causes in traps.items()}


def _label(call: str) -> str | None:
    return f"flags in args[{FLAGS[call]}]" if call in FLAGS else None


def file_steps(plan: Plan, traps: Mapping[str, tuple[str, ...]]) -> Iterator[Step]:
    """Yield the look at the flags: an open that neither writes, nor makes, nor truncates goes on."""
    asked = dict(plan.files)
    asking = tuple(operation for operation in ("truncate", "write") if operation in asked)
    mask, words = O_TRUNC, "O_TRUNC"
    if "write" in asked:
        mask, words = mask | O_ACCMODE | O_CREAT, "writing, O_CREAT or O_TRUNC"
    for argument in sorted(set(FLAGS.values())):
        calls = [call for call, held in FLAGS.items() if held == argument and call in traps]
        if calls:
            offset = SECCOMP_DATA_ARGS + 8 * argument  # an int argument: the low word
            label = _label(calls[0])
            yield Step(LOAD, offset, f"{' and '.join(calls)}: flags", asking, label=label)
            yield Step(JSET, mask, f"{words}?", asking, then=_DECIDE, otherwise=_ALLOW)
