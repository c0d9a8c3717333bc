"""Goldens: one folder for each case, a flow or pack and what every target makes of it.

A case holds its own document, and `ir.json`, `linux-x86_64.txt`, `linux-aarch64.txt` and `windows.txt`. Bytes
follow from the listings: the program is in them instruction by instruction, and a filter's key is a digest
over all of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from authored import load_policy

from flowproof.artifact import codec
from flowproof.cli.proving import Proven, finished
from flowproof.ir.serialize import to_json
from flowproof.lower.backend import TARGETS, compile_policy
from flowproof.lower.seccomp import listing as seccomp_listing
from flowproof.lower.wfp import listing as wfp_listing

GOLDEN = Path(__file__).parents[1] / "golden"
DOCUMENTS = sorted(
    path for pattern in ("*/*.flow.yaml", "*/control.policy.yaml") for path in GOLDEN.glob(pattern)
)
LISTINGS = {
    target: wfp_listing.listing if target == "windows" else seccomp_listing.listing
    for target in TARGETS
}


def _case(path: Path) -> str:
    return path.parent.name


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", DOCUMENTS, ids=_case)
def test_listing_is_the_golden_one(
    path: Path, target: str, golden: Callable[[Path, str], None]
) -> None:
    policy = load_policy(str(path.parent), path.name)
    proved = finished(policy, compile_policy(policy, target))
    assert isinstance(proved, Proven), str(proved)
    artifact = codec.loads(proved.data)
    golden(path.parent / f"{target}.txt", LISTINGS[target](artifact))


@pytest.mark.parametrize("path", DOCUMENTS, ids=_case)
def test_ir_is_the_golden_one(path: Path, golden: Callable[[Path, str], None]) -> None:
    policy = load_policy(str(path.parent), path.name)
    golden(path.parent / "ir.json", json.dumps(to_json(policy), indent=1, sort_keys=True) + "\n")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", DOCUMENTS, ids=_case)
def test_bytes_are_the_same_twice(path: Path, target: str) -> None:
    policies = [load_policy(str(path.parent), path.name) for _ in range(2)]
    first, second = (codec.dumps(compile_policy(policy, target)) for policy in policies)
    assert first == second


def test_no_stray_goldens() -> None:
    produced = {"ir.json", *(f"{target}.txt" for target in TARGETS)}
    cases = {path.parent for path in DOCUMENTS}
    for path in GOLDEN.rglob("*"):
        if path.is_file():
            case = next((case for case in cases if case in path.parents), None)
            assert case is not None, f"{path.relative_to(GOLDEN)} belongs to no case"
            assert path.name in produced or path.name.endswith((".flow.yaml", ".policy.yaml")), (
                f"no test produces {path.relative_to(GOLDEN)}"
            )
    for case in cases:
        documents = [path for path in DOCUMENTS if path.parent == case]
        assert len(documents) == 1, f"{case.name} has {len(documents)} documents to compile"


def test_there_are_cases() -> None:
    assert len(DOCUMENTS) >= 8
