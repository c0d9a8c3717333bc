"""The bytes of an artifact once more, with what was proved of it since."""

from __future__ import annotations

import json
from json.encoder import encode_basestring

__all__ = ["restated"]

_NAME = b'"verification":'


def restated(data: bytes, verification: str) -> bytes:
    """Return the canonical bytes *data* of an artifact with *verification* for the member of that name.

    It is the last member in the order of names, and no text holds its name in bare quotes, so the rest
    stays as it is, byte for byte. Raises `ValueError` where *data* does not end with it.
    """
    at = data.rindex(_NAME)
    if [*json.loads(b"{" + data[at:])] != ["verification"]:
        raise ValueError("the bytes do not end with what was proved")
    return data[:at] + _NAME + encode_basestring(verification).encode("utf-8") + b"}"
