"""Whom a condition on ALE_USER_ID is about: a security descriptor that grants a right, or ``@run``.

*Permitting and Blocking Applications and Users*: where the descriptor grants FWP_ACTRL_MATCH_FILTER to the
token, the condition is true; that says nothing yet of the traffic.
"""

from __future__ import annotations

import re

from flowproof.verify.found import Unmodelled

__all__ = ["MATCH_FILTER", "granted", "owned"]

MATCH_FILTER = "CC"
"""FWP_ACTRL_MATCH_FILTER is 1, which SDDL spells ``CC`` (SDDL_CREATE_CHILD)."""

RUN = "@run"
_EVERYONE = {"WD": "S-1-1-0"}
_RIGHTS = ("CC", "DC", "LC", "SW", "RP", "WP", "DT", "LO", "CR")  # sddl.h: bit 0 to bit 8
_ACES = re.compile(r"D:((?:\([^()]*\))*)\Z")
_ACE = re.compile(r"\(([^()]*)\)")


def owned(descriptor: str) -> bool:
    """Tell whether *descriptor* has an owner and an access list: without, the platform refuses the filter."""
    return descriptor == RUN or ("O:" in descriptor and "(" in descriptor)


def granted(descriptor: str, sids: tuple[str, ...]) -> bool:
    """Tell whether a token of *sids* has the right: entries in order, the first about it decides.

    Raises `Unmodelled` for entries and identities that are not modelled here.
    """
    if descriptor == RUN:
        return RUN in sids
    listed = _ACES.search(descriptor)
    if listed is None:
        raise Unmodelled(f"no access list in `{descriptor}`")
    for entry in _ACE.findall(listed[1]):
        kind, flags, rights, *_objects, who = entry.split(";")
        held = {rights[at : at + 2] for at in range(0, len(rights), 2)}
        who = _EVERYONE.get(who, who)
        if (
            kind not in ("A", "D")
            or flags
            or not held <= set(_RIGHTS)
            or not who.startswith("S-1-")
        ):
            raise Unmodelled(f"an entry `{entry}` that is not modelled")
        if MATCH_FILTER in held and who in sids:
            return bool(kind == "A")
    return False
