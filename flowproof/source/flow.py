"""The flow document: ``*.flow.yaml`` from nodes to `Flow`."""

from __future__ import annotations

import os
import re

from flowproof.near import near_miss
from flowproof.source import keys, shapes
from flowproof.source.agent import read_agent
from flowproof.source.documents import Control, Flow, Step, Text, slug
from flowproof.source.nodes import Mapping, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Source, Span

    Node = Scalar | Sequence | Mapping

__all__ = ["SUFFIX", "read_flow"]

SUFFIX = ".flow.yaml"


def read_flow(source: Source, root: Node, path: str, sha256: str, report: Report) -> Flow | None:
    """Return the flow of a document, or None where nothing of it can be used.

    With errors in *report* the flow holds what could be read, so that the later stages find the rest.
    """
    found = keys.fields(root, keys.FLOW, "a flow", source.span(0), report)
    if found is None:
        return None
    name = shapes.string(found["name"][1], "`name`", report) if "name" in found else None
    if "app" in found:
        _app(found["app"][1], report)
    agent = None
    if "agent" in found:
        agent = read_agent(found["agent"][1], found["agent"][0].span, report)
    file_slug = slug(os.path.basename(path).removesuffix(SUFFIX))
    control = None
    if "control" in found:
        control = _control(*found["control"], file_slug, report)
    steps = _steps(found["steps"][1], report) if "steps" in found else ()
    asserts = [step.span for step in steps if step.kind != "prompt"]
    if agent is not None and agent.allow_egress_span is not None:
        asserts.append(agent.allow_egress_span)
    if "control" not in found and asserts and not shapes.ID.fullmatch(file_slug):
        _no_id(asserts[0], report)
        return None
    return Flow(
        source,
        path,
        name or Text("", source.span(0), (0,)),
        "agent",
        agent,
        control,
        steps,
        file_slug,
        sha256,
    )


def _no_id(span: Span, report: Report) -> None:
    report.error(
        "FP225",
        "the file's name gives no id for the control that this short form makes",
        span,
        "add `control:` with an `id:`",
    )


def _app(node: Node, report: Report) -> None:
    text = shapes.string(node, "`app`", report)
    if text is not None and text.value != "agent":
        near = near_miss(text.value, ("agent",))
        way = f"did you mean `{near}`?" if near else "the only app is `agent`"
        report.error("FP223", f"`{text.value}` is no app", text.span, way)


def _control(key: Scalar, node: Node, file_slug: str, report: Report) -> Control | None:
    found = keys.fields(node, keys.CONTROL, "`control`", key.span, report)
    if found is None:
        return None
    given = shapes.string(found["id"][1], "`id`", report) if "id" in found else None
    if given is not None:
        given = shapes.identifier(given, "a control", report)
    else:
        stand_in = file_slug if shapes.ID.fullmatch(file_slug) else "unnamed"
        given = Text(stand_in, key.span, (key.span.start,) * (len(stand_in) + 1))
    title, description = (
        shapes.string(found[name][1], f"`{name}`", report) if name in found else None
        for name in ("title", "description")
    )
    return Control(
        given,
        title,
        description,
        shapes.strings(found["uses"][1], "`uses`", report) if "uses" in found else (),
        shapes.sets(found["sets"][1], report) if "sets" in found else (),
        shapes.rules(found["rules"][1], report) if "rules" in found else (),
        node.span,
    )


def _steps(node: Node, report: Report) -> tuple[Step, ...]:
    if not isinstance(node, Sequence):
        if not getattr(node, "broken", False):
            report.error("FP222", "`steps` is a list", node.span, "as in `- assert_no_egress`")
        return ()
    found: dict[str, Step] = {}
    for item in node.items:
        for step in _step(item, report):
            if step.kind in found:
                first = found[step.kind].span
                report.error(
                    "FP226",
                    f"the step `{step.kind}` is given twice, first in line {first.line}",
                    step.span,
                    "take one of them away",
                    related=[(first, f"`{step.kind}` is given here")],
                )
            else:
                found[step.kind] = step
    return tuple(found.values())


def _step(item: Node, report: Report) -> list[Step]:
    if isinstance(item, Scalar):
        text = shapes.string(item, "a step", report)
        if text is None:
            return []
        if text.value in keys.STEPS and text.value != "prompt":
            return [Step(text.value, None, text.span)]
        if text.value == "prompt":
            report.error("FP226", "`prompt` has no text", text.span, "write `- prompt: …`")
        else:
            _unjudged(text.value, text.span, report)
        return []
    if isinstance(item, Sequence):
        report.error("FP222", "a step is a word or `prompt: …`, not a list", item.span)
        return []
    steps = []
    for key, value in item.entries:
        name = key.text.value
        if name == "prompt":
            text = shapes.string(value, "`prompt`", report)
            if text is not None:
                steps.append(Step("prompt", text, key.span))
        elif name in keys.STEPS:
            report.error("FP226", f"`{name}` takes no value", key.span, f"write `- {name}`")
        elif not key.broken:
            _unjudged(name, key.span, report)
    return steps


def _unjudged(name: str, span: Span, report: Report) -> None:
    near = near_miss(name, keys.STEPS)
    listed = ", ".join(f"`{step}`" for step in keys.STEPS)
    report.error(
        "FP226",
        f"`{_short(name)}` is no step, and would go unjudged",
        span,
        f"did you mean `{near}`?" if near else f"the steps are {listed}",
    )


def _short(word: str) -> str:
    return re.sub(r"\s+", " ", word if len(word) <= 40 else word[:40] + "…")
