"""Frozen, slotted, validating values, without what ``dataclasses`` costs at start-up.

``import dataclasses`` pulls in ``inspect``, ``ast`` and ``tokenize`` and compiles a method per class:
more than the whole of a bare interpreter start. Type checkers see a frozen dataclass all the same.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

    V = TypeVar("V", bound="Value")
else:

    def dataclass_transform(**_options: object) -> object:
        """Stand in for `typing.dataclass_transform`, which only type checkers read."""
        return lambda decorated: decorated


__all__ = ["Value", "replace"]


@dataclass_transform(frozen_default=True)
class _ValueType(type):
    """The metaclass that turns a class body's annotations into slots and fields."""

    __puts__: tuple[Callable[[object, object], None], ...]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> _ValueType:
        own = tuple(
            field
            for field, kind in namespace.get("__annotations__", {}).items()
            if not str(kind).startswith("ClassVar")
        )
        inherited: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        for base in bases:
            inherited += getattr(base, "__fields__", ())
            defaults.update(getattr(base, "__defaults__", {}))
        defaults.update({field: namespace.pop(field) for field in own if field in namespace})
        namespace["__slots__"] = own + tuple(namespace.get("__slots__", ()))
        namespace["__fields__"] = inherited + own
        namespace["__match_args__"] = inherited + own
        namespace["__defaults__"] = defaults
        made = super().__new__(mcls, name, bases, namespace, **options)
        made.__puts__ = tuple(getattr(made, field).__set__ for field in inherited + own)
        return made


class Value(metaclass=_ValueType):
    """A frozen value: fields are the class's annotations, in order, with optional defaults.

    Equality, hash and repr are by field. ``__post_init__`` may raise `ValueError`: an invalid value
    is never built. Extra ``__slots__`` in a class body hold what is derived and not compared.
    """

    __fields__: ClassVar[tuple[str, ...]] = ()
    __defaults__: ClassVar[dict[str, Any]] = {}
    __puts__: ClassVar[tuple[Callable[[object, object], None], ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        puts = self.__puts__
        if kwargs or len(args) != len(puts):
            args = self.__complete(args, kwargs)
        # the slots' own setters: a compile builds values by the hundred thousand
        for put, value in zip(puts, args, strict=True):
            put(self, value)
        self.__post_init__()

    def __complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        fields = self.__fields__
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, got {len(args)}")
        values = list(args)
        for field in fields[len(args) :]:
            if field in kwargs:
                values.append(kwargs.pop(field))
            elif field in self.__defaults__:
                values.append(self.__defaults__[field])
            else:
                raise TypeError(f"{type(self).__name__} needs `{field}`")
        if kwargs:
            raise TypeError(f"{type(self).__name__} has no field {sorted(kwargs)}")
        return tuple(values)

    def __post_init__(self) -> None:
        """Validate; a class overrides this to refuse what may not be built."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.__fields__)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field) for field in self.__fields__)))

    def __repr__(self) -> str:
        inner = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.__fields__)
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), tuple(getattr(self, field) for field in self.__fields__))

    def __copy__(self) -> Self:
        return self


def replace(value: V, **changes: Any) -> V:
    """Return a copy of *value* with the named fields changed, validated anew."""
    fields = {field: getattr(value, field) for field in value.__fields__}
    return type(value)(**{**fields, **changes})
