"""The steps of the self-test, and what a host that lacks one of them can still show."""

from __future__ import annotations

from flowproof.record.codes import Code
from flowproof.values import Value

__all__ = [
    "CODE_OF_STEP",
    "LOWERING",
    "NOT_REACHED",
    "STEPS",
    "Capability",
    "cost",
    "first_failure",
    "lacking",
]

STEPS: tuple[tuple[str, Code, str], ...] = (
    ("platform", Code.PLATFORM, "Linux on x86_64 or aarch64"),
    ("seccomp.sizes", Code.NOTIFICATION_SIZES, "the kernel's structures are the known ones"),
    ("process.subreaper", Code.SUBREAPER, "orphans fall to the supervisor"),
    ("process.no-new-privs", Code.NO_NEW_PRIVS, "the command gains no privilege by an exec"),
    ("process.domain", Code.DOMAIN, "the command is shut in, where this kernel has Landlock"),
    ("seccomp.install", Code.FILTER_INSTALL, "a filter with a listener, waits killable"),
    ("process.dumpable", Code.UNDUMPABLE, "the supervisor shuts its memory"),
    ("process.children", Code.CHILD_PROCESS, "/proc tells children and threads"),
    ("pidfd.open", Code.CHILD_HANDLE, "a handle of the child"),
    ("pidfd.listener", Code.CHILD_DESCRIPTOR, "the listener is fetched without a trapped call"),
    ("seccomp.receive", Code.LISTENER_RECEIVE, "a trapped call arrives"),
    ("process.memory", Code.CHILD_MEMORY, "its address is read"),
    ("pidfd.descriptor", Code.CHILD_DESCRIPTOR, "its socket is fetched"),
    ("seccomp.valid", Code.LISTENER_VALID, "the caller is still there"),
    ("seccomp.refuse", Code.LISTENER_SEND, "the call is refused and the program sees it"),
    ("seccomp.perform", Code.PERFORM, "a call is performed for the program"),
    ("descriptors.close", Code.DESCRIPTORS, "inherited descriptors are shut"),
    ("reach.processes", Code.NOT_SECLUDED, "the command traces, reads and robs no process outside"),
    ("reach.signals", Code.NOT_SHIELDED, "the command signals no process outside"),
    ("process.end", Code.ENDING, "what outlives the command is ended"),
)
"""Each step: its id, the code of its failure, and what it shows."""

LOWERING = frozenset({Code.NOT_SECLUDED, Code.NOT_SHIELDED})
"""Codes of steps whose failure lowers the tier: the command runs all the same, and less is claimed."""

CODE_OF_STEP = {step: code for step, code, _ in STEPS}


NOT_REACHED = "not reached"
"""What is said of a step behind one that failed."""

_COST = {
    Code.NOT_SECLUDED: (
        "a command runs, and no verdict but a fail is given: what goes out through another process is neither"
        " refused nor seen"
    ),
    Code.NOT_SHIELDED: (
        "a command runs, `deny` and `never` are capability-error, `expect no` and `observe` are judged"
    ),
}
_COST_OF_ALL = "no command is started, and every verdict is capability-error"


class Capability(Value):
    """One step of the self-test: *code* is None where it is *ok*; *detail* says what was seen."""

    id: str
    ok: bool
    code: Code | None
    detail: str


def first_failure(capabilities: tuple[Capability, ...]) -> Capability | None:
    """Return the step that decides that no command is started here, or None."""
    return next((row for row in capabilities if not row.ok and row.code not in LOWERING), None)


def lacking(capabilities: tuple[Capability, ...]) -> frozenset[Code]:
    """Return the codes that lower the tier of what runs here."""
    return LOWERING.intersection(row.code for row in capabilities if not row.ok and row.code)


def cost(capability: Capability) -> str | None:
    """Return what the lack of a step costs; None where it is there, or was not reached."""
    if capability.ok or capability.detail == NOT_REACHED:
        return None
    return _COST.get(capability.code, _COST_OF_ALL) if capability.code else _COST_OF_ALL
