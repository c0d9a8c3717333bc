"""Calls about files through the supervisor: told, left to the kernel, and a fault where they cannot be told."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EACCES, EIO, EPERM
from pathlib import Path

import pytest
from authored import policy
from supervision import ARCH, FaultyKernel, Run, contained

from flowproof.lower.backend import compile_policy
from flowproof.record.codes import Code
from flowproof.run.bind import Bound, bind
from flowproof.run.calls import CALLS
from flowproof.run.calls.files import FILE_CALLS
from flowproof.run.file_canary import FileCanary, file_canary

ENOENT = 2


def watching(folder: Path, operations: str = "destroy, write") -> Bound:
    meant = policy({"r": f"expect no {operations} under {folder}"})
    found = bind(compile_policy(meant, f"linux-{ARCH}"), {}, cwd="/")
    assert isinstance(found, Bound)
    return found


def errno_of(work: Callable[[], object]) -> int:
    try:
        work()
    except OSError as error:
        return error.errno or 0
    return 0


def told(run: Run) -> list[tuple[object, ...]]:
    return [(event[4], event[6], event[12]) for event in run.attempts]


def test_a_call_is_told_and_the_kernel_performs_it(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "a").write_text("x", encoding="ascii")

    def work() -> object:
        return [errno_of(lambda: os.unlink(top / "a")), errno_of(lambda: os.unlink(top / "a"))]

    with contained(work, policy=watching(top)) as run:
        assert run.wait() == [0, ENOENT]
    assert told(run) == [
        ("delete", f"{top}/a", None),
        ("delete", f"{top}/a", "no effect: nothing is there"),
    ]
    assert run.counts() == (2, 2)
    assert run.faults == []


def test_what_no_rule_is_about_is_answered_and_not_told(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "in").mkdir()

    def work() -> object:
        return errno_of(lambda: os.mkdir(top / "beside"))

    with contained(work, policy=watching(top / "in")) as run:
        assert run.wait() == 0
    assert (told(run), run.counts()) == ([], (1, 1))


STAGED = [
    ("read_memory", EPERM, Code.CHILD_MEMORY),
    ("same_mounts", EACCES, Code.CHILD_PROCESS),
    ("root_of", EACCES, Code.CHILD_PROCESS),
    ("entry", EIO, Code.PATH),
    ("id_valid", EPERM, Code.LISTENER_VALID),
]


@pytest.mark.parametrize(("call", "errno", "code"), STAGED)
def test_a_step_that_is_refused_is_a_fault_and_the_call_does_not_go_on(
    tmp_path: Path, call: str, errno: int, code: Code
) -> None:
    top = tmp_path.resolve()
    (top / "a").write_text("x", encoding="ascii")

    def work() -> object:
        return errno_of(lambda: os.unlink(top / "a"))

    with contained(work, policy=watching(top), kernel=FaultyKernel({call: errno})) as run:
        assert run.wait() == EPERM
    assert (top / "a").exists()
    assert [(fault[3], fault[4]) for fault in run.faults] == [(code.value, "unlink")]
    assert run.attempts == []


def test_without_openat2_the_way_is_found_step_by_step(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "sub").mkdir()
    (top / "way").symlink_to("sub")

    def work() -> object:
        return errno_of(lambda: os.mkdir(top / "way" / "new"))

    kernel = FaultyKernel({"located": EPERM})
    with contained(work, policy=watching(top), kernel=kernel) as run:
        assert run.wait() == 0
    assert told(run) == [("write", f"{top}/sub/new", None)]
    assert run.faults == []


def test_no_handler_of_a_connect_can_leave_it_to_the_kernel() -> None:
    """What a handler of files returns is nothing, and that alone lets a call go on."""
    assert not CALLS.keys() & FILE_CALLS.keys()
    for handler in CALLS.values():
        assert handler.__annotations__["return"] in ("int", "int | Work"), handler
    for call, tells in FILE_CALLS.items():
        assert tells.__annotations__["return"] == "None", call


# --- the known call


@pytest.mark.parametrize(
    ("trapped", "call"),
    [
        ({"unlink", "rename", "truncate"}, "unlink"),
        ({"unlinkat"}, "unlink"),
        ({"rename", "renameat2"}, "rename"),
        ({"truncate", "open"}, "truncate"),
        ({"connect"}, None),
    ],
)
def test_the_known_call_is_one_that_is_trapped(trapped: set[str], call: str | None) -> None:
    planned = file_canary(frozenset(trapped))
    assert (None if planned is None else planned.call) == call


@pytest.mark.parametrize("operations", ["delete", "rename", "truncate", "write"])
def test_the_known_call_is_seen_as_planned_and_changes_nothing(
    tmp_path: Path, operations: str
) -> None:
    bound = watching(tmp_path, operations)
    assert bound.artifact.program is not None
    planned = file_canary(frozenset(call.call for call in bound.artifact.program.trapped))
    assert planned is not None

    asked, ask = os.pipe()

    def work() -> object:
        os.read(asked, 1)
        return planned.attempt()

    with contained(work, policy=bound) as run:
        assert run.supervisor is not None
        run.supervisor.canary_pid = run.pid
        os.write(ask, b"!")
        errno = run.wait()
    os.close(asked)
    os.close(ask)
    (canary,) = run.events
    assert planned.is_held(canary, errno)
    assert run.attempts == []


def test_a_known_call_that_was_seen_otherwise_is_not_held() -> None:
    planned = FileCanary("unlink", "delete")
    seen = ("canary", False, None, "delete", planned.path)
    assert planned.is_held(seen, ENOENT)
    assert not planned.is_held(None, ENOENT)
    assert not planned.is_held(seen, 0), "it had an effect"
    assert not planned.is_held(("canary", True, None, "delete", planned.path), ENOENT)
    assert not planned.is_held(("canary", False, None, "write", planned.path), ENOENT)
    assert not planned.is_held(("canary", False, None, "delete", "/elsewhere"), ENOENT)
