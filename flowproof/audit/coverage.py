"""Which rules a run exercised: a rule without a hit may hold and was not put to the test."""

from __future__ import annotations

from flowproof.record.model import Hits
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowproof.record.model import RuleRow

__all__ = ["Coverage", "coverage"]


class Coverage(Value):
    """How many rules there are, implied ones left out, and the ids of those that nothing ever met."""

    rules: int
    unmet: tuple[str, ...]

    @property
    def met(self) -> int:
        """How many rules handled, counted or observed something."""
        return self.rules - len(self.unmet)


def coverage(rules: Iterable[RuleRow]) -> Coverage:
    """Return which of *rules* the run exercised."""
    written = [rule for rule in rules if rule.kind != "implied"]
    return Coverage(len(written), tuple(rule.id for rule in written if rule.hits == Hits()))
