"""Paths as a record may show them: ``${cwd}``, ``${home}`` and ``${tmp}`` put back."""

from __future__ import annotations

import os

from flowproof.canonical import printable
from flowproof.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["Folders"]


class Folders(Value):
    """The folders that a record does not spell out, longest first: (path, what stands for it)."""

    known: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, cwd: str, home: str, tmp: str) -> Self:
        """Return the folders of a run; one that is the root or no absolute path stays spelt out."""
        named = (("${cwd}", cwd), ("${home}", home), ("${tmp}", tmp))
        forms = {
            printable(form.rstrip("/")): word
            for word, path in reversed(named)  # where two are one folder, the first word stands
            for form in (path, os.path.realpath(path))
            if path.startswith("/") and form.rstrip("/")
        }
        return cls(tuple(sorted(forms.items(), key=lambda item: (-len(item[0]), item[0]))))

    def path(self, path: str) -> str:
        """Return *path* with the folder that it lies in put back."""
        path = printable(path)
        for folder, word in self.known:
            if path == folder or path.startswith(folder + "/"):
                return word + path[len(folder) :]
        return path

    def text(self, text: str) -> str:
        """Return *text* with every path in it that lies in a known folder put back."""
        return " ".join(self._word(word) for word in text.split(" "))

    def _word(self, word: str) -> str:
        bare = word.lstrip("`'\"(")
        return printable(word[: len(word) - len(bare)]) + self.path(bare)
