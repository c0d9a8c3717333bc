"""The ``flowproof`` command: version, dispatch, and a wrap that no failure of ours escapes.

A traceback must never read as a negative answer, so whatever is unexpected ends with 70. Each command
is imported only when it runs: start-up is most of what a small command costs.
"""

from __future__ import annotations

import os
import sys

from flowproof import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: the process's own) and return its exit code."""
    _open_standard_descriptors()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words in (["--version"], ["-V"]):
            return _version()
        return _command(words)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as bug:  # noqa: BLE001  the one place; told as a bug, never carried on
        from flowproof.cli.bug import report_bug

        return report_bug(bug)


def _open_standard_descriptors() -> None:
    """Put /dev/null on each of 0, 1 and 2 that is closed, for flowproof and for a command that it runs.

    A file that is opened later would get the number, and be read or written as a standard stream.
    `sys.stdout` stays None where it was closed: an answer that nobody can get is no answer.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != descriptor:
                os.dup2(nothing, descriptor)
                os.close(nothing)
            os.set_inheritable(descriptor, True)
    if sys.stderr is None:  # what the interpreter gives where 2 was closed
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)


def _version() -> int:
    problem = "it is closed"
    try:
        if sys.stdout is not None:
            sys.stdout.write(f"flowproof {__version__}\n")
            sys.stdout.flush()
            return 0
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as failure:
        _drop_output()
        problem = failure.strerror or "unknown error"
    sys.stderr.write(f"flowproof: error: cannot write the answer: {problem}\n")
    return 4


def _command(words: list[str]) -> int:
    from flowproof.cli.arguments import HelpWanted, UsageError, parse
    from flowproof.cli.commandline import COMMANDS, overview, usage
    from flowproof.cli.console import Console, OutputError

    console = Console()
    try:
        try:
            code = _run(parse(words, COMMANDS), console)
        except HelpWanted as wanted:
            console.out(usage(wanted.command) if wanted.command else overview())
            code = 0
        except UsageError as mistake:
            console.complain(str(mistake), mistake.help)
            code = 2
        console.flush()
    except OutputError as failure:  # an answer that nobody got is no answer
        _drop_output()
        console.complain(f"cannot write the answer: {failure}")
        return 4
    if console.closed:  # the reader had enough (`| head`); the answer stands
        _drop_output()
    return code


def _run(arguments: Arguments, console: Console) -> int:
    if arguments.command != "run":
        import gc

        # Short-lived, and nothing that they build is a cycle: a third of a large compile is collection.
        gc.disable()
    match arguments.command:
        case "check":
            from flowproof.cli.commands.check import run
        case "compile":
            from flowproof.cli.commands.compile import run
        case "verify":
            from flowproof.cli.commands.verify import run
        case "fmt":
            from flowproof.cli.commands.fmt import run
        case "explain":
            from flowproof.cli.commands.explain import run
        case "run":
            from flowproof.cli.commands.run import run
        case "audit":
            from flowproof.cli.commands.audit import run
        case "packs":
            from flowproof.cli.commands.packs import run
        case "schema":
            from flowproof.cli.commands.schema import run
        case "doctor":
            from flowproof.cli.commands.doctor import run
        case other:
            raise AssertionError(f"`{other}` is in the table of commands and has no module")
    return run(arguments, console)


def _interrupted() -> int:
    """End as the signal would have: a shell loop around flowproof then ends too."""
    import signal

    _drop_output()
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 3


def _drop_output() -> None:
    """Point standard output at nothing, because the interpreter flushes it once more at its end."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by a test, or closed
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
