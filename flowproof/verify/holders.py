"""Who holds what of a plane of the decision tables, by region algebra over the policy."""

from __future__ import annotations

from flowproof.addresses import LOOPBACK
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flowproof.ir.model import Policy
    from flowproof.verify.sweep import Box

__all__ = ["EXCEPTED", "EXEMPT", "IMPLIED", "NAMED", "OTHERWISE", "plane_boxes"]

# The roles of a rule in a cell; EXEMPT is nobody's
NAMED = "named"
OTHERWISE = "otherwise"
EXCEPTED = "excepted"
EXEMPT = "exempt"
IMPLIED = "implied"
_NOBODY = -1

_FAMILY_LOOPBACK: Mapping[int, tuple[tuple[int, int], ...]] = {
    family: tuple((first, last) for kin, first, last in LOOPBACK if kin == family)
    for family in (4, 6)
}


def plane_boxes(policy: Policy, name: str) -> Iterator[Box]:
    """Yield who holds what of a plane: rules by *named* and *otherwise*, exceptions where they matter,
    loopback, and the fixed meaning that refuses listens.
    """
    protocol, family = name[:-1], int(name[-1])
    action = "connect"
    if protocol == "listen":
        action, protocol = "listen", "tcp"
    for at, rule in enumerate(policy.rules):
        if rule.action != action:
            continue
        if rule.meaning == "listen":
            for first, last, ports in Region.of(OFF_LOOPBACK, ("tcp",)).boxes("tcp", family):
                yield first, last, ports, (at, IMPLIED)
        if rule.meaning is not None:
            continue
        for first, last, ports in rule.named.boxes(protocol, family):
            yield first, last, ports, (at, NAMED)
        if rule.targets.otherwise:
            for first, last, ports in rule.otherwise.boxes(protocol, family):
                yield first, last, ports, (at, OTHERWISE)
        if rule.exceptions.region and (
            rule.targets.symbols or (action == "listen" and rule.refuses)
        ):
            for first, last, ports in rule.exceptions.region.boxes(protocol, family):
                yield first, last, ports, (at, EXCEPTED)
    for first, last in _FAMILY_LOOPBACK[family]:
        yield first, last, ANY_PORT, (_NOBODY, EXEMPT)
