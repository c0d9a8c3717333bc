"""DNS names as a control writes them: IDNA 2008 with UTS 46, underscores let be."""

from __future__ import annotations

import re

__all__ = ["NameRefusedError", "normalise", "numeric"]

# RFC 1035 section 2.3.4
_LABEL_OCTETS = 63
_NAME_OCTETS = 253

_ASCII_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")


class NameRefusedError(ValueError):
    """A name that IDNA or DNS refuses; the text says why, without the name."""


def normalise(text: str) -> str:
    """Return the name in lower case, as A-labels, without its one trailing dot.

    Raises `NameRefusedError`. A non-ASCII name is mapped by UTS 46 (non-transitional: ß stays) first, so
    that a full-width digit or an ideographic full stop is what it looks like.
    """
    if not text.isascii():
        text = _mapped(text)
    name = text.lower()
    name = name.removesuffix(".")
    if not name:
        raise NameRefusedError("there is no label in it")
    labels = [_label(label) for label in name.split(".")]
    joined = ".".join(labels)
    if len(joined) > _NAME_OCTETS:
        raise NameRefusedError(f"it has {len(joined)} octets, {_NAME_OCTETS} is the most")
    return joined


def numeric(name: str) -> bool:
    """Tell whether the last label of *name* reads as a number, so that the name could be an address."""
    last = name.rpartition(".")[2]
    return last.isdigit() or bool(re.fullmatch(r"0x[0-9a-f]*", last))


def _mapped(text: str) -> str:
    import idna  # noqa: PLC0415  tables of 100 kB, for non-ASCII names only

    try:
        return idna.uts46_remap(text, std3_rules=False, transitional=False)
    except idna.IDNAError as error:
        raise NameRefusedError(_reason(error)) from error


def _label(label: str) -> str:
    if not label:
        raise NameRefusedError("a label is empty")
    if label.isascii():
        if not _ASCII_LABEL.fullmatch(label):
            if label[0] == "-" or label[-1] == "-":
                raise NameRefusedError("a label neither begins nor ends with a hyphen")
            raise NameRefusedError("a label holds letters, digits, hyphens and underscores")
        if len(label) > _LABEL_OCTETS:
            raise NameRefusedError(f"a label has {len(label)} octets, {_LABEL_OCTETS} is the most")
        if label[2:4] != "--":
            return label
    return _idna_label(label)


def _idna_label(label: str) -> str:
    """Return the A-label of a U-label, or of what claims to be an A-label once it holds."""
    import idna  # noqa: PLC0415

    try:
        if label.isascii():
            if not label.startswith("xn--"):
                # RFC 5891 section 4.2.3.1: hyphens in the third and fourth place are reserved
                raise NameRefusedError("a label has hyphens in its third and fourth place")
            return str(idna.alabel(idna.ulabel(label)).decode("ascii"))
        if "_" not in label:
            return str(idna.alabel(label).decode("ascii"))
        idna.check_label(label.replace("_", ""))
    except idna.IDNAError as error:
        raise NameRefusedError(_reason(error)) from error
    encoded = "xn--" + label.encode("punycode").decode("ascii")
    if len(encoded) > _LABEL_OCTETS:
        raise NameRefusedError(f"a label has {len(encoded)} octets, {_LABEL_OCTETS} is the most")
    return encoded


def _reason(error: Exception) -> str:
    """Return why IDNA refuses a label, in words of ours: the library's hold escapes and type names."""
    kind = type(error).__name__
    if kind == "IDNABidiError":
        return "a label mixes directions of writing (RFC 5893)"
    if kind in {"InvalidCodepoint", "InvalidCodepointContext"}:
        return "a label holds a character that IDNA 2008 does not allow"
    return "a label is not valid in IDNA 2008"
