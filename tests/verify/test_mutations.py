"""A proof is worth what it catches: every small mutation of what is compiled, and none left open."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from authored import load_policy, policy
from mutations import JSON, Mutant, filter_mutants, program_mutants, table_mutants

from flowproof.addresses import LAST, parse_address
from flowproof.artifact import codec
from flowproof.ir.model import Policy
from flowproof.lower.backend import compile_policy
from flowproof.verify import bpf
from flowproof.verify.filters import Filtered, compare_filters
from flowproof.verify.found import Counterexample
from flowproof.verify.programs import compare_program
from flowproof.verify.prove import tables_of
from flowproof.verify.require import ARCH, IO_URING, NUMBERS, Requirement, required
from flowproof.verify.wfp import Attempt, classify

GOLDEN = Path(__file__).parents[1] / "golden"
DOCUMENTS = sorted(
    path for pattern in ("*/*.flow.yaml", "*/control.policy.yaml") for path in GOLDEN.glob(pattern)
)
SYMBOLIC = policy(
    {
        "api": "allow connect tcp to api.example.com:443, 10.0.0.0/24:80 except 10.0.0.9:80",
        "any": "observe connect to anything except api.example.com, unix:/run/y.sock",
        "off": "deny connect to ${UPSTREAM}, 10.0.0.7 except 10.0.0.7:81",
        "no-db": "never connect to 192.0.2.1, unix:/run/x.sock",
        "rest": "deny connect to anything else except ${UPSTREAM}, unix:@bus",
        "srv": "allow listen on anything:8080",
    }
)


def _golden(path: Path) -> Policy:
    return load_policy(str(path.parent), path.name)


def _programs() -> dict[str, tuple[JSON, Requirement]]:
    """Return each program of the goldens once, by the case that has it first."""
    found: dict[tuple[object, ...], tuple[str, JSON, Requirement]] = {}
    for path in DOCUMENTS:
        for arch in ("x86_64", "aarch64"):
            meant = _golden(path)
            held = codec.to_json(compile_policy(meant, f"linux-{arch}"))["program"]
            code = tuple((s["code"], s["jt"], s["jf"], s["k"]) for s in held["instructions"])
            name = f"{path.parent.name}-{arch}"
            found.setdefault((arch, *code), (name, held, required(meant, arch)))
    return {name: (held, wanted) for name, held, wanted in found.values()}


PROGRAMS = _programs()


def _answers(program: JSON) -> list[int]:
    """Return what the interpreter says at some calls: another opinion on what was proved equivalent."""
    code = [(s["code"], s["jt"], s["jf"], s["k"]) for s in program["instructions"]]
    native = NUMBERS[program["arch"]].values()
    words = (
        (0,) * 6,
        (2, 1, 6, 0, 1 << 32, 0),
        (10 | 1 << 32, 0x80002, 17, 0, 9, 0),
        (16, 3, 0, 0, 0, 0),
    )
    return [
        bpf.run(code, bpf.data(number, arch, arguments)).action
        for arch in (ARCH[program["arch"]], 0x40000003)
        for known in (*native, *IO_URING, 0x40000000, 0xFFFFFFFF, 0)
        for number in {max(known - 1, 0), known, known + 1 & 0xFFFFFFFF}
        for arguments in (*words, (3, 0, 4, 0, 0, 0), (3, 41, 57, 0, 0, 0))
    ]


def test_there_are_programs_of_each_shape() -> None:
    assert len(PROGRAMS) >= 6


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_mutation_of_an_instruction_is_decided(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program, wanted = PROGRAMS[name]
    assert compare_program(program, wanted)[1] is None
    answers = _answers(program)
    caught: Counter[str] = Counter()
    equivalent: Counter[str] = Counter()
    for kind, mutant in program_mutants(program):
        _, difference = compare_program(mutant, wanted)
        if difference is None:
            equivalent[kind] += 1
            assert _answers(mutant) == answers, f"{kind} is no equivalent"
        else:
            assert "not proved" not in difference.artifact, f"{kind} is left open: {difference}"
            caught[kind] += 1
    _print(capsys, name, caught, equivalent)
    assert sum(caught.values()) > 9 * sum(equivalent.values()) or len(program["instructions"]) < 3


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "path", [*DOCUMENTS, None], ids=lambda path: path.parent.name if path else "symbols"
)
def test_every_mutation_of_a_table_is_decided(
    path: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    meant = SYMBOLIC if path is None else _golden(path)
    artifact = codec.to_json(compile_policy(meant, "linux-x86_64"))
    assert not isinstance(tables_of(meant, artifact), Counterexample)
    caught, equivalent = _judged_tables(meant, table_mutants(artifact))
    _print(capsys, path.parent.name if path else "symbols", caught, equivalent)
    assert caught


def _judged_tables(meant: Policy, mutants: Iterable[Mutant]) -> tuple[Counter[str], Counter[str]]:
    """Judge tables alone, by way of the parts of the proof that are about them."""
    caught: Counter[str] = Counter()
    equivalent: Counter[str] = Counter()
    for kind, mutant in mutants:
        found = tables_of(meant, mutant)
        (caught if isinstance(found, Counterexample) else equivalent)[kind] += 1
    return caught, equivalent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.parent.name)
def test_every_mutation_of_a_filter_is_decided(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meant = _golden(path)
    artifact = codec.to_json(compile_policy(meant, "windows"))
    tables = tables_of(meant, artifact)
    assert not isinstance(tables, Counterexample)
    read, _, _ = tables

    def compared(mutant: JSON) -> Filtered:
        return compare_filters(meant, mutant, read)

    original = compared(artifact)
    assert original.difference is None
    attempts = _attempts(artifact["filters"], random.Random(path.parent.name))
    answers = [classify(artifact["filters"], attempt).permitted for attempt in attempts]
    caught: Counter[str] = Counter()
    equivalent: Counter[str] = Counter()
    for kind, mutant in filter_mutants(artifact):
        # in a cell that the target is stated not to carry, a mutation shows in what the artifact lists
        if compared(mutant).difference is not None:
            caught[kind] += 1
            continue
        equivalent[kind] += 1
        same = [classify(mutant["filters"], attempt).permitted for attempt in attempts]
        assert same == answers, f"{kind} is no equivalent"
    _print(capsys, f"{path.parent.name}, windows", caught, equivalent)
    assert caught


def _attempts(filters: JSON, rng: random.Random) -> list[Attempt]:
    """Return attempts at the ends of what the conditions ask for, and beside them: another opinion on what
    was proved equivalent, which knows neither lanes nor cells.
    """
    ports, places = {0, 1, 65535}, {(4, 1), (6, 2), (4, 0x7F000001), (6, 1), (6, 0xFFFF7F000001)}
    for one in filters["filters"]:
        for condition in one["conditions"]:
            value = condition["value"]
            if condition["field"].endswith("_PORT"):
                low, high = value if isinstance(value, list) else (value, value)
                ports.update(port for port in (low - 1, low, high, high + 1) if 0 <= port < 65536)
            elif condition["type"].endswith("ADDR_MASK"):
                base, _, prefix = value.partition("/")
                family, first = parse_address(base)  # type: ignore[misc]  # an address of an artifact
                last = first | ((1 << (32 if family == 4 else 128) - int(prefix)) - 1)
                near = (first - 1, first, last, last + 1)
                places.update((family, at) for at in near if 0 <= at <= LAST[family])
    found = []
    for layer in ("CONNECT", "LISTEN", "RECV_ACCEPT"):
        for family, place in places:
            name = f"ALE_AUTH_{layer}_V{family}"
            for protocol in (6,) if layer == "LISTEN" else (1, 6, 17, 47, 58):
                for port in (*ports, None):
                    remote = None if layer == "LISTEN" else (family, place)
                    local = None if remote is not None else (family, place) if place else None
                    out = port if layer == "CONNECT" else None
                    at = None if layer == "CONNECT" else port
                    found.append(Attempt(name, protocol, remote, out, local, at))
    return rng.sample(found, min(300, len(found)))


def _print(
    capsys: pytest.CaptureFixture[str], name: str, caught: Counter[str], equivalent: Counter[str]
) -> None:
    with capsys.disabled():
        print(
            f"\n{name}: {caught.total()} caught, {equivalent.total()} proved equivalent, none open"
        )
        for kind in sorted({*caught, *equivalent}):
            print(f"  {kind}: {caught[kind]} caught, {equivalent[kind]} equivalent")
