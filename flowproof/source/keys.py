"""The keys of each kind of mapping, and what is said about one that is none of them."""

from __future__ import annotations

from flowproof.near import near_miss
from flowproof.source.nodes import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report, Span
    from flowproof.source.nodes import Scalar, Sequence

__all__ = ["AGENT", "CONTROL", "FLOW", "PACK", "STEPS", "fields"]

# key → whether it is required (language.md, Two kinds of file)
FLOW = {"name": True, "app": False, "agent": False, "control": False, "steps": False}
AGENT = {
    "command": True,
    "cwd": False,
    "env": False,
    "timeout": False,
    "expect_exit": False,
    "allow_egress": False,
}
CONTROL = {
    "id": True,
    "title": False,
    "description": False,
    "uses": False,
    "sets": False,
    "rules": False,
}
# a pack that gives no `policy:` is read under its file's name; what that means is decided later
PACK = {
    "policy": False,
    "title": False,
    "description": False,
    "uses": False,
    "sets": False,
    "rules": False,
}
STEPS = ("prompt", "assert_no_egress", "assert_no_file_delete")

_PLACES = (("agent", AGENT), ("control", CONTROL))


def fields(
    node: Scalar | Sequence | Mapping,
    keys: dict[str, bool],
    what: str,
    missing_at: Span,
    report: Report,
) -> dict[str, tuple[Scalar, Scalar | Sequence | Mapping]] | None:
    """Return the entries of a mapping by key, the unknown ones left out; None where it is no mapping.

    *what* names the mapping in messages; a required key that is missing is reported at *missing_at*.
    """
    if not isinstance(node, Mapping):
        if not getattr(node, "broken", False):
            expected = ", ".join(f"`{key}:`" for key, required in keys.items() if required)
            report.error(
                "FP222",
                f"{what} is a mapping of keys to values",
                node.span,
                f"it needs {expected}" if expected else f"as in `{next(iter(keys))}: …`",
            )
        return None
    found: dict[str, tuple[Scalar, Scalar | Sequence | Mapping]] = {}
    meant: set[str] = set()
    for key, value in node.entries:
        name = key.text.value
        if name in keys:
            found[name] = (key, value)
        elif not key.broken:
            meant |= {near_miss(name, keys) or ""}
            _unknown(name, key, keys, what, report)
    for name, required in keys.items():
        if required and name not in found and name not in meant:
            report.error("FP221", f"{what} has no `{name}`", missing_at, f"add `{name}: …`")
    return found


def _unknown(name: str, key: Scalar, keys: dict[str, bool], what: str, report: Report) -> None:
    if name in STEPS:
        way = f"it is a step and belongs under `steps`, as `- {name}{': …' * (name == 'prompt')}`"
    else:
        owners = [owner for owner, table in _PLACES if table is not keys and name in table]
        places = [f"under `{owner}`" for owner in owners]
        if keys is PACK:
            # a pack holds no agent and no control: what is theirs is a flow's
            places = [f"{place} of a flow" for place in places]
        elif not places and name in FLOW:
            places = ["at the top of the file"]
        near = near_miss(name, keys)
        if places:  # a key that is one elsewhere is no misspelling: `steps` is not nearly `sets`
            way = f"it belongs {' or '.join(places)}"
        elif near:
            way = f"did you mean `{near}`?"
        elif name == "policy":
            way = "`policy:` names a pack, in a file `*.policy.yaml`"
        else:
            way = "the keys are " + ", ".join(f"`{each}`" for each in keys)
    report.error("FP220", f"{what} has no key `{name}`", key.span, way)
