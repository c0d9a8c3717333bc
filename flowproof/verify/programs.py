"""The program of a serialised artifact against what the policy requires, over every input."""

from __future__ import annotations

from flowproof.verify import bpf
from flowproof.verify.cache import cached
from flowproof.verify.file_calls import NUMBERS as FILES
from flowproof.verify.found import Counterexample
from flowproof.verify.require import NUMBERS, argument
from flowproof.verify.symbolic import Unfollowed, answers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flowproof.verify.require import Requirement
    from flowproof.verify.symbolic import Answer, Words

__all__ = ["compare_program"]

_ALLOW = 0x7FFF0000
_NOTIFY = 0x7FC00000
_EPERM = 0x00050001  # SECCOMP_RET_ERRNO | EPERM
_ACTIONS = {
    0x80000000: "kills the process",
    0x00000000: "kills the thread",
    0x00030000: "sends SIGSYS",
    0x00050000: "answers an errno",
    0x7FC00000: "notifies the supervisor",
    0x7FF00000: "asks a tracer",
    0x7FFC0000: "logs and allows",
    0x7FFF0000: "allows",
}


def compare_program(
    program: dict[str, Any], requirement: Requirement
) -> tuple[int, Counterexample | None]:
    """Return the cells that the JSON form of a program was run on, and the first difference."""
    listed = _listed(program, requirement)
    if listed is not None:
        return 0, listed
    code = tuple(
        (int(s["code"]), int(s["jt"]), int(s["jf"]), int(s["k"])) for s in program["instructions"]
    )
    decided = {call["number"]: call["call"] for call in program["trapped"]}
    fixed = {reply["number"]: reply["event"] for reply in program["fixed"]}

    def meaning(answer: Answer) -> tuple[str, ...]:
        """Return what becomes of the call: the action, and for a notification who answers it."""
        if answer.action == _ALLOW:
            return ("allow",)
        if answer.action == _EPERM:
            return ("errno", "EPERM")
        if answer.action != _NOTIFY:
            return ("other", _action(answer.action))
        number, arch = answer.words.get(0), answer.words.get(4)
        if arch is None or number is None or requirement.foreign(arch, number):
            return ("fixed", fixed.get(None, "nothing"))
        if number in decided:
            return ("decided", decided[number])
        return ("fixed", fixed.get(number, "nothing"))

    stated = tuple((low, high) for low, high in program["cached"])
    ways = 0
    try:
        for answer in answers(code, requirement.of, requirement.tests()):
            ways += 1
            if (does := meaning(answer)) != answer.wanted:
                return ways, _difference(program, requirement, answer, does)
    except bpf.InvalidProgramError as refused:
        return ways, Counterexample(
            "any call",
            f"the kernel refuses the program: {refused}",
            "a filter is in force",
            None,
            None,
            f"instruction {str(refused).partition(':')[0]}",
        )
    except Unfollowed as unfollowed:
        return ways, Counterexample(
            "any call",
            "not proved: an operation that the proof does not follow",
            "a proof",
            None,
            None,
            str(unfollowed),
        )
    # cached ranges are worked out from a program that is sound, and may be left out
    if stated and stated != (own := cached(code, requirement.arch)):
        return ways, Counterexample(
            "calls that the kernel answers from its action cache",
            str(stated),
            str(own),
            None,
            None,
            "program.cached",
        )
    return ways, None


def _listed(program: dict[str, Any], requirement: Requirement) -> Counterexample | None:
    """Compare what the artifact says of its program beside the instructions."""
    if program["arch"] != requirement.arch:
        return Counterexample(
            "any call",
            f"a program for {program['arch']}",
            f"one for {requirement.arch}",
            None,
            None,
            "program.arch",
        )
    held: dict[str, tuple[object, object]] = {
        "trapped": (
            sorted((call["number"], call["call"]) for call in program["trapped"]),
            sorted(requirement.decided().items()),
        ),
        "fixed": (
            sorted(
                (str(r["number"]), r["event"], r["special"], str(r["errno"]))
                for r in program["fixed"]
            ),
            sorted(
                (str(number), event, special, str(errno))
                for number, (event, special, errno) in requirement.fixed().items()
            ),
        ),
        "refused": (
            sorted((call["number"], call["call"], call["errno"]) for call in program["refused"]),
            sorted((number, name, "EPERM") for number, name in requirement.refused().items()),
        ),
        "options": (
            sorted(
                (o["number"], o["level"], o["option"], o["name"], o["errno"])
                for o in program["options"]
            ),
            sorted((*key, name, "EPERM") for key, name in requirement.options().items()),
        ),
    }
    for name, (has, wants) in held.items():
        if has != wants:
            return Counterexample(
                f"the calls listed as {name}", str(has), str(wants), None, None, f"program.{name}"
            )
    return None


def _action(action: int) -> str:
    known = _ACTIONS.get(action & 0xFFFF0000)
    return f"{known} ({action:#010x})" if known else f"returns {action:#010x}, which kills"


def _difference(
    program: dict[str, Any], requirement: Requirement, answer: Answer, does: tuple[str, ...]
) -> Counterexample:
    step = program["instructions"][answer.at]
    return Counterexample(
        _call(requirement, answer.words),
        " ".join(does),
        " ".join(str(part) for part in answer.wanted) if isinstance(answer.wanted, tuple) else "",
        None,
        None,
        f"instruction {answer.at:04}: {step['code']:#04x} {step['k']:#010x} {step.get('words', '')}".rstrip(),
    )


def _call(requirement: Requirement, words: Words) -> str:
    """Return the call in words; what no comparison looked at is left out."""
    number = words.get(0)
    name = next(
        (
            name
            for numbers in (NUMBERS, FILES)
            for name, held in numbers[requirement.arch].items()
            if held == number
        ),
        "any call" if number is None else f"call {number:#x}",
    )
    arguments = [
        f"args[{index}] {'high' if high else 'low'} word {words[offset]:#x}"
        for index in range(6)
        for high in (False, True)
        if (offset := argument(index, high=high)) in words
    ]
    arch = f", arch {words[4]:#010x}" if 4 in words else ""
    return f"{name} ({', '.join(arguments)}){arch}" if arguments else f"{name}{arch}"
