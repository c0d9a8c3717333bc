"""The program of an artifact, read back."""

from __future__ import annotations

from flowproof.artifact.model import (
    SPECIAL,
    FixedReply,
    Instruction,
    Program,
    RefusedCall,
    RefusedOption,
    TrappedCall,
)
from flowproof.artifact.tables_read import read_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from flowproof.artifact.reading import Node

__all__ = ["read_program"]

_U32 = 1 << 32


def read_program(node: Node, rules: int) -> Program:
    """Return a program whose causes name one of *rules* rules. Raises `ArtifactError`."""
    held = node.object(Program.__fields__)
    causes = {
        name: cause.numbers(rules, "a rule") for name, cause in held["causes"].members().items()
    }
    return Program(
        arch=held["arch"].text(),
        instructions=held["instructions"].each(lambda step: _read_instruction(step, causes)),
        trapped=held["trapped"].each(lambda call: TrappedCall(*_read_call(call, TrappedCall))),
        fixed=held["fixed"].each(_read_fixed),
        refused=held["refused"].each(lambda call: RefusedCall(*_read_call(call, RefusedCall))),
        options=held["options"].each(_read_option),
        cached=held["cached"].each(read_range),
        causes=causes,
    )


def _read_instruction(node: Node, causes: Mapping[str, tuple[int, ...]]) -> Instruction:
    held = node.object(Instruction.__fields__)
    return Instruction(
        held["code"].number(1 << 16),
        held["jt"].number(256),
        held["jf"].number(256),
        held["k"].number(_U32),
        held["words"].text(),
        held["causes"].each(lambda cause: cause.word(causes)),
    )


def _read_call(node: Node, kind: type[TrappedCall | RefusedCall]) -> list[Any]:
    held = node.object(kind.__fields__)
    number = held["number"].number(_U32)
    return [number, *(held[name].text() for name in kind.__fields__[1:])]


def _read_option(node: Node) -> RefusedOption:
    held = node.object(RefusedOption.__fields__)
    return RefusedOption(
        held["number"].number(_U32),
        held["level"].number(_U32),
        held["option"].number(_U32),
        held["name"].text(),
        held["errno"].text(),
    )


def _read_fixed(node: Node) -> FixedReply:
    held = node.object(FixedReply.__fields__)
    number = held["number"]
    return FixedReply(
        held["event"].word(("foreign-abi", "socket", "socketpair")),
        None if number.value is None else number.number(_U32),
        None if held["errno"].value is None else held["errno"].text(),
        held["special"].word(SPECIAL),
    )
