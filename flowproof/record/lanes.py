"""The registry of lanes: what a run can observe and enforce, and which actions belong to which."""

from __future__ import annotations

__all__ = ["LANES", "LANE_OF_ACTION", "lane_of_event"]

LANES: dict[str, str] = {
    "connect": "connections, datagrams and listening sockets",
    "files": "file operations",
    "execute": "programs started",
    "call": "tools called",
    "faults": "what the mechanism could not tell",
}
"""Lane name → what it covers. Each has a JSON-lines file in a record once a run engages it."""

LANE_OF_ACTION: dict[str, str] = {
    "connect": "connect",
    "listen": "connect",
    "files": "files",
    "delete": "files",
    "rename": "files",
    "truncate": "files",
    "write": "files",
    "execute": "execute",
    "call": "call",
}
"""Action of a rule → the lane whose tier and faults its verdict depends on."""


def lane_of_event(operation: object, engaged: tuple[str, ...]) -> str:
    """Return which of the *engaged* lanes an attempt at *operation* is written to.

    What no lane of its own is engaged for (a call of a foreign ABI where only files are observed) goes to
    the first.
    """
    lane = LANE_OF_ACTION.get(str(operation), "connect")
    return lane if lane in engaged else engaged[0]
