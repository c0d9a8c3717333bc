"""The vectors that hold the simulator of Windows: what the platform's own documents say, case by case.

They were written by hand from the documents that each names in ``source``; `wfp_vectors/sources.json` says
where those are. A field of a vector that is missing is that of its file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flowproof.addresses import parse_address
from flowproof.verify.found import Unmodelled
from flowproof.verify.wfp import Ambiguous, Sublayer, arbitrate
from flowproof.verify.wfp_conditions import FLAGS, Attempt, matches
from flowproof.verify.wfp_flows import Flows, Operation
from flowproof.verify.wfp_install import refusals

JSON = dict[str, Any]
FOLDER = Path(__file__).with_name("wfp_vectors")
SOURCES: dict[str, str] = json.loads((FOLDER / "sources.json").read_text())


def _loaded() -> dict[str, JSON]:
    found = {}
    for path in sorted(FOLDER.glob("*.json")):
        if path.name == "sources.json":
            continue
        held = json.loads(path.read_text())
        common = {name: value for name, value in held.items() if name != "vectors"}
        for vector in held["vectors"]:
            found[f"{path.stem}: {vector['name']}"] = {**common, **vector}
    return found


VECTORS = _loaded()
"""Each vector with what its file says for all, by file and name."""


def problem(vector: JSON) -> str | None:
    """Return how the simulator differs from *vector*; None where it does not."""
    if "steps" in vector:
        return _steps(vector)
    wanted = vector["expect"]
    try:
        has = _answer(vector)
    except Ambiguous as ambiguous:
        has = {"ambiguous": str(ambiguous)}
    except Unmodelled as unmodelled:
        has = {"unmodelled": str(unmodelled)}
    for name, value in wanted.items():
        said = has.get(name, "nothing of the kind")
        partly = isinstance(value, str) and isinstance(said, str) and value in said
        if said != value and not partly:
            return f"{name} is {value}, and the simulator says {has}"
    return None


def _answer(vector: JSON) -> JSON:
    if "filter" in vector:
        return {"refused": _refused(vector)}
    attempt = _attempt(vector)
    if "conditions" in vector:
        conditions = [_condition(row) for row in vector["conditions"]]
        bindings = {
            (kind, name): tuple(address for text in to if (address := parse_address(text)))
            for key, to in vector.get("bindings", {}).items()
            for kind, name in [key.split(" ")]
        }
        return {"matches": matches(conditions, attempt, bindings)}
    ruling = arbitrate(_sublayers(vector["sublayers"], vector["layer"]), attempt)
    decision = "permit" if ruling.permitted else "block"
    return {"decision": decision, "by": list(ruling.rules), "veto": ruling.veto}


def _refused(vector: JSON) -> str | None:
    taken = _filter(
        {"name": "first", "key": "taken", "action": "block", "weight": 0}, vector["layer"]
    )
    odd = {"name": "second", "key": "free", "action": "block", "weight": 0, **vector["filter"]}
    found = dict(refusals([taken, _filter(odd, vector["layer"])]))
    assert 0 not in found, found
    return found.get(1)


def _sublayers(listed: list[JSON], layer: str) -> list[Sublayer]:
    return [
        Sublayer(one["weight"], [_filter(held, layer) for held in one["filters"]]) for one in listed
    ]


def _filter(written: JSON, layer: str) -> JSON:
    conditions = [_condition(row) for row in written.get("conditions", ())]
    return {"layer": layer, "rules": [written["name"]], **written, "conditions": conditions}


def _condition(row: list[Any]) -> JSON:
    return dict(zip(("field", "match", "type", "value"), row, strict=True))


def _attempt(vector: JSON) -> Attempt:
    event = dict(vector["event"])
    flags = sum(FLAGS[name] for name in event.pop("flags", ()))
    for name in ("remote", "local"):
        if name in event:
            event[name] = parse_address(event[name])
    sids = tuple(event.pop("sids", ("@run",)))
    return Attempt(vector["layer"], flags=flags, sids=sids, **event)


def _steps(vector: JSON) -> str | None:
    flows = Flows(_sublayers([{"weight": 1, "filters": vector["filters"]}], ""))
    for at, written in enumerate(vector["steps"]):
        step = dict(written)
        does = step.pop("do")
        if does == "change":
            changed = _sublayers([{"weight": 1, "filters": step["filters"]}], "")
            flows.change(changed, step["at_layer"])
            continue
        wanted = {
            name: step.pop(name)
            for name in ("passes", "layer", "reauthorized", "unmodelled")
            if name in step
        }
        if "remote" in step:
            step["remote"] = parse_address(step["remote"])
        try:
            passage = flows.perform(Operation(does, **step))
        except Unmodelled as unmodelled:
            if wanted.get("unmodelled", "—") not in str(unmodelled):
                return f"step {at}: {unmodelled}"
            continue
        has = {name: getattr(passage, name, None) for name in passage.__fields__}
        if {"reauthorized": False, **wanted} != has:
            return f"step {at}: {wanted}, and the simulator says {has}"
    return None
