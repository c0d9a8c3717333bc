"""Who holds what of a plane of the decision tables, by region algebra over the policy."""

from __future__ import annotations

from flowproof.addresses import LOOPBACK
from flowproof.ir.model import OFF_LOOPBACK
from flowproof.ir.ports import ANY_PORT
from flowproof.ir.regions import Region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flowproof.ir.model import Policy
    from flowproof.verify.sweep import Box, Member

__all__ = ["EXCEPTED", "EXEMPT", "IMPLIED", "NAMED", "OTHERWISE", "boxes"]

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


def boxes(policy: Policy) -> dict[str, list[Box]]:
    """Return who holds what of each plane: rules by *named* and *otherwise*, exceptions where they matter,
    loopback, and the fixed meaning that refuses listens. Planes are named as in the tables.
    """
    held: dict[str, list[Box]] = {
        f"{lane}{family}": [] for lane in ("tcp", "udp", "listen") for family in (4, 6)
    }
    for at, rule in enumerate(policy.rules):
        if rule.meaning == "listen":
            _hold(held, "listen", Region.of(OFF_LOOPBACK, ("tcp",)), (at, IMPLIED))
        if rule.meaning is not None or rule.action not in ("connect", "listen"):
            continue
        _hold(held, rule.action, rule.named, (at, NAMED))
        if rule.targets.otherwise:
            _hold(held, rule.action, rule.otherwise, (at, OTHERWISE))
        if rule.exceptions.region and (
            rule.targets.symbols or (rule.action == "listen" and rule.refuses)
        ):
            _hold(held, rule.action, rule.exceptions.region, (at, EXCEPTED))
    for name, line in held.items():
        for first, last in _FAMILY_LOOPBACK[int(name[-1])]:
            line.append((first, last, ANY_PORT, (_NOBODY, EXEMPT)))
    return held


def _hold(held: dict[str, list[Box]], action: str, region: Region, member: Member) -> None:
    for (protocol, family), parts in region.planes:
        if action == "connect":
            line = held[f"{protocol}{family}"]
        elif protocol == "tcp":
            line = held[f"listen{family}"]
        else:
            continue
        line += [(first, last, ports, member) for first, last, ports in parts]
