"""Runs ``flowproof WORDS…`` and writes to IMPORTS each module that is loaded once the command runs, and where.

A program may write the files of its user, and those of flowproof and Python can be among them.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

WHERE = {"who": ""}


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "import" and WHERE["who"]:
        file = os.open(os.environ["IMPORTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, f"{WHERE['who']}: {arguments[0]}\n".encode())
        os.close(file)


def _from(who: str, owner: type, name: str) -> None:
    """Watch in this process from the call of a method on."""
    real = getattr(owner, name)

    def method(*arguments: object) -> object:
        WHERE["who"] = who
        return real(*arguments)

    setattr(owner, name, method)


def main(recorder: ModuleType, contain: ModuleType) -> int:
    """Run, watched."""
    from flowproof.cli.main import main as flowproof  # noqa: PLC0415  as the command line does

    sys.addaudithook(_watch)
    _from("recorder", recorder._Run, "_listen")
    _from("supervisor", contain._Containment, "_watch")
    code = flowproof(sys.argv[1:])
    if os.environ.get("IMPORT_LAST"):
        import colorsys  # noqa: F401, PLC0415  the red case: nobody else needs it
    return code


if __name__ == "__main__":
    from flowproof.run import contain, recorder

    sys.exit(main(recorder, contain))
