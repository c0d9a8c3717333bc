"""A network namespace of the tests' own, with the addresses of the cases on its loopback link.

Root makes it outright; anybody else makes it in a user namespace where those are permitted. Nothing in
it can reach anything outside: its only link is its loopback.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

from product import as_plain

__all__ = ["PLAIN", "ROOT", "Arrival", "Namespace"]

ROOT, PLAIN = "root", "plain"
"""The two identities of a run: with every capability (root, of the user namespace at least), and
without any (uid 65534 where root can become it)."""

READY_SECONDS = 15.0


class Arrival:
    """What reached one server: *times* connections or datagrams, *bytes* in all, the *first* of them."""

    def __init__(self, row: dict[str, object]) -> None:
        self.protocol = str(row["protocol"])
        self.to = str(row["to"])
        self.times = int(str(row["times"]))
        self.bytes = int(str(row["bytes"]))
        self.first = str(row["first"])

    def __repr__(self) -> str:
        return f"{self.protocol} {self.to} x{self.times} ({self.bytes} bytes {self.first!r})"


class Namespace:
    """A running namespace: the servers in it, and the way into it for commands."""

    def __init__(self, folder: Path) -> None:
        self._user = os.geteuid() != 0
        words = ["unshare", "--net", "--mount"]
        if self._user:
            words += ["--user", "--map-root-user"]
        servers = str(Path(__file__).with_name("servers.py"))
        self.folder = folder
        self._holder = subprocess.Popen(  # `unshare` becomes the servers: one process, one pid
            [*words, "--", sys.executable, servers, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._line(READY_SECONDS) != "ready":
            reason = self._end()
            raise OSError(f"no network namespace: {reason or 'the servers did not start'}")

    def _line(self, seconds: float) -> str:
        assert self._holder.stdout is not None
        ready, _, _ = select.select([self._holder.stdout], [], [], seconds)
        return self._holder.stdout.readline().strip() if ready else ""

    def _end(self) -> str:
        self._holder.kill()
        _, errors = self._holder.communicate()
        return errors.strip().rpartition("\n")[2]

    def close(self) -> None:
        """End the servers; the kernel takes the namespace down with the last process in it."""
        self._end()

    def _ask(self, command: str) -> list[Arrival]:
        assert self._holder.stdin is not None
        self._holder.stdin.write(command + "\n")
        self._holder.stdin.flush()
        line = self._line(READY_SECONDS)
        assert line, "the servers do not answer"
        return [Arrival(row) for row in json.loads(line)]

    def clear(self) -> None:
        """Forget what arrived so far."""
        assert self._ask("clear") == []

    def arrivals(self) -> list[Arrival]:
        """Return what arrived since `clear`; whatever was sent before this call is in it."""
        return self._ask("sync")

    def open_door(self, place: tuple[str, int] | str, behind: tuple[str, int] | str) -> None:
        """Let a server that listens *behind* be reached at *place*, and log who arrives there."""
        self._ask("door " + json.dumps([place, behind]))

    @property
    def outside_socket(self) -> str:
        """The path of a listening unix socket that no contained run holds."""
        return str(self.folder / "outside.sock")

    def inside(self, identity: str, words: list[str], folder: Path) -> list[str]:
        """Return the command line that runs *words* in the namespace as *identity*, in *folder*."""
        enter = ["nsenter", f"--target={self._holder.pid}", "--net", "--mount"]
        if self._user:
            enter += ["--user", "--preserve-credentials"]
        drop = as_plain() if identity == PLAIN else []
        # `env -C`: joining a mount namespace moves the working folder to its root
        return [*enter, "--", *drop, "env", "-C", str(folder), "--", *words]
