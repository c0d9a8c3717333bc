"""What an artifact says of itself that is not so, where a proof of what it does would not notice."""

from __future__ import annotations

import json
import re

from flowproof.cli.proving import with_cache
from flowproof.diagnostics import DiagnosticsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from flowproof.artifact.model import Artifact, Program, Rule
    from flowproof.ir.model import Policy

__all__ = ["misstated"]

_PLACE = re.compile(r" \([^()]*:\d+:\d+\)$")
"""Where a reason ends with the place of its rule: the file may have another path."""


def misstated(policy: Policy, artifact: Artifact) -> Iterator[str]:
    """Yield what the artifact says of itself that is not so: digests, fidelity, hosts, and what a reader is
    shown without anything being decided by it.
    """
    from flowproof.lower.backend import TARGETS, compile_policy

    if artifact.target not in TARGETS:
        yield f"target: there is no `{artifact.target}`"
        return
    try:
        own = compile_policy(policy, artifact.target, hosts=artifact.hosts or None)
    except DiagnosticsError as refused:
        yield from (f"hosts: {error.message}" for error in refused.diagnostics)
        return
    for name in sorted({*artifact.hosts} - {*own.hosts}):
        yield f"hosts: `{name}` is bound, and the policy does not name it"
    # a file may be named by another path where it was compiled: its content is what counts
    named = ("ir", "grammar")
    for name in named:
        if artifact.digests.get(name) != own.digests[name]:
            yield f"digests.{name}: {artifact.digests.get(name)}, and it is {own.digests[name]}"
    has, wants = (
        sorted(digest for name, digest in one.digests.items() if name not in named)
        for one in (artifact, own)
    )
    if has != wants:
        yield f"digests of files: {', '.join(has) or 'none'}, and they are {', '.join(wants)}"
    for row, other in zip(artifact.fidelity, own.fidelity, strict=False):
        if (row.subject, row.refusing, row.counting) != (
            other.subject,
            other.refusing,
            other.counting,
        ):
            yield (
                f"fidelity of {row.subject}: refusing {row.refusing}, counting {row.counting}; it is"
                f" {other.subject}: refusing {other.refusing}, counting {other.counting}"
            )
            break
    if len(artifact.fidelity) != len(own.fidelity):
        yield f"fidelity: {len(artifact.fidelity)} rows, and there are {len(own.fidelity)}"
    yield from _differences(artifact, own)
    yield from _reasons(artifact, own)
    yield from _places(artifact, own)
    yield from _program(artifact, with_cache(own))
    yield from _filters(artifact, own)


def _differences(artifact: Artifact, own: Artifact) -> Iterator[str]:
    """Yield the first difference that *artifact* leaves out, and the first that it adds."""
    for held, other, what in (
        (own.differences, artifact.differences, "is left out"),
        (artifact.differences, own.differences, "is none"),
    ):
        left = [one for one in held if one not in other]
        if left or len(set(held)) < len(held):
            one = (left or list(held))[0]
            yield (
                f"differences: {one.subject} {one.kind}, {one.where} {one.cells[0]}"
                f" ({one.policy}; {one.target}) {what if left else 'stands twice'}"
            )


def _reasons(artifact: Artifact, own: Artifact) -> Iterator[str]:
    """Yield the first reason of a fidelity that is another."""
    for row, other in zip(artifact.fidelity, own.fidelity, strict=False):
        said, is_said = (_PLACE.sub("", one.reason or "") for one in (row, other))
        if row.subject == other.subject and said != is_said:
            yield f"fidelity of {row.subject}: `{said}`; it is `{is_said}`"
            return


def _places(artifact: Artifact, own: Artifact) -> Iterator[str]:
    """Yield the first rule that is said to stand elsewhere; a file may have another path."""
    for rule, other in zip(artifact.rules, own.rules, strict=False):
        said, stands = (_written(one) for one in (rule, other))
        if rule.id == other.id and said != stands:
            yield f"rules: {rule.id} is said to be written at {said}, and it is at {stands}"
            return


def _written(rule: Rule) -> str:
    if rule.origin is None:
        return "no place"
    pack = f" of pack {rule.origin.pack}" if rule.origin.pack else ""
    return f"line {rule.origin.line}, column {rule.origin.column}{pack}"


def _program(artifact: Artifact, own: Artifact) -> Iterator[str]:
    """Yield what is said otherwise of the very program that the policy compiles to."""
    given, is_so = artifact.program, own.program
    if given is None or is_so is None or _code(given) != _code(is_so):
        return  # another program that means the same: the proof has looked at it
    if given.cached != is_so.cached:
        yield f"program.cached: {list(given.cached)}, and it is {list(is_so.cached)}"
    if given.causes != is_so.causes:
        yield "program.causes: other rules than those that ask for each part"
    for at, (step, other) in enumerate(zip(given.instructions, is_so.instructions, strict=True)):
        if step != other:
            yield f"program.instructions: {at} is said to be `{step.words}`, and it is `{other.words}`"
            return


def _code(program: Program) -> list[tuple[int, int, int, int]]:
    return [(step.code, step.jt, step.jf, step.k) for step in program.instructions]


def _filters(artifact: Artifact, own: Artifact) -> Iterator[str]:
    """Yield the first filter that is said to be for other rules; a key is a digest of what a filter does."""
    known = {one["key"]: one for one in _listed(own)}
    for one in _listed(artifact):
        other = known.get(one.get("key"))
        if other is not None and one != other:
            yield f"filters: {other['key']} is said to be for {one.get('rules')}; it is for {other['rules']}"
            return


def _listed(artifact: Artifact) -> list[dict[str, Any]]:
    """Return the filters of a set as plain data."""
    held = dict(artifact.filters or {}).get("filters", ())
    plain = json.loads(json.dumps(held))
    return [one for one in plain if isinstance(one, dict)] if isinstance(plain, list) else []
