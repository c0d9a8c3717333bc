"""The command line as a table: commands, their words and options, and the help made from it."""

from __future__ import annotations

from flowproof.cli.arguments import Command, Option

__all__ = ["COMMANDS", "TARGETS", "overview", "usage"]

TARGETS = ("linux-x86_64", "linux-aarch64", "windows")

_FORMAT = Option(
    "--format", "text|json", "how the answer is printed (default: text)", ("text", "json")
)

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(
            "check",
            "parse and validate flows, packs and folders of flows",
            "PATH…",
            1,
            None,
            (_FORMAT,),
            details="Ends with 0, with 1 for lint, or with 2 for input that does not hold.",
        ),
        Command(
            "compile",
            "turn a control into the filter of a target, and print it",
            "PATH",
            1,
            1,
            (
                Option(
                    "--target",
                    "|".join((*TARGETS, "all")),
                    "what to compile for; all: how well each target carries each rule",
                    (*TARGETS, "all"),
                    required=True,
                ),
                Option(
                    "--emit",
                    "listing|ir|json|bin|c",
                    "what goes to standard output (default: listing)",
                    ("listing", "ir", "json", "bin", "c"),
                ),
                Option("-o", "DIR", "write artifact, listing and program into DIR instead"),
                Option("--hosts", "FILE", "bind names as FILE, in the form of /etc/hosts, says"),
                Option(
                    "--fidelity",
                    "exact|report",
                    "report: go on where the target does not carry a rule (default: exact)",
                    ("exact", "report"),
                ),
                Option("--no-verify", "", "leave the proof out: the artifact says `not verified`"),
            ),
            details=(
                "A folder needs -o: each of its flows is compiled.\n"
                "What is compiled is proved to mean the policy, and says so."
            ),
        ),
        Command(
            "verify",
            "prove that an artifact from elsewhere means a policy, or say where it does not",
            "ARTIFACT POLICY",
            2,
            2,
            (_FORMAT,),
            details=(
                "ARTIFACT is what `compile --emit json` or `compile -o` wrote; POLICY a flow or a pack.\n"
                "Ends with 0 for a proof and with 1 for a difference, which is printed."
            ),
        ),
        Command(
            "fmt",
            "write flows and packs in their canonical form, comments kept and the meaning proved unmoved",
            "PATH…",
            1,
            None,
            (
                Option("--check", "", "say which files would change; 1 if any would"),
                Option("--diff", "", "print what would change; 1 if anything would"),
                Option("--write", "", "change the files in place"),
            ),
            details=(
                "Without an option one file's canonical form goes to standard output.\n"
                "A folder stands for all flows and packs in it. A file with errors is not touched."
            ),
        ),
        Command(
            "explain",
            "say which rule handles an event, or what a diagnostic code means",
            "PATH EVENT | CODE",
            1,
            None,  # an event without its quotes is several words
            (_FORMAT,),
            details=(
                "  flowproof explain bot.flow.yaml 'connect tcp 10.0.0.9:443'\n"
                "  flowproof explain FP301"
            ),
        ),
        Command(
            "run",
            "run a flow under its control, and judge it",
            "PATH",
            1,
            1,
            (
                Option("--timeout", "T", "end the whole run after T (`30s`, `10m`, `1h`)"),
                Option("--expect-exit", "N|any", "the exit code that the command should end with"),
                Option(
                    "--record",
                    "DIR",
                    "write the record below DIR/.flowproof/runs (default: the folder of PATH)",
                ),
                Option("--policy", "FILE", "prove an artifact against FILE before it runs"),
                Option("--allow-unverified", "", "run an artifact that says `not verified`"),
                Option(
                    "--verbose", "", "print a line for each rule, also for those that met nothing"
                ),
                _FORMAT,
            ),
            trailing=True,
            details=(
                "PATH is a flow, a folder of flows, or a pack with the command to run behind `--`.\n"
                "An artifact (`*.json`) takes a command too. What it says of its proof is its word, and no\n"
                "rule passes by that: `--policy FILE` proves it first."
            ),
        ),
        Command(
            "audit",
            "read the records of a folder, judge them anew, and print its control map",
            "DIR",
            1,
            1,
            (Option("--run", "ID", "judge this run, not the latest of each control"), _FORMAT),
        ),
        Command(
            "packs",
            "list the packs that ship with flowproof, or print one",
            "[NAME]",
            0,
            1,
            (
                Option(
                    "--path", "", "print where the pack's file, or the folder of all, lies instead"
                ),
            ),
            details=(
                "A flow takes a pack in by the path of its file; copy the folder beside your flows:\n"
                '  cp -r "$(flowproof packs --path)" packs'
            ),
        ),
        Command(
            "schema",
            "print a JSON Schema, for editors and for programs that read what flowproof writes",
            "NAME",
            1,
            1,
            (Option("--path", "", "print where the schema's file lies instead"),),
            details="NAME is one of flow, policy, ir, artifact, record, event, report, diagnostics.",
        ),
        Command(
            "doctor",
            "say what this host can enforce and observe, and why not",
            "",
            0,
            0,
            (_FORMAT,),
        ),
    )
}
"""Every command by its name, in the order of the help."""


def overview() -> str:
    """Return the help of flowproof as a whole."""
    width = max(map(len, COMMANDS))
    lines = ["usage: flowproof COMMAND …", ""]
    lines += [f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()]
    lines += ["", "`flowproof COMMAND --help` has the options; `flowproof --version` the version."]
    return "\n".join(lines)


def usage(command: Command) -> str:
    """Return the help of one command."""
    words = ["usage: flowproof", command.name, command.positional]
    words += [
        _spelt(option) if option.required else f"[{_spelt(option)}]" for option in command.options
    ]
    words += ["[-- COMMAND…]"] if command.trailing else []
    lines = [" ".join(filter(None, words)), "", command.summary]
    if command.details:
        lines += ["", command.details]
    if command.options:
        width = max(len(_spelt(option)) for option in command.options)
        lines.append("")
        lines += [f"  {_spelt(option):{width}}  {option.summary}" for option in command.options]
    return "\n".join(lines)


def _spelt(option: Option) -> str:
    return f"{option.name} {option.placeholder}".rstrip()
