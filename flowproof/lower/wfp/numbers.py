"""The Windows Filtering Platform's numbers, named as in the headers: what a marshaller puts for the names.

GUIDs are those of the Windows SDK's ``fwpmk.h`` and ``fwpmu.h``; each was compared with the constants of
wireguard-windows (``tunnel/firewall/types_windows_64.go``) and tailscale/wf (``zguids.go``). Enums are those
of ``fwptypes.h`` and ``fwpmtypes.h``, compiled from mingw-w64's headers.
"""

from __future__ import annotations

__all__ = [
    "ACTIONS",
    "AVAILABLE",
    "CONDITIONS",
    "DATA_TYPES",
    "IPPROTO_TCP",
    "IPPROTO_UDP",
    "LAYERS",
    "MATCH_TYPES",
    "SESSION_FLAG_DYNAMIC",
]

LAYERS: dict[str, str] = {  # FWPM_LAYER_*
    "ALE_AUTH_CONNECT_V4": "c38d57d1-05a7-4c33-904f-7fbceee60e82",
    "ALE_AUTH_CONNECT_V6": "4a72393b-319f-44bc-84c3-ba54dcb3b6b4",
    "ALE_AUTH_LISTEN_V4": "88bb5dad-76d7-4227-9c71-df0a3ed7be7e",
    "ALE_AUTH_LISTEN_V6": "7ac9de24-17dd-4814-b4bd-a9fbc95a321b",
    "ALE_AUTH_RECV_ACCEPT_V4": "e1cd9fe7-f4b5-4273-96c0-592e487b8650",
    "ALE_AUTH_RECV_ACCEPT_V6": "a3b42c97-9f04-4672-b87e-cee9c483257f",
}

CONDITIONS: dict[str, str] = {  # FWPM_CONDITION_*
    "ALE_USER_ID": "af043a0a-b34d-4f86-979c-c90371af6e66",
    "IP_PROTOCOL": "3971ef2b-623e-4f9a-8cb1-6e79b806b9a7",
    "IP_REMOTE_ADDRESS": "b235ae9a-1d64-49b8-a44c-5ff3d9095045",
    "IP_LOCAL_ADDRESS": "d9ee00de-c1ef-4617-bfe3-ffd8f5a08957",
    "IP_REMOTE_PORT": "c35a604d-d22b-4e1a-91b4-68f674ee674b",
    "IP_LOCAL_PORT": "0c1ba1af-5765-453f-af22-a8f791ac775b",
    "FLAGS": "632ce23b-5167-435c-86d7-e903684aa80c",
}

_EVERYWHERE = {"ALE_USER_ID", "IP_LOCAL_ADDRESS", "IP_LOCAL_PORT", "FLAGS"}
_WITH_REMOTE = _EVERYWHERE | {"IP_PROTOCOL", "IP_REMOTE_ADDRESS", "IP_REMOTE_PORT"}
AVAILABLE: dict[str, frozenset[str]] = {
    layer: frozenset(_EVERYWHERE if "LISTEN" in layer else _WITH_REMOTE) for layer in LAYERS
}
"""Layer → the conditions that it takes (Microsoft, *Filtering conditions available at each filtering
layer*). A condition at a layer that lacks it is FWP_E_CONDITION_NOT_FOUND."""

DATA_TYPES: dict[str, int] = {  # FWP_DATA_TYPE
    "EMPTY": 0,
    "UINT8": 1,
    "UINT16": 2,
    "UINT32": 3,
    "SECURITY_DESCRIPTOR": 14,
    "V4_ADDR_MASK": 0x100,
    "V6_ADDR_MASK": 0x101,
    "RANGE": 0x102,
}

MATCH_TYPES: dict[str, int] = {"EQUAL": 0, "RANGE": 5, "FLAGS_ANY_SET": 7}  # FWP_MATCH_TYPE

ACTIONS: dict[str, int] = {"block": 0x1001, "permit": 0x1002}  # FWP_ACTION_BLOCK, FWP_ACTION_PERMIT

SESSION_FLAG_DYNAMIC = 1  # FWPM_SESSION_FLAG_DYNAMIC: objects vanish with the session
IPPROTO_TCP = 6
IPPROTO_UDP = 17
