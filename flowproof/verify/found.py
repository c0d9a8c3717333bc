"""What a verification ends with: a proof, or differences that a person can read."""

from __future__ import annotations

from flowproof.values import Value

__all__ = ["Counterexample", "Proof", "Unmodelled"]


class Unmodelled(ValueError):  # noqa: N818  no error of the caller: nobody knows the answer
    """A question that no document of the platform answers; the message says which."""


class Counterexample(Value):
    """One event for which artifact and policy differ. *event* is the attempt; *artifact* what the filter
    does; *policy* what the policy says; *rule* the id of the rule that is about it, with its *place*;
    *part* what of the artifact is wrong: an instruction, or a cell of a table or filter set.
    """

    event: str
    artifact: str
    policy: str
    rule: str | None
    place: str | None
    part: str

    def __str__(self) -> str:
        lines = [
            f"event    {self.event}",
            f"artifact {self.artifact}",
            f"policy   {self.policy}",
        ]
        if self.rule is not None:
            lines.append(f"rule     {self.rule}" + (f"  ({self.place})" if self.place else ""))
        lines.append(f"at       {self.part}")
        return "\n".join(lines)


class Proof(Value):
    """What was shown equal: *ways* are the cells of the input space that the program was run on (0 without
    a program), *cells* those of the decision tables, *classes* the kinds of them that were judged,
    *filtered* the cells of a filter set. *differences* are the kinds of its cells that the target is stated
    not to carry; the artifact lists each with all of its cells.
    *bound* are the attempts that were compared with names and variables bound to addresses.
    """

    ways: int
    cells: int
    classes: int
    filtered: int = 0
    differences: int = 0
    bound: int = 0

    def __str__(self) -> str:
        parts = []
        if self.ways:
            parts.append(f"program over {self.ways} cells of all inputs")
        parts.append(f"tables over {self.cells} cells, {self.classes} kinds")
        if self.bound:
            parts.append(f"names bound at {self.bound} attempts")
        if self.filtered:
            parts.append(
                f"filter set over {self.filtered} cells, {self.differences} kinds of them stated to differ"
            )
        return f"verified ({'; '.join(parts)})"
