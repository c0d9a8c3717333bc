"""``flowproof run``: a command under its control, judged, with a record left behind."""

from __future__ import annotations

import os
import platform
import sys

from flowproof.cli.answers import because_of, exit_data, json_text
from flowproof.cli.arguments import UsageError
from flowproof.cli.console import printable
from flowproof.cli.inputs import read
from flowproof.cli.limits import exit_of, seconds_of
from flowproof.diagnostics import DiagnosticsError, Report
from flowproof.exit_codes import ExitCode, worst
from flowproof.values import Value, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.artifact.model import Artifact
    from flowproof.cli.arguments import Arguments
    from flowproof.cli.console import Console
    from flowproof.ir.resolve import Resolved
    from flowproof.run.recorder import Command, Outcome

__all__ = ["run"]

_DEFAULT_TIMEOUT = 600.0  # seconds; what a flow has that does not say
_LINUX = {"x86_64": "linux-x86_64", "aarch64": "linux-aarch64"}


class _Planned(Value):
    """One run to come; *resolved* is None where an artifact was given. *proven*: it was proved here."""

    file: str
    artifact: Artifact
    resolved: Resolved | None = None
    proven: bool = False


def run(arguments: Arguments, console: Console) -> int:
    """Run a flow, each flow of a folder in turn, or a pack's rules around a given command."""
    (path,) = arguments.words
    _check_options(arguments, path)
    if path.endswith(".json"):
        return _run_artifact(path, arguments, console)
    report = Report()
    given = read(path, report)
    for resolved in given.resolved:
        _check_command(resolved, arguments, report)
    if report.errors:
        return _refuse(report, arguments, console)
    if given.empty:
        return _nothing(f"no flow in `{path}`", ExitCode.EVIDENCE, arguments, console)
    target = _target()
    if target is None:
        message = (
            f"PLATFORM: this is {platform.system()} on {platform.machine()}, and runs need Linux"
        )
        return _nothing(message, ExitCode.CAPABILITY, arguments, console)
    planned = [_plan(resolved, target, report) for resolved in given.resolved]
    if report.errors:
        return _refuse(report, arguments, console)
    console.diagnose(report)
    proofs = [_proved(plan, console) for plan in planned]
    shown = [plan for plan in proofs if plan is not None]
    if len(shown) < len(planned):
        return ExitCode.BUG
    return _run_all(shown, arguments, console)


def _run_artifact(path: str, arguments: Arguments, console: Console) -> int:
    """Run a command under an artifact, proved here or not: what it says of its proof is its word."""
    from flowproof.cli.given_artifact import Refused, take

    if not arguments.trailing:
        raise UsageError("an artifact has no command of its own", "give one behind `--`")
    unverified = arguments.given("--allow-unverified")
    found = take(path, arguments.get("--policy"), console, target=_target(), unverified=unverified)
    if isinstance(found, Refused):
        return _nothing(found.message, found.code, arguments, console, found.lines)
    console.err(f"flowproof: {printable(found.told)}")
    return _run_all([_Planned(path, found.artifact, None, found.proven)], arguments, console)


def _proved(plan: _Planned, console: Console) -> _Planned | None:
    from flowproof.cli.proving import proved

    assert plan.resolved is not None
    proven = proved(plan.resolved.policy, plan.artifact, console)
    return None if proven is None else replace(plan, artifact=proven.artifact, proven=True)


def _check_options(arguments: Arguments, path: str) -> None:
    seconds_of(arguments)
    exit_of(arguments)
    if arguments.get("--record") == "":
        raise UsageError("`--record` names no folder", "name one, or leave `--record` out")
    if arguments.get("--policy") is not None and not path.endswith(".json"):
        raise UsageError(
            "`--policy` is what an artifact is proved against",
            "leave it out: a flow is proved anyway",
        )
    if arguments.trailing is not None and not any(arguments.trailing[:1]):
        raise UsageError("no command behind `--`", "add it, or leave `--` out")
    if arguments.trailing and os.path.isdir(path):
        raise UsageError(
            f"`{path}` is a folder, and each of its flows has its own command",
            "name one flow, or leave the command out",
        )


def _check_command(resolved: Resolved, arguments: Arguments, report: Report) -> None:
    if arguments.trailing or (resolved.flow is not None and resolved.flow.agent is not None):
        return
    what = "flow has no `agent:`" if resolved.flow else "pack has no command"
    report.error(
        "FP601",
        f"nothing to run: the {what}",
        resolved.place,
        f"give one behind `--`: `flowproof run {resolved.file} -- COMMAND`",
    )


def _target() -> str | None:
    return _LINUX.get(platform.machine()) if sys.platform.startswith("linux") else None


def _plan(resolved: Resolved, target: str, report: Report) -> _Planned:
    from flowproof.cli.carriage import report_fidelity
    from flowproof.lower.backend import compile_policy

    artifact = compile_policy(resolved.policy, target)
    report_fidelity(artifact, resolved.policy, report, strict=True)
    return _Planned(resolved.file, artifact, resolved)


def _run_all(planned: list[_Planned], arguments: Arguments, console: Console) -> int:
    from flowproof.cli.outcome import as_data, show

    outcomes: list[tuple[_Planned, Outcome]] = []
    for plan in planned:
        outcome = _run_one(plan, arguments, console)
        outcomes.append((plan, outcome))
        if not arguments.json:
            show(plan.file, outcome, console, whole=arguments.given("--verbose"))
    code = worst(ExitCode(outcome.exit_code) for _, outcome in outcomes)
    if arguments.json:
        because = [reason for _, outcome in outcomes for reason in outcome.reasons]
        first = next(
            (o.reasons[0] for _, o in outcomes if o.exit_code == code and o.reasons),
            "every control held",
        )
        runs = [as_data(plan.file, plan.artifact.control, outcome) for plan, outcome in outcomes]
        console.out(json_text({"runs": runs, "exit": exit_data(code, because, first)}))
    elif len(outcomes) > 1:
        console.err(f"{len(outcomes)} runs, exit {code.value}")
    return code


def _run_one(plan: _Planned, arguments: Arguments, console: Console) -> Outcome:
    from flowproof.cli.progress import progress
    from flowproof.run.recorder import run as record

    root = arguments.get("--record") or _beside(plan.file)
    return record(
        plan.artifact,
        _command(plan, arguments),
        record_root=root,
        stdout_to_stderr=arguments.json,
        proven=plan.proven,
        progress=progress(plan.file, console),
    )


def _beside(file: str) -> str:
    """Return the folder that the record of *file* goes to: its own, and the current one for a pack that
    ships with flowproof, whose folder is nobody's to write to.
    """
    from flowproof.resources import data_path

    folder = os.path.dirname(file) or "."
    return "." if os.path.realpath(folder) == os.path.realpath(data_path("policies")) else folder


def _command(plan: _Planned, arguments: Arguments) -> Command:
    from flowproof.run.recorder import Command

    flow = plan.resolved.flow if plan.resolved else None
    agent = flow.agent if flow else None
    timeout = seconds_of(arguments)
    expected = exit_of(arguments)
    folder = os.path.dirname(os.path.abspath(plan.file))
    prompts = [step.text.value for step in flow.steps if step.text] if flow else []
    return Command(
        argv=arguments.trailing or (agent.command if agent else ()),
        cwd=os.path.join(folder, agent.cwd) if agent and agent.cwd is not None else os.getcwd(),
        env=dict(agent.env) if agent else {},
        timeout=timeout or (agent.timeout if agent else _DEFAULT_TIMEOUT),
        expect_exit=expected.code if expected else (agent.expect_exit if agent else 0),
        prompt="\n".join(prompts) if prompts else None,
        name=flow.name.value if flow else plan.artifact.control,
    )


def _refuse(report: Report, arguments: Arguments, console: Console) -> int:
    code = ExitCode(DiagnosticsError(report.errors).exit)
    console.diagnose(report)
    if arguments.json:
        from flowproof.cli.rendering import as_data

        diagnostics = [as_data(diagnostic) for diagnostic in report]
        because = because_of(report)
        console.out(
            json_text({"runs": [], "diagnostics": diagnostics, "exit": exit_data(code, because)})
        )
    return code


def _nothing(
    message: str,
    code: ExitCode,
    arguments: Arguments,
    console: Console,
    lines: tuple[str, ...] = (),
) -> int:
    console.complain(message)
    for line in lines:
        console.err(f"  {printable(line)}")
    if arguments.json:
        console.out(json_text({"runs": [], "exit": exit_data(code, [message, *lines])}))
    return code
