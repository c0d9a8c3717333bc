"""``struct msghdr`` and ``struct mmsghdr`` of socket.h, for the calls that Python does not have."""

from __future__ import annotations

import ctypes

__all__ = ["Many", "Message", "message"]


class Part(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = (("base", ctypes.c_char_p), ("length", ctypes.c_size_t))


class Message(ctypes.Structure):
    """``struct msghdr``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("name_length", ctypes.c_uint32),
        ("parts", ctypes.POINTER(Part)),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class Many(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = (("header", Message), ("length", ctypes.c_uint))


def message(name: bytes | None, payload: bytes) -> Message:
    """Return a message of one part."""
    parts = (Part * 1)(Part(payload, len(payload)))
    return Message(name, len(name or b""), parts, 1, None, 0, 0)
