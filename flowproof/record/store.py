"""A run's folder on disk, written: ``.flowproof/runs/<run id>/`` with a record and a file per lane.

Nothing in it can be told from a finished record until it is one: the record says ``complete: false``, and
each lane is an unlinked file, out of reach of the run's processes, until they are dead. Older records in
the same folder are in their reach: a stated limit.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress

from flowproof.canonical import canonical, digest
from flowproof.record.codec import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.record.model import RunRecord

__all__ = [
    "RECORD",
    "RUNS",
    "LaneFile",
    "RunFolder",
    "UnwritableRecord",
    "is_run_id",
    "new_run_id",
    "record_bytes",
    "utc",
]

RUNS = os.path.join(".flowproof", "runs")
RECORD = "record.json"
_RUN_ID = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(\.[0-9]+)?Z-[0-9a-f]+\Z"
)
_BUFFER = 1 << 16
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)  # Windows has neither it nor files opened by folder
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC
_BY_FOLDER = os.open in os.supports_dir_fd


class UnwritableRecord(Exception):  # noqa: N818  what it says is what is wrong
    """The record cannot be written; the text says where and why."""


def _random(count: int) -> str:
    return os.urandom(count).hex()  # as `secrets` does, which costs 5 ms to import


def utc(seconds: float) -> str:
    """Return a time of day as records write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def new_run_id(seconds: float) -> str:
    """Return an id that sorts by start time and is no other run's: ``2026-11-29T13-40-00.120482Z-9f3c21``.

    The newest run of a control is the one that counts, so ids tell runs of one second apart.
    """
    whole, micros = divmod(int(seconds * 1_000_000), 1_000_000)
    begun = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(whole))
    return f"{begun}.{micros:06}Z-{_random(3)}"


def is_run_id(name: str) -> bool:
    """Say whether *name* is the id of a run, in the form that `new_run_id` gives them."""
    return _RUN_ID.match(name) is not None


def record_bytes(record: RunRecord) -> bytes:
    """Return the bytes of ``record.json``: canonical JSON that carries the digest of all the rest."""
    shape = to_json(record)
    return canonical({**shape, "digest": digest(canonical(shape))}) + b"\n"


class LaneFile:
    """A lane in the making: an unlinked file that gets its name once nobody can touch it.

    A write that fails is kept and raised by `link`: a full disk does not end the run, its record does.
    """

    def __init__(self, folder: int, name: str) -> None:
        self.name = f"{name}.jsonl"
        self.lines = 0
        self._folder = folder
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._failed: OSError | None = None
        self._linkable = True
        try:
            flags = os.O_TMPFILE | os.O_RDWR | _CLOEXEC
            self._file = os.open(".", flags, 0o600, dir_fd=folder)
        except (OSError, AttributeError):  # no O_TMPFILE on this filesystem or platform
            self._linkable = False
            self._file = _open_unlinked(folder, f".{self.name}.{_random(4)}")

    def write(self, line: Mapping[str, object]) -> None:
        """Append one line."""
        self._buffer += canonical(dict(line)) + b"\n"
        self.lines += 1
        if len(self._buffer) >= _BUFFER:
            self._flush()

    @property
    def sha256(self) -> str:
        """The digest of all lines so far."""
        whole = self._hash.copy()
        whole.update(self._buffer)
        return "sha256:" + whole.hexdigest()

    def link(self) -> None:
        """Put the file at its place, whole and durable; raise `OSError` where it is not."""
        self._flush()
        if self._failed is not None:
            raise self._failed
        os.fsync(self._file)
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self._folder)  # nobody's but an intruder's
        if self._linkable:
            with suppress(FileNotFoundError):  # /proc is not mounted: copy
                self._link_by_name()
                return
        self._copy()

    def close(self) -> None:
        """Let go of the file; without `link` nothing is left of it."""
        os.close(self._file)

    def _link_by_name(self) -> None:
        source = f"/proc/self/fd/{self._file}"  # linkat(2) with AT_SYMLINK_FOLLOW
        os.link(source, self.name, dst_dir_fd=self._folder, follow_symlinks=True)

    def _copy(self) -> None:
        temporary = f".{self.name}.{_random(4)}"
        file = os.open(temporary, _NEW, 0o600, dir_fd=self._folder)
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            while block := os.read(self._file, _BUFFER):
                _write_all(file, block)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temporary, self.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _flush(self) -> None:
        self._hash.update(self._buffer)
        if self._failed is None:
            try:
                _write_all(self._file, self._buffer)
            except OSError as error:
                self._failed = error
        self._buffer = bytearray()


def _open_unlinked(folder: int, name: str) -> int:
    """Return an unlinked file in *folder*; it has a name for a moment in which no run has begun."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC
    file = os.open(name, flags, 0o600, dir_fd=folder)
    os.unlink(name, dir_fd=folder)
    return file


def _write_whole(file: int, data: bytes) -> None:
    try:
        _write_all(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


class RunFolder:
    """The folder of one run, from before its command starts to its finished record."""

    def __init__(self, root: str, run_id: str) -> None:
        """Make ``<root>/.flowproof/runs/<run id>``; raise `UnwritableRecord` where that cannot be."""
        self.path = os.path.join(os.path.abspath(root), RUNS, run_id)
        self.lanes: dict[str, LaneFile] = {}
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            os.mkdir(self.path, 0o700)
            if _BY_FOLDER:
                self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC)
        except OSError as error:
            raise self._unwritable(error) from error

    def open_lane(self, name: str) -> LaneFile:
        """Return the file of a lane, open for writing and out of everybody's reach."""
        try:
            self.lanes[name] = LaneFile(self._folder, name)
        except OSError as error:
            raise self._unwritable(error) from error
        return self.lanes[name]

    def write(self, record: RunRecord) -> None:
        """Put *record* in the place of the one before, whole or not at all."""
        temporary = f".{RECORD}.{_random(4)}"
        try:
            if _BY_FOLDER:
                file = os.open(temporary, _NEW, 0o600, dir_fd=self._folder)
                _write_whole(file, record_bytes(record))
                os.rename(temporary, RECORD, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                os.fsync(self._folder)
            else:
                path = os.path.join(self.path, temporary)
                _write_whole(os.open(path, _NEW, 0o600), record_bytes(record))
                os.replace(path, os.path.join(self.path, RECORD))
        except OSError as error:
            raise self._unwritable(error) from error

    def link_lanes(self) -> None:
        """Put every lane at its place; the run's processes must be gone."""
        try:
            for lane in self.lanes.values():
                lane.link()
            os.fsync(self._folder)
        except OSError as error:
            raise self._unwritable(error) from error

    def check_place(self) -> None:
        """Raise `UnwritableRecord` where the folder is no longer at its path."""
        try:
            here, there = os.fstat(self._folder), os.stat(self.path, follow_symlinks=False)
        except OSError as error:
            raise self._unwritable(error) from error
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise UnwritableRecord(f"the record's folder `{self.path}` was replaced during the run")

    def close(self) -> None:
        """Let go of the folder and its lanes."""
        for lane in self.lanes.values():
            lane.close()
        if _BY_FOLDER:
            os.close(self._folder)

    def _unwritable(self, error: OSError) -> UnwritableRecord:
        why = (error.strerror or "unknown error").lower()
        return UnwritableRecord(f"the record in `{self.path}` cannot be written: {why}")
