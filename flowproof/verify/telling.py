"""A difference between tables and policy in words: what has to be there, what is, and whose rule it is."""

from __future__ import annotations

from flowproof.verify.found import Counterexample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowproof.ir.model import Policy, Rule
    from flowproof.verify.reading import Outcome, Read

__all__ = ["ONCE_BOUND", "Telling"]

ONCE_BOUND = "once names and variables are bound"
"""What a difference says that is about lists of rules, and no attempt shows before a run."""


class Telling:
    """Words for what differs between *read* and *policy*."""

    def __init__(self, policy: Policy, read: Read) -> None:
        self._policy = policy
        self._read = read

    def of_list(
        self, event: str, name: str, has: Sequence[int], wanted: Sequence[int], part: str
    ) -> Counterexample:
        """Return the difference of list *name*, which *has* other rules than are *wanted*, for *event*."""
        about = next((at for at in (*wanted, *has) if (at in wanted) != (at in has)), None)
        rule = None if about is None else self._policy.rules[about]
        return Counterexample(
            f"{event}, {ONCE_BOUND}",
            f"list {name}: {self._ids(has)}",
            f"list {name}: {self._ids(wanted)}",
            None if rule is None else rule.id,
            _place(rule),
            part,
        )

    def _ids(self, held: Sequence[int]) -> str:
        return ", ".join(self._policy.rules[at].id for at in held) or "nobody"

    def of_entry(self, event: str, entry: int | None, wanted: Outcome, part: str) -> Counterexample:
        """Return the difference of *entry* (None: there is none) from what is *wanted* for *event*."""
        has = None if entry is None else self._read.outcomes[entry]
        return self.of_outcome(event, has, wanted, part)

    def of_outcome(
        self, event: str, has: Outcome | None, wanted: Outcome, part: str
    ) -> Counterexample:
        """Return the difference of what becomes of *event* (None: nothing is said) from what is *wanted*."""
        about = wanted.by
        if has is not None and has.refused == wanted.refused and has.by == wanted.by:
            counted = (wanted.asserting ^ has.asserting) | (wanted.observing ^ has.observing)
            about = min(counted, default=about)
        elif about is None and has is not None:
            about = has.by
        rule = None if about is None else self._policy.rules[about]
        return Counterexample(
            event,
            "no row" if has is None else self._words(has),
            self._words(wanted),
            None if rule is None else rule.id,
            _place(rule),
            part,
        )

    def _words(self, outcome: Outcome) -> str:
        rules = self._policy.rules
        by = "" if outcome.by is None else f" by {rules[outcome.by].id}"
        text = ("refused" if outcome.refused else "let through") + by
        for word, held in (("counted", outcome.asserting), ("observed", outcome.observing)):
            if held:
                text += f", {word} by {self._ids(sorted(held))}"
        return text


def _place(rule: Rule | None) -> str | None:
    if rule is None or rule.origin is None:
        return None
    return f"{rule.origin.file}:{rule.origin.line}:{rule.origin.column}"
