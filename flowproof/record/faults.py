"""The lane of faults: what the mechanism could not tell. Never in one list with what a policy refused."""

from __future__ import annotations

from flowproof.record.codes import Code
from flowproof.record.model import FaultCount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flowproof.record.redact import Folders

    Line = dict[str, object]

__all__ = ["LANE_OF_CALL", "LISTED", "FaultTally", "recount_faults"]

LISTED = 100
"""Faults of one code and call that are listed; the rest is counted."""

FILE_CALLS = (
    "creat", "ftruncate", "link", "linkat", "mkdir", "mkdirat", "mknod", "mknodat", "open", "openat",
    "openat2", "open_by_handle_at", "rename", "renameat", "renameat2", "rmdir", "symlink", "symlinkat",
    "truncate", "unlink", "unlinkat",
)  # fmt: skip
"""The calls by which files are deleted, renamed, truncated and written."""

LANE_OF_CALL: dict[str, str] = {
    "connect": "connect",
    "sendto": "connect",
    "sendmsg": "connect",
    "sendmmsg": "connect",
    "listen": "connect",
    **dict.fromkeys(FILE_CALLS, "files"),
}
"""The lane that a fault in a trapped call belongs to; a fault of any other name is every lane's."""


class FaultTally:
    """The lines of the faults lane, in the making. *write* takes each line as it is due."""

    def __init__(self, folders: Folders, write: Callable[[Line], None]) -> None:
        self._folders = folders
        self._write = write
        self._counts: dict[tuple[Code, str], int] = {}
        self._number = 0

    def fault(self, ms: int, pid: int, code: Code, call: str, detail: str) -> None:
        """Take one fault, the fields of `wire.FAULT` behind its tag."""
        self._number += 1
        count = self._counts.get((code, call), 0) + 1
        self._counts[code, call] = count
        if count <= LISTED:
            self._write(
                {
                    "kind": "fault",
                    "n": self._number,
                    "ms": ms,
                    "pid": pid,
                    "code": code.value,
                    "lane": LANE_OF_CALL.get(call),
                    "call": call,
                    "detail": self._folders.text(detail),
                }
            )

    def counts(self) -> tuple[FaultCount, ...]:
        """Return how often each code was taken, by lane."""
        counts: dict[tuple[str, str | None], int] = {}
        for (code, call), count in self._counts.items():
            key = (code.value, LANE_OF_CALL.get(call))
            counts[key] = counts.get(key, 0) + count
        return _sorted(counts)

    def finish(self) -> None:
        """Write what was counted and not listed."""
        for (code, call), count in self._counts.items():
            if count > LISTED:
                self._write(
                    {
                        "kind": "more-faults",
                        "code": code.value,
                        "lane": LANE_OF_CALL.get(call),
                        "call": call,
                        "count": count - LISTED,
                    }
                )


def recount_faults(lines: Iterable[Mapping[str, object]]) -> tuple[FaultCount, ...]:
    """Return how often each code is in the lines, by lane; `ValueError` for a line that is none."""
    counts: dict[tuple[str, str | None], int] = {}
    for line in lines:
        kind, lane = line.get("kind"), line.get("lane")
        count = 1 if kind == "fault" else line.get("count")
        if kind not in ("fault", "more-faults") or type(count) is not int:
            raise ValueError(f"`{kind}` is no kind of fault")
        if lane is not None and not isinstance(lane, str):
            raise ValueError("the lane of a fault is no name")
        key = (Code(line.get("code")).value, lane)
        counts[key] = counts.get(key, 0) + count
    return _sorted(counts)


def _sorted(counts: Mapping[tuple[str, str | None], int]) -> tuple[FaultCount, ...]:
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    return tuple(FaultCount(Code(code), lane, count) for (code, lane), count in ordered)
