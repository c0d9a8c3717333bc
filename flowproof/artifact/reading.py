"""Strict reading of JSON-shaped data: every wrong shape is a typed error that says where."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")

__all__ = [
    "ArtifactError",
    "Node",
]


class ArtifactError(ValueError):
    """Data that is no artifact. *where* is the place in it, as ``tables.entries[3].refuse``."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where or 'the artifact'}: {message}")
        self.where = where


class Node:
    """A JSON value with its place, read by asking it to be of one shape."""

    __slots__ = ("value", "where")

    def __init__(self, value: object, where: str = "") -> None:
        self.value = value
        self.where = where

    def wrong(self, message: str) -> ArtifactError:
        """Return the error that says *message* of this place."""
        return ArtifactError(self.where, message)

    def object(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Node]:
        """Return the members of an object that has all of *required*, and besides only *optional*."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object is expected")
        needed = set(required)
        missing = needed - self.value.keys()
        unknown = self.value.keys() - needed - set(optional)
        if missing:
            raise self.wrong(f"`{min(missing)}` is missing")
        if unknown:
            raise self.wrong(f"`{min(unknown)}` is unknown")
        return self.members()

    def members(self) -> dict[str, Node]:
        """Return the members of an object of any names."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object is expected")
        prefix = f"{self.where}." if self.where else ""
        return {name: Node(held, prefix + name) for name, held in self.value.items()}

    def items(self) -> list[Node]:
        """Return the items of an array."""
        if not isinstance(self.value, list):
            raise self.wrong("an array is expected")
        return [Node(held, f"{self.where}[{at}]") for at, held in enumerate(self.value)]

    def each(self, read: Callable[[Node], T]) -> tuple[T, ...]:
        """Return what *read* makes of each item of an array."""
        return tuple(read(item) for item in self.items())

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string is expected")
        return self.value

    def maybe_text(self) -> str | None:
        """Return a string, or None for null."""
        return None if self.value is None else self.text()

    def word(self, allowed: Iterable[str]) -> str:
        """Return a string that is one of *allowed*."""
        word = self.text()
        if word not in allowed:
            raise self.wrong(f"`{word}` is none of {', '.join(f'`{one}`' for one in allowed)}")
        return word

    def number(self, below: int, what: str = "a number") -> int:
        """Return an integer of 0 to *below* - 1."""
        held = self.value
        if type(held) is not int or not 0 <= held < below:
            raise self.wrong(f"{what} of 0 to {below - 1} is expected")
        return held

    def numbers(self, below: int, what: str = "a number") -> tuple[int, ...]:
        """Return an array of integers of 0 to *below* - 1."""
        held = self.value
        if not isinstance(held, list):
            raise self.wrong("an array is expected")
        if all(type(one) is int for one in held) and (
            not held or 0 <= min(held) <= max(held) < below
        ):
            return tuple(held)
        return self.each(lambda item: item.number(below, what))
