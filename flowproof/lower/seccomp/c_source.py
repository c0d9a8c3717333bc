"""A program as C: an array of ``struct sock_filter`` to link the filter into another program."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from flowproof.artifact.model import Artifact

__all__ = ["c_source"]


def c_source(artifact: Artifact) -> str:
    """Return C that defines the program of *artifact* as ``flowproof_filter`` and ``flowproof_prog``.

    Notifications need a listener that decides them; without one the kernel answers ENOSYS.
    """
    program = artifact.program
    if program is None:
        raise ValueError(f"`{artifact.target}` has no program")
    return "\n".join((*_head(artifact), *_steps(artifact), *_tail())) + "\n"


def _head(artifact: Artifact) -> Iterator[str]:
    yield f"/* control {_comment(artifact.control)}, target {_comment(artifact.target)}"
    yield f" * meaning {_comment(artifact.digests.get('ir', 'no digest'))}"
    yield f" * {_comment(artifact.verification.partition(' (')[0])}"
    yield " * USER_NOTIF wants a listener that decides: without one those calls fail with ENOSYS. */"
    for line in _asked(artifact):
        yield f"/* {_comment(line)} */"
    yield "#include <linux/filter.h>"
    yield ""
    yield "static struct sock_filter flowproof_filter[] = {"


def _asked(artifact: Artifact) -> Iterator[str]:
    """Yield the rules behind each part of the program, which the instructions are for."""
    assert artifact.program is not None
    for name, rules in sorted(artifact.program.causes.items()):
        for at in rules:
            yield f"{name} for {artifact.rules[at].id}"


def _steps(artifact: Artifact) -> Iterator[str]:
    assert artifact.program is not None
    for at, step in enumerate(artifact.program.instructions):
        said = "; for ".join(part for part in (step.words, ", ".join(step.causes)) if part)
        fields = f"{{{step.code:#04x}, {step.jt}, {step.jf}, {step.k:#010x}}},"
        yield f"    {fields:<32} /* {at:04} {_comment(said)} */"


def _tail() -> Iterator[str]:
    yield "};"
    yield ""
    yield "static struct sock_fprog flowproof_prog = {"
    yield "    .len = sizeof(flowproof_filter) / sizeof(flowproof_filter[0]),"
    yield "    .filter = flowproof_filter,"
    yield "};"


def _comment(text: str) -> str:
    """Return *text* so that it neither ends its comment nor opens another."""
    return re.sub(r"\*/|/\*|\?\?", "..", text).replace("\n", " ").replace("\\", "/")
