"""The way from a policy to an artifact, by target; each backend is imported only when it is asked for."""

from __future__ import annotations

from flowproof.lower.fidelity import STOPPING, FidelityClass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.artifact.model import Artifact, Fidelity
    from flowproof.ir.model import Policy

__all__ = ["TARGETS", "FidelityClass", "compile_policy", "refusals"]

TARGETS = ("linux-x86_64", "linux-aarch64", "windows")
"""What a policy can be compiled for."""


def compile_policy(
    policy: Policy, target: str, *, hosts: Mapping[str, tuple[str, ...]] | None = None
) -> Artifact:
    """Return the artifact of *policy* for *target*: the same bytes on every machine and every day.

    *hosts* (name → addresses as text) binds names now instead of when a run starts. Raises
    `DiagnosticsError` (exit 3) where it binds a name to nothing or to an address that no name may have,
    and `ValueError` for a target that is none. What the target does not carry is in
    `Artifact.fidelity`; `refusals` tells what of it stops a compile.
    """
    if target not in TARGETS:
        raise ValueError(f"no target `{target}`: there are {', '.join(TARGETS)}")
    bound = policy
    used: dict[str, tuple[str, ...]] = {}
    if hosts is not None:
        from flowproof.lower.hosts import bound as bind  # noqa: PLC0415  when it is asked for

        bound, used = bind(policy, hosts)
    if target == "windows":
        from flowproof.lower.wfp.compile import compile_windows  # noqa: PLC0415  as above

        return compile_windows(policy, target, bound=bound, hosts=used)
    from flowproof.lower.seccomp.compile import compile_linux  # noqa: PLC0415  as above

    return compile_linux(policy, target, bound=bound, hosts=used)


def refusals(artifact: Artifact) -> tuple[Fidelity, ...]:
    """Return what *artifact* does not carry as it was asked for: a compile ends with 3 for it."""
    stopping = {fidelity.value for fidelity in STOPPING}
    return tuple(row for row in artifact.fidelity if {row.refusing, row.counting} & stopping)
