"""flowproof where any user can run it: a copy of the checkout and an interpreter that others may start.

A checkout or a per-user Python under a home folder cannot be read by uid 65534, and the tests run the
product as that user.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

from missing import PATH

__all__ = ["NOBODY", "Product", "as_plain"]

NOBODY = 65534
CHECKOUT = Path(__file__).resolve().parents[3]
SHIPPED = ("flowproof", "grammar", "schema", "policies", "docs", "pyproject.toml")
NEEDED = ("PyYAML", "idna", "lark", "Jinja2", "MarkupSafe")
"""What `check`, `compile`, `run` and `audit` import; a copy is made where nobody else may read them."""


def as_plain() -> list[str]:
    """Return the words in front of a command that runs it without capabilities, as nobody if we may."""
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if os.geteuid() == 0:
        words += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return words


class Product:
    """A copy of the checkout at `root`, and the `python` that runs it for root and for nobody alike."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in SHIPPED:
            source = CHECKOUT / name
            if source.is_dir():
                shutil.copytree(
                    source, root / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
                )
            elif source.exists():
                shutil.copy(source, root / name)
        self.python = self._interpreter()
        self.path = [str(root), *self._libraries()]
        compileall.compile_dir(str(root), quiet=2)
        subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)

    def _runs(self, python: str, code: str) -> bool:
        # setpriv itself still starts what only root may: `env` in between starts it as the commands will be
        words = [*([*as_plain(), "env"] if os.geteuid() == 0 else []), python, "-c", code]
        ran = subprocess.run(words, cwd="/", capture_output=True, check=False)
        return ran.returncode == 0

    def _interpreter(self) -> str:
        for python in (sys.executable, "/usr/bin/python3.11", "/usr/bin/python3"):
            if self._runs(python, "import sys; assert sys.version_info >= (3, 11)"):
                return python
        raise RuntimeError("no Python 3.11 that other users can run")

    def _libraries(self) -> list[str]:
        if self._runs(self.python, "import yaml, idna, jinja2"):
            return []
        target = self.root / "libraries"
        for name in NEEDED:
            for file in importlib.metadata.files(name) or ():
                if ".." not in file.parts and file.suffix != ".pyc":
                    (target / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(str(file.locate()), target / file)
        return [str(target)]

    def flowproof(self, *words: str) -> list[str]:
        """Return the command line of ``flowproof WORDS``."""
        return [self.python, "-m", "flowproof", *words]

    def environment(self, home: Path) -> dict[str, str]:
        """Return a small environment to run it in."""
        return {
            "PATH": PATH,
            "HOME": str(home),
            "TMPDIR": str(home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(self.path),
        }
