"""A real server outside of every contained run: started in the test's namespace, without capabilities."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from namespace import PLAIN, Namespace
from product import NOBODY, Product

__all__ = ["OutsideServer"]

READY_SECONDS = 60.0


class OutsideServer:
    """A server with a folder of its own, its log in ``folder/log``; `open_to` lets clients reach it."""

    def __init__(self, namespace: Namespace, product: Product) -> None:
        self.namespace, self.product = namespace, product
        self.folder = Path(tempfile.mkdtemp(prefix="flowproof-server-"))
        self.folder.chmod(0o755)
        self.own()
        self._process: subprocess.Popen[bytes] | None = None

    def own(self) -> None:
        """Give everything in the folder to the user that the server runs as."""
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def _words(self, words: list[str]) -> list[str]:
        return self.namespace.inside(PLAIN, words, self.folder)

    def prepare(self, *words: str) -> None:
        """Run a command to its end as the server's user, in its folder."""
        ran = subprocess.run(
            self._words(list(words)),
            env=self.product.environment(self.folder),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)

    def start(self, words: list[str], *, ready: str) -> None:
        """Start the server, and return once its log says that it is *ready*."""
        log = self.folder / "log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                self._words(words),
                env=self.product.environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        end = time.monotonic() + READY_SECONDS
        while ready not in log.read_text(encoding="utf-8", errors="replace"):
            if self._process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"`{words[0]}` did not start: {log.read_text(errors='replace')}")
            time.sleep(0.02)

    def open_to(self, places: list[tuple[str, int] | str], behind: tuple[str, int] | str) -> None:
        """Let the server, which listens *behind*, be reached at *places*, each with an arrival log."""
        for place in places:
            self.namespace.open_door(place, behind)

    def close(self) -> None:
        """End the server and remove its folder."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder)
