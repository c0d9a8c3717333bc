"""Bytes to text: UTF-8, of bounded size, of printable characters, or errors that name the place."""

from __future__ import annotations

import re

from flowproof.diagnostics import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flowproof.diagnostics import Report

__all__ = ["LIMIT", "decode"]

LIMIT = 4 * 1024 * 1024
"""The largest document, in bytes."""

_SHOWN = 20  # of many control characters, the first ones tell enough

# What YAML 1.2 does not count as printable (section 5.1): it has to be escaped in double quotes. Named
# one by one: a class that is wider than a byte takes milliseconds to compile
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]|\ufffe|\uffff")
_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def decode(data: bytes, name: str, report: Report) -> Source | None:
    """Return the text of a file without its byte-order mark, or None with the errors in *report*."""
    if len(data) > LIMIT:
        report.error(
            "FP202",
            f"the file has {len(data)} bytes, and {LIMIT} (4 MiB) is the most",
            Source(name, "").span(0),
            "split it, or move what is large into a set of networks",
        )
        return None
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            report.error(
                "FP201",
                f"the file is {encoding}, and a control is UTF-8",
                Source(name, "").span(0),
                "save it as UTF-8",
            )
            return None
    body = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        good = body[: error.start].decode("utf-8")
        source = Source(name, good + body[error.start :].decode("utf-8", "replace"))
        report.error(
            "FP201",
            f"the byte 0x{body[error.start]:02x} is not UTF-8",
            source.span(len(good), len(good) + 1),
            "save the file as UTF-8",
        )
        return None
    source = Source(name, text)
    wrong = [match.start() for match in _UNPRINTABLE.finditer(text)]
    for at in wrong[:_SHOWN]:
        report.error(
            "FP203",
            f"the character U+{ord(text[at]):04X} cannot stand in YAML",
            source.span(at, at + 1),
            f"take it out, or write `\\x{ord(text[at]):02x}` in double quotes"
            if ord(text[at]) < 0x100
            else "take it out",
        )
    return None if wrong else source
