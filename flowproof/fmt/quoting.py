"""A value as YAML: plain where YAML lets it be, quoted where it does not, folded where it is long."""

from __future__ import annotations

import re

__all__ = ["WIDTH", "written"]

WIDTH = 100
"""Columns of a line; a longer sentence is folded at its spaces."""

# YAML 1.2, section 7.3.3: what a plain value may not begin with, hold or end with. U+0085, U+2028 and
# U+2029 may stand there in 1.2, but other readers take them for line breaks: they are escaped.
_BEGINS = re.compile(r"[-?:](?![^ ])|[,\[\]{}#&*!|>'\"%@`]")
_HOLDS = re.compile(r": | #|:$|^[ ]|[ ]$")
_HOLDS_IN_BRACKETS = re.compile(r"[,\[\]{}?]|:[,\[\]{}]")
_FOLDS = re.compile(r"(?<! ) (?! )")
_CLAUSES = ("except", "because")
_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def written(value: str, *, column: int, indent: int, brackets: bool, line_break: str) -> str:
    """Return *value* as the scalar that the formatter writes at *column* (from 0).

    *indent* is the column of the key or the dash that the value belongs to; *brackets*: it stands in a
    flow collection, where no value can be folded over lines of its own.
    """
    one_line = _one_line(value, brackets=brackets)
    if brackets or column + len(one_line) <= WIDTH or not _foldable(value):
        return one_line
    return _folded(value, " " * (indent + 2), line_break)


def _one_line(value: str, *, brackets: bool) -> str:
    if not _ordinary(value):
        return '"' + "".join(_escaped(char) for char in value) + '"'
    if not (
        not value
        or _BEGINS.match(value)
        or _HOLDS.search(value)
        or (brackets and _HOLDS_IN_BRACKETS.search(value))
    ):
        return value
    if '"' in value or "\\" in value:
        return "'" + value.replace("'", "''") + "'"
    return f'"{value}"'


def _ordinary(value: str) -> bool:
    """Tell whether every character may stand in a scalar of one line as it is."""
    return value.isprintable() or all(
        char.isprintable() or (char > "\xa0" and char not in "\u2028\u2029\ufeff\ufffe\uffff")
        for char in value
        if not "\ud800" <= char <= "\udfff"
    )


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if char.isprintable():
        return char
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def _foldable(value: str) -> bool:
    return _ordinary(value) and value[:1] != " " and value[-1:] != " "


def _folded(value: str, margin: str, line_break: str) -> str:
    """Return a folded block scalar: a single space may be a line break, and becomes a space again.

    `except` and `because` outside of quotes begin a line of their own.
    """
    lines: list[str] = []
    quotes = 0
    for word in _FOLDS.split(value):
        begins = quotes % 2 == 0 and word in _CLAUSES
        if lines and not begins and len(margin) + len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
        quotes += len(_QUOTE.findall(word))
    return line_break.join([">-", *(margin + line for line in lines)])
