"""Frozen, slotted, validating values, without what ``dataclasses`` costs at start-up.

``import dataclasses`` pulls in ``inspect``, ``ast`` and ``tokenize`` and compiles a method per class:
more than the whole of a bare interpreter start. Type checkers see a frozen dataclass all the same.
"""

from __future__ import annotations

from flowproof.constructors import constructor

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
        made: Any = super().__new__(mcls, name, bases, namespace, **options)
        made.__puts__ = tuple(getattr(made, field).__set__ for field in inherited + own)
        if bases and (made.__init__ is Value.__init__ or made.__init__ in _written):
            made.__init__ = _constructor(made)
        found: _ValueType = made
        return found


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
        for put, value in zip(puts, args, strict=True):
            put(self, value)
        self.__post_init__()

    def __complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        fields = self.__fields__
        name = type(self).__name__
        if len(args) > len(fields):
            raise TypeError(f"{name} takes {len(fields)} fields, got {len(args)}")
        given = dict(zip(fields, args, strict=False))
        twice = given.keys() & kwargs
        if twice:
            raise TypeError(f"{name} got `{min(twice)}` twice")
        given = {**self.__defaults__, **given, **kwargs}
        try:
            values = tuple([given[field] for field in fields])
        except KeyError as missing:
            raise TypeError(f"{name} needs `{missing.args[0]}`") from None
        if len(given) > len(fields):
            raise TypeError(f"{name} has no field {sorted(given.keys() - set(fields))}")
        return values

    def __post_init__(self) -> None:
        """Validate; a class overrides this to refuse what may not be built."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        for field in self.__fields__:  # noqa: SIM110  a generator costs more than the fields are many
            if getattr(self, field) != getattr(other, field):
                return False
        return True

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field) for field in self.__fields__)))

    def __repr__(self) -> str:
        inner = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.__fields__)
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), tuple(getattr(self, field) for field in self.__fields__))

    def __copy__(self) -> Self:
        return self


_written: set[Any] = set()
_Function: Any = type(lambda: None)


def _constructor(made: Any) -> Any:
    """Return the constructor of a class: one that is written out where there is one for its fields, else
    that of `Value`.
    """
    fields, defaults = made.__fields__, made.__defaults__
    behind = tuple(defaults[field] for field in fields if field in defaults)
    required = fields[: len(fields) - len(behind)]
    checked = made.__post_init__ is not Value.__post_init__
    build = constructor(made.__puts__, made.__post_init__ if checked else None)
    if build is None or any(field in defaults for field in required):
        return Value.__init__
    # parameters are called as the fields are, so that the interpreter itself matches keywords
    code = build.__code__.replace(co_varnames=("self", *fields))
    found = _Function(code, {}, "__init__", behind, build.__closure__)
    _written.add(found)
    return found


def replace(value: V, **changes: Any) -> V:
    """Return a copy of *value* with the named fields changed, validated anew."""
    fields = [
        changes.pop(field) if field in changes else getattr(value, field)
        for field in value.__fields__
    ]
    return type(value)(*fields, **changes)
