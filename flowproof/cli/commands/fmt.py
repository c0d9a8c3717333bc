"""``flowproof fmt``: flows and packs in their canonical form, with their meaning proved unmoved."""

from __future__ import annotations

import contextlib
import os

from flowproof.cli.arguments import UsageError
from flowproof.cli.console import printable
from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode, worst
from flowproof.fmt.document import formatted, meaning_of
from flowproof.plain_files import read_plain
from flowproof.source import flow as flows
from flowproof.source import pack as packs
from flowproof.source.suite import load
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console

__all__ = ["run"]

_MODES = ("--check", "--diff", "--write")


class _Form(Value):
    """A file as it is and as it would be written."""

    path: str
    old: bytes
    new: bytes


def run(arguments: Arguments, console: Console) -> int:
    """Format every path; nothing is written before all of it is worked out."""
    mode = _mode(arguments)
    files: list[str] = []
    for path in arguments.words:
        found = _files_below(path) if os.path.isdir(path) else [path]
        if not found:
            console.complain(f"no flow and no pack in `{path}`", "they are files `*.flow.yaml`")
            return ExitCode.EVIDENCE
        files += [name for name in found if name not in files]
    if mode is None and len(files) > 1:
        raise UsageError(
            f"{len(files)} files do not go to standard output together",
            "add `--check`, `--diff` or `--write`",
        )
    report = Report()
    forms = [form for form in (_form(path, report) for path in files) if form is not None]
    console.diagnose(report.errors)
    codes = [ExitCode(DiagnosticsError(report.errors).exit)] if report.errors else []
    codes.append(_deliver(forms, mode, console))
    return worst(codes)


def _mode(arguments: Arguments) -> str | None:
    given = [mode for mode in _MODES if arguments.given(mode)]
    if len(given) > 1:
        raise UsageError(f"`{given[0]}` and `{given[1]}` exclude each other", "give one of them")
    return given[0] if given else None


def _files_below(folder: str) -> list[str]:
    """Return the flows and packs of a folder and its subfolders, hidden ones not, sorted by path."""
    found = []
    for parent, names, files in os.walk(folder):
        names[:] = [name for name in names if name[0] != "."]
        found += [
            os.path.join(parent, name)
            for name in files
            if name.endswith((flows.SUFFIX, packs.SUFFIX)) and name[0] != "."
        ]
    return sorted(found, key=lambda path: path.split(os.sep))


def _form(path: str, report: Report) -> _Form | None:
    """Return the forms of one file, or None where it, or a pack that it uses, has errors."""
    own = Report()
    suite = load(path, own)
    form = None
    if suite is not None and not own.errors:
        (loaded,) = suite.flows or suite.packs
        meaning = meaning_of(loaded, own)
        if meaning is not None and not own.errors:
            data = read_plain(path)
            form = _Form(path, data, formatted(loaded, data, meaning))
    for diagnostic in own:
        report.add(diagnostic)
    return form


def _deliver(forms: list[_Form], mode: str | None, console: Console) -> ExitCode:
    changed = [form for form in forms if form.new != form.old]
    match mode:
        case None:
            for form in forms:
                console.out_bytes(form.new)
            return ExitCode.OK
        case "--write":
            return _write(changed, console)
        case "--diff":
            for form in changed:
                console.out(_diff(form))
        case "--check":
            for form in changed:
                console.out(f"would format {printable(form.path)}")
    return ExitCode.NEGATIVE if changed else ExitCode.OK


def _diff(form: _Form) -> str:
    import difflib

    old, new = (
        data.decode("utf-8").removeprefix("\ufeff").splitlines(keepends=False)
        for data in (form.old, form.new)
    )
    names = (printable(form.path), f"{printable(form.path)} (formatted)")
    return "\n".join(map(printable, difflib.unified_diff(old, new, *names, lineterm="")))


def _write(forms: list[_Form], console: Console) -> ExitCode:
    for form in forms:
        try:
            _replace(os.path.realpath(form.path), form.new)
        except OSError as failure:
            console.complain(f"cannot write `{form.path}`: {failure.strerror}")
            return ExitCode.EVIDENCE
        console.out(f"formatted {printable(form.path)}")
    return ExitCode.OK


def _replace(path: str, content: bytes) -> None:
    """Write a file whole or not at all, with the mode, and where one may the owner, that it had."""
    had = os.stat(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            if os.name == "posix":
                if (had.st_uid, had.st_gid) != (os.geteuid(), os.getegid()):
                    _keep_owner(descriptor, had)
                os.fchmod(descriptor, had.st_mode & 0o7777)  # behind chown, which clears bits
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C too leaves nothing behind
        os.unlink(temporary)
        raise


def _keep_owner(descriptor: int, had: os.stat_result) -> None:
    with contextlib.suppress(PermissionError):  # only root gives files away
        os.fchown(descriptor, had.st_uid, had.st_gid)
