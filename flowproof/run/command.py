"""The command of a run: what is executed, where, in which environment, and how it should end."""

from __future__ import annotations

import hashlib
import os

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROMPT", "Command"]

PROMPT = "FLOWPROOF_PROMPT"
"""The variable that hands a flow's prompt to its command."""


class Command(Value):
    """A command to run under a control.

    *env* is added to flowproof's own environment. *cwd* is the start folder, *timeout* in seconds, None
    for none. *expect_exit* None is any exit code. *prompt* reaches the command as `PROMPT`. *name* is what
    reports call it; the arguments are never written.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    timeout: float | None
    expect_exit: int | None
    prompt: str | None
    name: str

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("a command has at least the name of a program")
        if any("\0" in argument for argument in (*self.argv, self.cwd)):
            raise ValueError("a command holds no NUL")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError("a timeout is longer than nothing")

    @property
    def folder(self) -> str:
        """The start folder, absolute and with links resolved."""
        return os.path.realpath(self.cwd)

    @property
    def sha256(self) -> str:
        """The digest that stands for the arguments in a record."""
        joined = b"\0".join(os.fsencode(argument) for argument in self.argv)
        return "sha256:" + hashlib.sha256(joined).hexdigest()

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the command's whole environment; a prompt from outside is not the flow's."""
        found = {**environ, **self.env, "PWD": self.folder}
        found.pop(PROMPT, None)
        if self.prompt is not None:
            found[PROMPT] = self.prompt
        return found

    def programs(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the paths to try, in order: as execvp(3) does with the command's own PATH."""
        program = self.argv[0]
        if "/" in program:
            return (program,)
        path = environment.get("PATH", os.defpath)
        return tuple(os.path.join(folder or ".", program) for folder in path.split(os.pathsep))
