"""Where a path leads, on a real file system and on one that refuses: the caller is this process itself."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterator
from errno import EACCES, EBADF, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM
from pathlib import Path

import pytest

from flowproof.record.codes import Code
from flowproof.run.caller import AnswerError, Caller, FaultError, StaleError
from flowproof.run.decide import Decisions
from flowproof.run.journal import Journal
from flowproof.run.kernel import Kernel
from flowproof.run.paths import locate, opened, read_path
from flowproof.run.tree import Tree

CWD = -100


class Here(Kernel):
    """A kernel whose notifications are always valid, and which refuses what a test stages."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = False
        self.refused: dict[str, int] = {}

    def id_valid(self, listener: int, notification: bytearray) -> None:
        if self.gone:
            raise OSError(ENOENT, "gone")

    def _stage(self, name: str) -> None:
        if name in self.refused:
            raise OSError(self.refused[name], name)

    def folder_of(self, tid: int, descriptor: int | None) -> str:
        self._stage("folder_of")
        return super().folder_of(tid, descriptor)

    def root_of(self, tid: int) -> str:
        self._stage("root_of")
        return super().root_of(tid)

    def same_mounts(self, tid: int) -> bool:
        self._stage("same_mounts")
        return super().same_mounts(tid)

    def same_users(self, tid: int) -> bool:
        self._stage("same_users")
        return "users" not in self.refused

    def located(self, path: str) -> str:
        self._stage("located")
        return super().located(path)

    def link_of(self, path: str) -> str:
        self._stage("link_of")
        return super().link_of(path)

    def entry(self, path: str) -> os.stat_result:
        self._stage("entry")
        return super().entry(path)

    def target(self, path: str) -> os.stat_result:
        self._stage("target")
        return super().target(path)

    def is_procfs(self, folder: str) -> bool:
        self._stage("is_procfs")
        return super().is_procfs(folder)

    def open_file(self, tid: int, descriptor: int) -> os.stat_result:
        self._stage("open_file")
        return super().open_file(tid, descriptor)


class Jailed(Here):
    """The same with the caller's root in another folder."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = str(root)

    def root_of(self, tid: int) -> str:
        return self.root


def caller(kernel: Kernel) -> Caller:
    made = Caller(
        kernel, -1, Decisions.__new__(Decisions), Journal(lambda _at: 0), Tree(kernel, os.getpid())
    )
    made.tid = os.getpid()
    return made


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").write_text("x", encoding="ascii")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "way").symlink_to("sub")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("sub/missing")
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path.resolve()
    os.chdir(before)


def found(path: str, *, follow: bool = False, kernel: Kernel | None = None) -> str | None:
    return locate(caller(kernel or Here()), CWD, os.fsencode(path), follow=follow).path


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize(
    ("path", "follow", "expected"),
    [
        ("file", False, "file"),
        ("./sub/../file", False, "file"),
        ("way/new", False, "sub/new"),
        ("link", False, "link"),
        ("link", True, "file"),
        ("nowhere", True, "sub/missing"),
        ("missing/deep/../x", False, "missing/x"),
        ("sub/", False, "sub"),
        ("way/", False, "sub"),
        ("way/..", False, ""),
        (".", False, ""),
        ("file/below", False, "file/below"),
        ("loop", False, "loop"),
        ("/proc/self/cwd/file", False, "file"),
        ("/proc/thread-self/cwd/link", True, "file"),
    ],
)
def test_a_path_leads_where_the_kernel_would_go(
    top: Path, path: str, follow: bool, expected: str, quick: bool
) -> None:
    kernel = Here()
    if not quick:
        kernel.refused["located"] = EIO  # step by step it comes to the same
    wanted = f"{top}/{expected}".rstrip("/")
    assert found(path, follow=follow, kernel=kernel) == wanted
    if "/proc" not in path:
        assert found(f"{top}/{path}", follow=follow, kernel=kernel) == wanted


def test_a_folder_by_its_descriptor(top: Path) -> None:
    folder = os.open(top / "sub", os.O_RDONLY)
    try:
        place = locate(caller(Here()), folder, b"x", follow=False)
    finally:
        os.close(folder)
    assert (place.path, place.mode) == (f"{top}/sub/x", 0)


def test_an_inner_root_holds_absolute_paths_and_links(top: Path) -> None:
    (top / "sub" / "out").symlink_to("/file")
    (top / "sub" / "file").write_text("y", encoding="ascii")
    jailed = Jailed(top / "sub")
    assert found("/../file", kernel=jailed) == f"{top}/sub/file"
    assert found("/out", follow=True, kernel=jailed) == f"{top}/sub/file"


def test_a_root_of_openat2_is_the_folder(top: Path) -> None:
    folder = os.open(top / "sub", os.O_RDONLY)
    try:
        place = locate(caller(Here()), folder, b"/../x", follow=True, in_root=True)
    finally:
        os.close(folder)
    assert place.path == f"{top}/sub/x"


def test_what_has_no_path(top: Path) -> None:
    reading, writing = os.pipe()
    unnamed = os.memfd_create("unnamed")
    try:
        assert found(f"/proc/self/fd/{writing}", follow=True) is None
        assert found(f"/proc/self/fd/{unnamed}", follow=True) is None
        assert opened(caller(Here()), writing).path is None
        assert opened(caller(Here()), unnamed).path is None
    finally:
        for descriptor in (reading, writing, unnamed):
            os.close(descriptor)


def test_a_file_by_its_descriptor(top: Path) -> None:
    with (top / "file").open("r+b") as file:
        place = opened(caller(Here()), file.fileno())
        assert (place.path, place.is_kind(stat.S_IFREG)) == (f"{top}/file", True)
        (top / "other").hardlink_to(top / "file")
        (top / "file").unlink()
        assert (
            opened(caller(Here()), file.fileno()).path == f"{top}/file"
        )  # it has another name yet
        (top / "other").unlink()
        assert opened(caller(Here()), file.fileno()).path is None


def test_a_file_that_is_called_deleted_is_not(top: Path) -> None:
    (top / "sub (deleted)").mkdir()
    folder = os.open(top / "sub (deleted)", os.O_RDONLY)
    try:
        place = locate(caller(Here()), folder, b"x", follow=False)
        assert place.path == f"{top}/sub (deleted)/x"
        (top / "sub (deleted)").rmdir()
        assert locate(caller(Here()), folder, b"x", follow=False).mode == 0
    finally:
        os.close(folder)


@pytest.mark.parametrize(
    ("descriptor", "path", "errno"),
    [(CWD, b"", ENOENT), (987_654, b"x", EBADF), (-5, b"x", EBADF), (CWD, b"loop/", ELOOP)],
)
def test_what_cannot_have_an_effect_is_answered_as_bare(
    top: Path, descriptor: int, path: bytes, errno: int
) -> None:
    with pytest.raises(AnswerError) as answered:
        locate(caller(Here()), descriptor, path, follow=False)
    assert answered.value.errno == errno


def test_a_descriptor_that_is_no_folder(top: Path) -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(AnswerError) as answered:
            locate(caller(Here()), reading, b"x", follow=False)
    finally:
        os.close(reading)
        os.close(writing)
    assert answered.value.errno == ENOTDIR


@pytest.mark.parametrize("step", ["same_mounts", "root_of", "folder_of"])
def test_a_step_that_is_refused_is_a_fault(top: Path, step: str) -> None:
    kernel = Here()
    kernel.refused[step] = EACCES
    with pytest.raises(FaultError) as fault:
        found("./file", kernel=kernel)
    assert fault.value.code is Code.CHILD_PROCESS
    kernel.gone = True
    with pytest.raises(StaleError):
        found("./file", kernel=kernel)


def test_another_mount_namespace_is_a_fault(top: Path) -> None:
    kernel = Here()
    kernel._mounts = "mnt:[1]"
    with pytest.raises(FaultError) as fault:
        found("file", kernel=kernel)
    assert fault.value.code is Code.PATH


@pytest.mark.parametrize("step", ["link_of", "entry"])
def test_a_folder_that_may_not_be_searched_is_taken_as_written(top: Path, step: str) -> None:
    """The caller may do no more; where it might, in a user namespace of its own, nobody can tell."""
    kernel = Here()
    kernel.refused = {"located": EACCES, step: EACCES}
    place = locate(caller(kernel), CWD, b"way/x", follow=False)
    assert place.path == (f"{top}/way/x" if step == "link_of" else f"{top}/sub/x")
    assert place.mode == (0 if step == "link_of" else None)
    kernel.refused["users"] = EACCES
    with pytest.raises(FaultError) as fault:
        locate(caller(kernel), CWD, b"way/x", follow=False)
    assert fault.value.code is Code.PATH


@pytest.mark.parametrize("errno", [EIO, EPERM])
@pytest.mark.parametrize("step", ["link_of", "entry"])
def test_a_disk_that_fails_is_a_fault(top: Path, step: str, errno: int) -> None:
    """And so is a call that an outer filter refuses, which says nothing about the path."""
    kernel = Here()
    kernel.refused = {"located": errno, step: errno}
    with pytest.raises(FaultError) as fault:
        found("way/x", kernel=kernel)
    assert fault.value.code is Code.PATH


@pytest.mark.parametrize("step", ["is_procfs", "target"])
def test_a_link_of_proc_that_cannot_be_looked_at_is_a_fault(top: Path, step: str) -> None:
    kernel = Here()
    with (top / "file").open("r+b") as file:
        (top / "file").unlink()
        path = f"/proc/self/fd/{file.fileno()}"
        assert found(path, follow=True, kernel=kernel) is None
        kernel.refused[step] = EPERM
        with pytest.raises(FaultError) as fault:
            found(path, follow=True, kernel=kernel)
    assert fault.value.code is Code.PATH


def test_an_open_file_that_cannot_be_looked_at_is_a_fault(top: Path) -> None:
    kernel = Here()
    kernel.refused["open_file"] = EACCES
    with (top / "file").open("r+b") as file, pytest.raises(FaultError) as fault:
        opened(caller(kernel), file.fileno())
    assert fault.value.code is Code.CHILD_PROCESS


# --- memory


def address_of(held: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(held)


@pytest.mark.parametrize("length", [0, 1, 200, 4095])
def test_a_path_is_read_to_its_end(length: int) -> None:
    held = ctypes.create_string_buffer(b"a" * length)
    assert read_path(caller(Here()), address_of(held)) == b"a" * length


def test_a_path_without_an_end_is_too_long() -> None:
    held = ctypes.create_string_buffer(b"a" * 5000)
    with pytest.raises(AnswerError) as answered:
        read_path(caller(Here()), address_of(held))
    assert answered.value.errno == ENAMETOOLONG


def test_a_path_that_cannot_be_read_is_a_fault() -> None:
    with pytest.raises(FaultError) as fault:
        read_path(caller(Here()), 8)
    assert fault.value.code is Code.CHILD_MEMORY
