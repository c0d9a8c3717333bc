"""Command lines: words in, a command with its options out, or a mistake with its near miss.

A scan over a table instead of argparse, which costs two thirds of a bare interpreter start and knows
neither near misses nor where a command behind ``--`` begins.
"""

from __future__ import annotations

from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Arguments", "Command", "HelpWanted", "Option", "UsageError", "parse"]


class Option(Value):
    """An option. *placeholder* stands for its value in help texts, and is empty where it takes none;
    *choices*, where not empty, are the only values; *required*: the command does nothing without it.
    """

    name: str
    placeholder: str
    summary: str
    choices: tuple[str, ...] = ()
    required: bool = False


class Command(Value):
    """One command. *positionals* are (name, fewest, most) of its words, most None for any number;
    *trailing*: words behind ``--`` are a program's command line.
    """

    name: str
    summary: str
    positional: str
    fewest: int
    most: int | None
    options: tuple[Option, ...]
    trailing: bool = False
    details: str = ""


class Arguments(Value):
    """A command line that holds together. *trailing* is None where no ``--`` was given."""

    command: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    trailing: tuple[str, ...] | None = None

    def get(self, name: str) -> str | None:
        """Return the value of an option, or None where it was not given."""
        return self.options.get(name)

    def given(self, name: str) -> bool:
        """Return whether an option was given, with a value or without."""
        return name in self.options

    @property
    def json(self) -> bool:
        """Whether the answer is wanted as JSON."""
        return self.options.get("--format") == "json"


class UsageError(Exception):
    """A command line that does not hold together; *help* is the way out."""

    def __init__(self, message: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.help = help


class HelpWanted(Exception):  # noqa: N818  an answer, no error
    """``--help`` was asked for, of *command* or (None) of all."""

    def __init__(self, command: Command | None) -> None:
        super().__init__()
        self.command = command


def parse(words: Iterable[str], commands: Mapping[str, Command]) -> Arguments:
    """Return what *words* ask for; raise `UsageError` or `HelpWanted`."""
    rest = list(words)
    if not rest:
        raise UsageError(
            "no command given",
            f"one of {_listed(commands)}; `flowproof --help` says what each does",
        )
    name = rest.pop(0)
    if name in ("--help", "-h", "help"):
        raise HelpWanted(commands.get(rest[0]) if rest else None)
    command = commands.get(name)
    if command is None:
        kind = "option" if name.startswith("-") else "command"
        raise UsageError(f"unknown {kind} `{name}`", _suggest(name, [*commands, "--version"]))
    arguments = _scan(command, rest)
    _complete(command, arguments)
    return arguments


def _scan(command: Command, rest: list[str]) -> Arguments:
    table = {option.name: option for option in command.options}
    words: list[str] = []
    options: dict[str, str] = {}
    trailing: tuple[str, ...] | None = None
    while rest:
        word = rest.pop(0)
        if word in ("--help", "-h"):
            raise HelpWanted(command)
        if word == "--":
            if command.trailing:
                trailing = tuple(rest)
            else:
                words.extend(rest)
            break
        if word == "-" or not word.startswith("-"):
            words.append(word)
            continue
        option, value = _option(command, table, word, rest)
        if option.name in options:
            raise UsageError(f"`{option.name}` is given twice", "give it once")
        options[option.name] = _checked(option, value)
    return Arguments(command.name, tuple(words), options, trailing)


def _option(
    command: Command, table: Mapping[str, Option], word: str, rest: list[str]
) -> tuple[Option, str]:
    name, equals, value = word.partition("=")
    if not word.startswith("--") and len(word) > 2 and word[:2] in table:  # -oDIR
        name, equals, value = word[:2], "=", word[2:]
    option = table.get(name)
    if option is None:
        message = f"`flowproof {command.name}` has no option `{name}`"
        if not table:
            raise UsageError(message, "it takes none")
        raise UsageError(message, _suggest(name, table))
    if not option.placeholder:
        if equals:
            raise UsageError(f"`{name}` takes no value", f"write `{name}`")
        return option, ""
    if not equals:
        if not rest or rest[0] == "--":
            raise UsageError(f"`{name}` needs a value", f"write `{name} {option.placeholder}`")
        value = rest.pop(0)
    return option, value


def _checked(option: Option, value: str) -> str:
    if option.choices and value not in option.choices:
        raise UsageError(
            f"`{value}` is no value of `{option.name}`", _suggest(value, option.choices)
        )
    return value


def _complete(command: Command, arguments: Arguments) -> None:
    for option in command.options:
        if option.required and option.name not in arguments.options:
            raise UsageError(
                f"`flowproof {command.name}` needs `{option.name}`",
                f"add `{option.name} {option.placeholder}`",
            )
    count = len(arguments.words)
    if count < command.fewest:
        raise UsageError(
            f"`flowproof {command.name}` needs {command.positional}",
            f"see `flowproof {command.name} --help`",
        )
    if command.most is not None and count > command.most:
        extra = arguments.words[command.most]
        way_out = (
            f"put `--` in front of the command to run: `-- {extra} …`"
            if command.trailing
            else f"see `flowproof {command.name} --help`"
        )
        raise UsageError(f"`flowproof {command.name}` does not take `{extra}` as well", way_out)


def _suggest(word: str, candidates: Iterable[str]) -> str:
    from flowproof.near import near_miss

    near = near_miss(word, candidates)
    return f"did you mean `{near}`?" if near else f"one of {_listed(candidates)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
