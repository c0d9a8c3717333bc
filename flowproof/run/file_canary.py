"""The known call about a file before each command: proof that such calls are seen, with their paths.

It names what cannot be there, in a file system in which nothing can be made: whatever becomes of the call,
nothing is changed.
"""

from __future__ import annotations

import os

from flowproof.values import Value

__all__ = ["FileCanary", "file_canary"]

_NOWHERE = "/proc/flowproof-canary"


class FileCanary(Value):
    """A call to try, and the *operation* as which it has to be seen."""

    call: str
    operation: str
    path: str = _NOWHERE

    @property
    def where(self) -> str:
        """What the attempt has to be told of, as `record.wire.ATTEMPT` has it."""
        return f"{self.path}\0{self.path}" if self.call == "rename" else self.path

    def attempt(self) -> int:
        """Try the call; return its errno, 0 for success."""
        try:
            match self.call:
                case "unlink":
                    os.unlink(self.path)
                case "rename":
                    os.rename(self.path, self.path)
                case _:
                    os.truncate(self.path, 0)
        except OSError as error:
            return error.errno or 0
        return 0

    def is_held(self, told: tuple[object, ...] | None, errno: int) -> bool:
        """Tell whether the call was seen as planned (*told*: `record.wire.CANARY`), and had no effect."""
        return (
            told is not None and told[1:] == (False, None, self.operation, self.where) and errno > 0
        )


def file_canary(trapped: frozenset[str]) -> FileCanary | None:
    """Return the call that would show that calls about files are seen; None where none is trapped."""
    if trapped & {"unlink", "unlinkat"}:
        return FileCanary("unlink", "delete")
    if trapped & {"rename", "renameat", "renameat2"}:
        return FileCanary("rename", "rename")
    return FileCanary("truncate", "truncate") if "truncate" in trapped else None
