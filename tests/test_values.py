"""Frozen values: what they take, what they refuse, and what they are equal to."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

import pytest

from flowproof.values import Value, replace


class Pair(Value):
    left: int
    right: int = 7


class Checked(Value):
    left: int
    right: int = 7

    def __post_init__(self) -> None:
        if self.left > self.right:
            raise ValueError("left is over right")


class Wide(Value):
    a: int
    b: int
    c: int
    d: int
    e: int
    f: int = 6


class Fourteen(Value):
    """As many fields as a rule of the IR has, and a check as there."""

    left: int
    b: int = 0
    c: int = 0
    d: int = 0
    e: int = 0
    f: int = 0
    g: int = 0
    h: int = 0
    i: int = 0
    j: int = 0
    k: int = 0
    l: int = 0  # noqa: E741  a letter as the others
    m: int = 0
    right: int = 7

    def __post_init__(self) -> None:
        if self.left > self.right:
            raise ValueError("left is over right")


class Longer(Pair):
    more: int = 8


class ByHand(Value):
    left: int
    right: int

    def __init__(self, both: int) -> None:
        object.__setattr__(self, "left", both)
        object.__setattr__(self, "right", both)


class Derived(Value):
    left: int

    __slots__ = ("_found",)
    _found: ClassVar[int]


KINDS: list[type[Value]] = [Pair, Checked, Longer]


@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_given_by_place_by_name_and_by_default(kind: type[Value]) -> None:
    assert kind(1, 2) == kind(1, right=2) == kind(left=1, right=2) == kind(right=2, left=1)
    assert kind(1) == kind(1, 7)
    assert kind(1, 2) != kind(1, 3)


@pytest.mark.parametrize("kind", [*KINDS, Wide, Fourteen])
def test_what_is_no_field_is_refused(kind: type[Value]) -> None:
    sound = range(len(kind.__fields__))
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(TypeError):
        kind(*sound, 9)
    with pytest.raises(TypeError):
        kind(*sound, other=1)
    with pytest.raises(TypeError):
        kind(*sound, **{kind.__fields__[0]: 0})


def test_many_fields_with_a_default_among_them() -> None:
    assert Wide(1, 2, 3, 4, 5) == Wide(1, 2, 3, d=4, e=5, f=6)
    with pytest.raises(TypeError, match="needs `e`"):
        Wide(1, 2, 3, 4)  # type: ignore[call-arg]  # it is what is tried


@pytest.mark.parametrize("count", range(1, 16))
@pytest.mark.parametrize("checked", [False, True])
def test_fields_of_any_number_are_each_in_their_place(count: int, checked: bool) -> None:
    names = [f"f{at}" for at in range(count)]
    checks: list[object] = []
    body: dict[str, object] = {"__annotations__": dict.fromkeys(names, "int")}
    if checked:
        body["__post_init__"] = lambda self: checks.append(self)  # noqa: PLW0108  a function, to be a method
    metaclass: Any = type(Value)
    kind = metaclass("Made", (Value,), body)
    value = kind(*range(count))
    assert [getattr(value, name) for name in names] == list(range(count))
    assert value == kind(**{name: at for at, name in enumerate(names)})
    assert len(checks) == (2 if checked else 0)


def test_a_field_more_than_the_class_above_has() -> None:
    assert Longer(1).more == 8
    assert Longer(1, 2, 3).__fields__ == ("left", "right", "more")


def test_an_invalid_value_is_never_built_and_never_replaced_into() -> None:
    for kind in (Checked, Fourteen):
        with pytest.raises(ValueError, match="over"):
            kind(8)
    with pytest.raises(ValueError, match="over"):
        replace(Checked(1), left=9)


def test_a_constructor_written_by_hand_stays() -> None:
    assert (ByHand(3).left, ByHand(3).right) == (3, 3)


def test_values_are_frozen_hashable_and_told_by_field() -> None:
    value = Pair(1)
    with pytest.raises(AttributeError):
        value.left = 2  # type: ignore[misc]  # it is what is tried
    with pytest.raises(AttributeError):
        del value.left
    assert len({Pair(1), Pair(1, 7), Checked(1)}) == 2
    assert repr(value) == "Pair(left=1, right=7)"
    assert pickle.loads(pickle.dumps(value)) == copy.copy(value) == value
    assert replace(value, right=1) == Pair(1, 1)
    assert not hasattr(Derived(1), "_found")
