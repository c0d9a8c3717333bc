"""``flowproof compile``: the filter of a target, to read, to keep or to enforce."""

from __future__ import annotations

import gc
import os

from flowproof.cli.arguments import UsageError
from flowproof.cli.carriage import report_fidelity
from flowproof.cli.inputs import read, stem_of
from flowproof.cli.lint import note_packs
from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode
from flowproof.lower.backend import TARGETS, compile_policy
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Artifact
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.cli.inputs import Input
    from flowproof.ir.model import Policy

__all__ = ["run"]


def run(arguments: Arguments, console: Console) -> int:
    """Compile a flow or a pack, or with ``-o`` each flow of a folder."""
    collects = gc.isenabled()
    gc.disable()  # a compile builds values by the hundred thousand, no circle among them, and ends
    try:
        return _compile(arguments, console)
    finally:
        if collects:
            gc.enable()


def _compile(arguments: Arguments, console: Console) -> int:
    (path,) = arguments.words
    target = arguments.get("--target")
    folder = arguments.get("-o")
    assert target is not None
    _check_options(arguments, path, target)
    tabled = target == "all" and folder is None  # the table has each class with its reason
    report = Report()
    hosts_file = arguments.get("--hosts")
    hosts = None
    if hosts_file is not None:
        from flowproof.cli.hosts_file import read_hosts

        hosts = read_hosts(hosts_file, report)
    given = read(path, report)
    compiled: list[_Compiled] = []
    if not report.errors:
        strict = arguments.get("--fidelity") != "report"
        for resolved in given.resolved:
            try:
                for one in TARGETS if target == "all" else (target,):
                    artifact = compile_policy(resolved.policy, one, hosts=hosts)
                    report_fidelity(
                        artifact, resolved.policy, report, strict=strict, stopping_only=tabled
                    )
                    compiled.append(_Compiled(resolved.file, resolved.policy, artifact))
            except DiagnosticsError as unbound:  # a name that `--hosts` does not bind, or may not
                for diagnostic in unbound.diagnostics:
                    report.add(diagnostic)
                continue
            note_packs(resolved.policy, report)
    console.diagnose(report)
    if tabled and compiled:
        # the table is the answer, whatever stops a compile of one of them
        console.out(_table(arguments, [made.artifact for made in compiled]))
    if report.errors:
        return DiagnosticsError(report.errors).exit
    if given.empty:
        console.complain(f"no flow in `{path}`", "a flow is a file `*.flow.yaml`")
        return ExitCode.EVIDENCE
    from flowproof.cli.proving import proved, with_cache

    for at, made in enumerate(compiled):
        if arguments.given("--no-verify"):
            compiled[at] = replace(made, artifact=with_cache(made.artifact))
        else:
            shown = proved(made.policy, made.artifact, console)
            if shown is None:
                return ExitCode.BUG
            compiled[at] = replace(made, artifact=shown.artifact, data=shown.data)
    if folder is not None:
        return _write_all(given, compiled, folder, console)
    if target == "all":
        return ExitCode.OK
    (only,) = compiled
    emit = arguments.get("--emit") or "listing"
    if emit == "bin":
        console.out_bytes(_program(only.artifact))
    else:
        console.out(_emitted(emit, only))
    return ExitCode.OK


class _Compiled(Value):
    """A policy of *file* compiled for one target; *data* are the bytes that were proved, where any were."""

    file: str
    policy: Policy
    artifact: Artifact
    data: bytes | None = None

    def as_bytes(self) -> bytes:
        from flowproof.artifact.codec import dumps

        return dumps(self.artifact) if self.data is None else self.data


def _check_options(arguments: Arguments, path: str, target: str) -> None:
    if arguments.get("-o") is None:
        if os.path.isdir(path):
            raise UsageError(
                f"`{path}` is a folder: each of its flows is compiled", "add `-o DIR`, or name one"
            )
    elif arguments.get("--emit") is not None:
        raise UsageError(
            "`--emit` chooses what goes to standard output, and `-o` writes all of it to files",
            "give one of them",
        )
    if target == "all" and arguments.get("--emit") not in (None, "listing", "json"):
        raise UsageError(
            "`--target all` answers with one table", "`--emit json` has it as data, `-o` all files"
        )
    if arguments.get("--emit") in ("bin", "c") and not target.startswith("linux-"):
        raise UsageError(
            f"`{target}` has no program of its own to emit", "`--emit json` has its filter set"
        )


def _table(arguments: Arguments, artifacts: list[Artifact]) -> str:
    from flowproof.cli.fidelity_table import as_data, as_text

    if arguments.get("--emit") == "json":
        from flowproof.cli.answers import json_text

        return json_text(as_data(artifacts))
    return as_text(artifacts)


def _emitted(kind: str, compiled: _Compiled) -> str:
    if kind == "ir":
        import json

        from flowproof.ir.serialize import to_json

        return json.dumps(to_json(compiled.policy), indent=2, sort_keys=True) + "\n"
    if kind == "json":
        return compiled.as_bytes().decode("utf-8")
    if kind == "c":
        from flowproof.lower.seccomp.c_source import c_source

        return c_source(compiled.artifact)
    return _listing(compiled.artifact)


def _listing(artifact: Artifact) -> str:
    if artifact.program is not None:
        from flowproof.lower.seccomp.listing import listing as seccomp_listing

        return seccomp_listing(artifact)
    from flowproof.lower.wfp.listing import listing as wfp_listing

    return wfp_listing(artifact)


def _program(artifact: Artifact) -> bytes:
    from flowproof.lower.seccomp.bpf import encode

    assert artifact.program is not None
    return encode(artifact.program.instructions)


def _write_all(given: Input, compiled: list[_Compiled], folder: str, console: Console) -> ExitCode:
    try:
        for one in compiled:
            artifact = one.artifact
            name = f"{stem_of(one.file)}.{artifact.target}"
            base = os.path.join(folder, _below(given, one.file), name)
            os.makedirs(os.path.dirname(base), exist_ok=True)
            _write(f"{base}.json", one.as_bytes())
            _write(f"{base}.txt", _listing(artifact).encode())
            if artifact.program is not None:
                _write(f"{base}.bpf", _program(artifact))
    except OSError as failure:
        console.complain(f"cannot write `{failure.filename}`: {failure.strerror}")
        return ExitCode.EVIDENCE
    return ExitCode.OK


def _below(given: Input, file: str) -> str:
    """Return the subfolder of a flow inside the folder that was given: two may have one name."""
    return os.path.relpath(os.path.dirname(file) or ".", given.path) if given.folder else ""


def _write(path: str, content: bytes) -> None:
    """Write a file whole or not at all: whoever reads it meanwhile has the old one."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
