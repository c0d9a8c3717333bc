"""What becomes of traffic over time: which call is classified where, and what passes with its flow unasked.

*ALE Layers*, *TCP Packet Flows* and *UDP Packet Flows* say where; *ALE Stateful Filtering* says that all
packets of an authorized flow pass, in both directions; *ALE Reauthorization* says when one is asked again;
*ALE Multicast/Broadcast Traffic* says what a datagram to many lets in. This is why a datagram of a stranger
must not be let in where a reply to it must not leave.
"""

from __future__ import annotations

from flowproof.addresses import CLASSES
from flowproof.values import Value
from flowproof.verify.found import Unmodelled
from flowproof.verify.wfp import arbitrate
from flowproof.verify.wfp_conditions import FLAGS, TCP, Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flowproof.verify.wfp import Sublayer
    from flowproof.verify.wfp_conditions import Address

    Key = tuple[int, int | None, Address | None, int | None]

__all__ = ["Flows", "Operation", "Passage", "layer_of"]

IDLE = 60
"""Seconds without a packet after which a flow that is no stream is forgotten, by default."""

TO_MANY = 4
"""Seconds for which a datagram to many lets in answers from anybody, by default."""

_LAYERS = {  # what a program does → its layer, for TCP and for all else; None: nothing is asked
    "bind": ("ALE_RESOURCE_ASSIGNMENT", "ALE_RESOURCE_ASSIGNMENT"),
    "listen": ("ALE_AUTH_LISTEN", None),
    "connect": ("ALE_AUTH_CONNECT", None),  # a datagram socket is asked when it sends
    "accept": ("ALE_AUTH_RECV_ACCEPT", None),
    "send": (None, "ALE_AUTH_CONNECT"),
    "receive": (None, "ALE_AUTH_RECV_ACCEPT"),
}


class Operation(Value):
    """What a program does, or what reaches it. *at* is the time in seconds; for ICMP *local_port* is the type
    and *remote_port* the code.
    """

    does: str
    protocol: int
    family: int = 4
    remote: Address | None = None
    remote_port: int | None = None
    local: Address | None = None
    local_port: int | None = None
    at: float = 0


class Passage(Value):
    """Whether an operation passes, and the layer that was asked: None where it passes with a flow."""

    passes: bool
    layer: str | None
    reauthorized: bool = False


class _Flow(Value):
    layer: str
    policy: int
    seen: float


def layer_of(operation: Operation) -> str | None:
    """Return the layer that classifies *operation*, flows aside; None where none does."""
    if operation.does not in _LAYERS:
        raise Unmodelled(f"no operation `{operation.does}`")
    stream, other = _LAYERS[operation.does]
    layer = stream if operation.protocol == TCP else other
    return None if layer is None else f"{layer}_V{operation.family}"


class Flows:
    """One machine's flows under a filter set, which may change."""

    def __init__(self, sublayers: Sequence[Sublayer]) -> None:
        self._sublayers = sublayers
        self._policies: dict[str, int] = {}
        self._flows: dict[Key, _Flow] = {}
        self._to_many: dict[tuple[int, int | None], float] = {}

    def change(self, sublayers: Sequence[Sublayer], layer: str) -> None:
        """Put other filters in force, which were changed at *layer*: its flows are asked again."""
        self._sublayers = sublayers
        self._policies[layer] = self._policies.get(layer, 0) + 1

    def perform(self, operation: Operation) -> Passage:
        """Return what becomes of *operation*. Raises what `arbitrate` raises."""
        carried = operation.does in ("send", "receive")
        key = _key(operation)
        flow = self._flows.get(key)
        if carried and flow is not None and not _idle(operation, flow):
            return self._with(operation, key, flow)
        if carried and operation.protocol == TCP:
            raise Unmodelled("a segment of no stream")  # RST, or a raw socket's
        if operation.does == "receive" and self._answers(operation):
            return Passage(True, None)
        layer = layer_of(operation)
        if layer is None:
            return Passage(True, None)
        if not self._permits(operation, layer, 0):
            return Passage(False, layer)
        if operation.does == "send" and operation.remote is not None and _many(operation.remote):
            self._to_many[operation.protocol, operation.local_port] = operation.at
        elif operation.does not in ("bind", "listen"):
            self._flows[key] = _Flow(layer, self._policies.get(layer, 0), operation.at)
        return Passage(True, layer)

    def _with(self, operation: Operation, key: Key, flow: _Flow) -> Passage:
        policy = self._policies.get(flow.layer, 0)
        again = flow.policy != policy
        if again and not self._permits(operation, flow.layer, FLAGS["IS_REAUTHORIZE"]):
            del self._flows[key]
            return Passage(False, flow.layer, reauthorized=True)
        self._flows[key] = _Flow(flow.layer, policy, operation.at)
        return Passage(True, flow.layer if again else None, reauthorized=again)

    def _answers(self, operation: Operation) -> bool:
        sent = self._to_many.get((operation.protocol, operation.local_port))
        return sent is not None and operation.at - sent <= TO_MANY

    def _permits(self, operation: Operation, layer: str, flags: int) -> bool:
        attempt = Attempt(
            layer,
            operation.protocol,
            operation.remote,
            operation.remote_port,
            operation.local,
            operation.local_port,
            flags,
        )
        return arbitrate(self._sublayers, attempt).permitted


def _key(operation: Operation) -> Key:
    return operation.protocol, operation.local_port, operation.remote, operation.remote_port


def _idle(operation: Operation, flow: _Flow) -> bool:
    return operation.protocol != TCP and operation.at - flow.seen > IDLE


def _many(address: Address) -> bool:
    """Tell whether *address* is a multicast or the limited broadcast address."""
    return any(
        family == address[0] and first <= address[1] <= last
        for family, first, last in CLASSES["multicast"]
    )
