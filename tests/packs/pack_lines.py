"""The lines of a pack by what they are: what the try of a pack calls a line when it fails."""

from __future__ import annotations

__all__ = ["label_of", "labels", "owned"]

Label = tuple[str, str]
"""What a line is, and of what: ``top title``, ``source URL``, ``set docker``, ``item HOST``, ``rule docker``,
``because docker``."""


def labels(text: str) -> list[Label]:
    """Return the label of each line of *text*, in order."""
    found: list[Label] = []
    section, key = "", ""
    for line in text.splitlines():
        word = line.strip()
        if line.startswith("# Source: "):
            found.append(("source", line.removeprefix("# Source: ")))
        elif line[:1].isalpha():
            section = line.partition(":")[0]
            found.append(("top", section))
        elif word.startswith("- "):
            found.append(("item", word[2:]))
        elif line.startswith("    "):
            found.append(("because" if word.startswith("because ") else "sentence", key))
        else:
            key = word.partition(":")[0]
            found.append((section.removesuffix("s"), key))
    return found


def label_of(text: str, number: int) -> Label:
    """Return the label of line *number*, counted from 1."""
    return labels(text)[number - 1]


def owned(text: str, rule: str) -> set[Label]:
    """Return the labels of the lines that rule *rule* is made of, those of its set included."""
    found: set[Label] = set()
    inside = False
    for label in labels(text):
        if label[0] != "item":
            inside = label[1] == rule and label[0] != "top"
        if inside:
            found.add(label)
    return found
