"""Records: frozen dataclasses, each made when the first of its kind is.

A dataclass writes source text for its methods and compiles it. stepscope declares some 300 of them, of which a run
needs a part: made as their modules are imported, they take a quarter of the time until a small profile is diagnosed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)

_METHODS = ("__init__", "__eq__", "__hash__", "__repr__")
"""Made of the fields, where the class has none of its own."""
_ABOUT = ("__match_args__", "__dataclass_params__", "__dataclass_fields__")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: Class) -> Class:
    """A class whose annotations are its fields: as ``dataclass(frozen=True)``, for all that can be seen."""
    for name in _METHODS:
        if name not in kind.__dict__:
            setattr(kind, name, _first(kind, name))
    kind.__setattr__ = _refuse_set  # type: ignore[assignment]
    kind.__delattr__ = _refuse_delete  # type: ignore[assignment]
    kind.__dataclass_fields__ = _Fields(kind)  # type: ignore[attr-defined]
    return kind


class _Fields:
    """Stands for the fields of a class until someone asks for them."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        _make(self._kind)
        declared: dict[str, Field[Any]] = self._kind.__dict__["__dataclass_fields__"]
        return declared


def _first(kind: type, name: str) -> Callable[..., Any]:
    """A method that makes all of them, and does what it stands for."""

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        _make(kind)
        return getattr(kind, name)(self, *arguments, **named)

    method._of_record = True  # type: ignore[attr-defined]
    return method


def _make(kind: type) -> None:
    """Give a class the methods of its fields. Two threads that come here at once give it the same."""
    # They are made of a twin: taken off the class itself, they would be missing to another thread meanwhile.
    names = {"__dict__", "__weakref__", "__setattr__", "__delattr__", "__dataclass_fields__"}
    own = {
        name: value
        for name, value in kind.__dict__.items()
        if name not in names and not getattr(value, "_of_record", False)
    }
    own["__doc__"] = kind.__doc__ or kind.__name__  # Without one, a dataclass writes its signature.
    # Only what a record is made with is compiled from source text: the rest is called too seldom for that to pay.
    twin: type = dataclass(frozen=True, repr=False, eq=False)(type(kind)(kind.__name__, kind.__bases__, own))
    declared: dict[str, Field[Any]] = twin.__dict__["__dataclass_fields__"]
    for name, one in declared.items():
        if isinstance(kind.__dict__.get(name), Field):
            if one.default is not MISSING:
                setattr(kind, name, one.default)
            else:
                with suppress(AttributeError):
                    delattr(kind, name)
    made = _uncompiled(fields(twin))
    made |= {name: twin.__dict__[name] for name in (*_ABOUT, *_METHODS) if twin.__dict__.get(name) is not None}
    for name in (*_ABOUT, *reversed(_METHODS)):
        setattr(kind, name, made[name])


def _uncompiled(declared: Sequence[Field[Any]]) -> dict[str, Callable[..., Any]]:
    """How records are compared, found in dictionaries and shown, as a dataclass does it."""
    compared = _values([one.name for one in declared if one.compare])
    hashed = _values([one.name for one in declared if (one.compare if one.hash is None else one.hash)])
    shown = [one.name for one in declared if one.repr]

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    @recursive_repr()
    def told(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return {"__eq__": equal, "__hash__": lambda self: hash(hashed(self)), "__repr__": told}


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of some fields."""
    return attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)


def _refuse_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
