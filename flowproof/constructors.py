"""Constructors of values, written out by number of fields.

A compile builds values by the hundred thousand, and a loop over their fields takes twice as long. They are
not made from text at start-up: to compile one takes longer than most commands build values. The counts are
those of the values that a large policy is made of.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Put = Callable[[object, object], None]

__all__ = ["constructor"]


def constructor(puts: tuple[Put, ...], check: Callable[[Any], None] | None) -> Any:
    """Return a function of a value and its fields, which *puts* set in turn before *check* is called;
    None where none is written out for so many fields, with or without a check.
    """
    if check is None:
        plain = _PLAIN.get(len(puts))
        return None if plain is None else plain(*puts)
    checked = _CHECKED.get(len(puts))
    return None if checked is None else checked(*puts, check)


def _of_1(p0: Any) -> Any:
    def build(self: object, a: object) -> None:
        p0(self, a)

    return build


def _of_2(p0: Any, p1: Any) -> Any:
    def build(self: object, a: object, b: object) -> None:
        p0(self, a)
        p1(self, b)

    return build


def _of_3(p0: Any, p1: Any, p2: Any) -> Any:
    def build(self: object, a: object, b: object, c: object) -> None:
        p0(self, a)
        p1(self, b)
        p2(self, c)

    return build


def _of_4(p0: Any, p1: Any, p2: Any, p3: Any) -> Any:
    def build(self: object, a: object, b: object, c: object, d: object) -> None:
        p0(self, a)
        p1(self, b)
        p2(self, c)
        p3(self, d)

    return build


def _of_5(p0: Any, p1: Any, p2: Any, p3: Any, p4: Any) -> Any:
    def build(self: object, a: object, b: object, c: object, d: object, e: object) -> None:
        p0(self, a)
        p1(self, b)
        p2(self, c)
        p3(self, d)
        p4(self, e)

    return build


def _of_7(p0: Any, p1: Any, p2: Any, p3: Any, p4: Any, p5: Any, p6: Any) -> Any:
    def build(
        self: object, a: object, b: object, c: object, d: object, e: object, f: object, g: object
    ) -> None:
        p0(self, a)
        p1(self, b)
        p2(self, c)
        p3(self, d)
        p4(self, e)
        p5(self, f)
        p6(self, g)

    return build


def _of_8(p0: Any, p1: Any, p2: Any, p3: Any, p4: Any, p5: Any, p6: Any, p7: Any) -> Any:
    def build(
        self: object,
        a: object,
        b: object,
        c: object,
        d: object,
        e: object,
        f: object,
        g: object,
        h: object,
    ) -> None:
        p0(self, a)
        p1(self, b)
        p2(self, c)
        p3(self, d)
        p4(self, e)
        p5(self, f)
        p6(self, g)
        p7(self, h)

    return build


def _of_14_checked(
    p0: Any,
    p1: Any,
    p2: Any,
    p3: Any,
    p4: Any,
    p5: Any,
    p6: Any,
    p7: Any,
    p8: Any,
    p9: Any,
    p10: Any,
    p11: Any,
    p12: Any,
    p13: Any,
    check: Any,
) -> Any:
    def build(
        self: object,
        a: object,
        b: object,
        c: object,
        d: object,
        e: object,
        f: object,
        g: object,
        h: object,
        i: object,
        j: object,
        k: object,
        m: object,
        n: object,
        o: object,
    ) -> None:
        p0(self, a)
        p1(self, b)
        p2(self, c)
        p3(self, d)
        p4(self, e)
        p5(self, f)
        p6(self, g)
        p7(self, h)
        p8(self, i)
        p9(self, j)
        p10(self, k)
        p11(self, m)
        p12(self, n)
        p13(self, o)
        check(self)

    return build


_PLAIN: dict[int, Any] = {1: _of_1, 2: _of_2, 3: _of_3, 4: _of_4, 5: _of_5, 7: _of_7, 8: _of_8}
_CHECKED: dict[int, Any] = {14: _of_14_checked}
