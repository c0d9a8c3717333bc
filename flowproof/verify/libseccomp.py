"""A second opinion on the part of a program that looks at numbers only: libseccomp, through pyseccomp.

pyseccomp is imported here and nowhere else, and only when an opinion is asked for: importing it costs more
than a bare interpreter's start, and raises RuntimeError where libseccomp is not installed. What it is not
asked: arguments (libseccomp 2.5.4 compares 64 bits of an int), number -1 (it lets it pass), and calls that it
does not know.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

__all__ = ["available", "exported", "number"]

_EPERM = 1


def _module() -> ModuleType:
    import pyseccomp  # noqa: PLC0415  costs 25 ms, and may not be there

    module: ModuleType = pyseccomp
    return module


def available() -> bool:
    """Tell whether libseccomp is installed where pyseccomp finds it."""
    try:
        _module()
    except (ImportError, RuntimeError):
        return False
    return True


def _arch(name: str) -> int:
    arch = _module().Arch
    return int({"x86_64": arch.X86_64, "aarch64": arch.AARCH64}[name])


def number(arch: str, call: str) -> int | None:
    """Return the number of *call* on *arch*, or None where libseccomp has none for it."""
    found = int(_module().resolve_syscall(_arch(arch), call))
    return (
        found if found >= 0 else None
    )  # -1: unknown; less: a pseudo number of another architecture


def exported(arch: str, notified: Iterable[str], refused: Iterable[str]) -> bytes:
    """Return libseccomp's program for *arch*: *notified* calls go to a listener, *refused* ones fail with
    EPERM, all others are allowed, and so is nothing of another architecture.
    """
    module = _module()
    held = module.SyscallFilter(module.ALLOW)
    held.set_attr(module.Attr.ACT_BADARCH, module.ERRNO(_EPERM))
    native = int(module.system_arch())
    if _arch(arch) != native:
        held.add_arch(_arch(arch))
        held.remove_arch(native)
    for call in notified:
        held.add_rule(module.NOTIFY, call)
    for call in refused:
        held.add_rule(module.ERRNO(_EPERM), call)
    descriptor = os.memfd_create("flowproof-libseccomp")
    with os.fdopen(descriptor, "rb+", buffering=0) as file:  # export_bpf wants a real descriptor
        held.export_bpf(file)
        file.seek(0)
        return file.read()
