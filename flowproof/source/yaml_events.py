"""The events of PyYAML's parsers, from text in which YAML 1.1's own meanings are hidden.

PyYAML's resolver and constructor, which know YAML 1.1, are never asked.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["events", "pure_events", "substituted"]

# Line breaks in YAML 1.1 and ordinary characters in 1.2; a BOM is one inside a document
_BREAKS_OF_1_1 = "\x85\u2028\u2029\ufeff"


def substituted(text: str) -> tuple[str, str]:
    """Return *text* with private-use characters for YAML 1.1's breaks, and one that is in no use.

    One for one, so that every index keeps its meaning; the source's own text gives values back.
    """
    used = set(text)
    spare = (
        chr(c) for c in (*range(0xE000, 0xF900), *range(0xF0000, 0xF2000)) if chr(c) not in used
    )
    table = {ord(char): next(spare) for char in _BREAKS_OF_1_1 if char in used}
    text = text.translate(table) if table else text
    if "?" in used:
        # PyYAML ends a plain value at any `?` in brackets; only before a space it means a key
        text = re.sub(r"\?(?=[^ \t\r\n])", next(spare), text)
    return text, next(spare)


def events(text: str) -> Iterator[Any]:
    """Yield the events of PyYAML's parser: libyaml's where it was built, else the one in Python."""
    try:
        from yaml._yaml import CParser  # noqa: PLC0415
    except ImportError:
        yield from pure_events(text)
        return
    parser = CParser(text)
    while parser.check_event():
        yield parser.get_event()


def pure_events(text: str) -> Iterator[Any]:
    """Yield the events of the parser that PyYAML has in Python."""
    from yaml.parser import Parser  # noqa: PLC0415
    from yaml.reader import Reader  # noqa: PLC0415
    from yaml.scanner import Scanner, ScannerError  # noqa: PLC0415

    class Pure(Reader, Scanner, Parser):
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    parser: Any = Pure(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    except ValueError as error:
        # `chr` of an escape beyond the last character; libyaml says so in its own way
        mark = parser.get_mark()
        raise ScannerError(None, None, "found no character for an escape", mark) from error
