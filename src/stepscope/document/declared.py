"""Reading the declaration: the fields of an object, and the shape of what each holds."""

from __future__ import annotations

import types
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from stepscope.document.kinds import Field, ValueKind

_PLAIN = {int: ValueKind("index"), float: ValueKind("rate"), str: ValueKind("text"), bool: ValueKind("flag")}


class FieldShape(NamedTuple):
    """What a field holds: an ``object`` (``of``), a ``list`` or ``map`` of ``inner``, one of ``words``, or a value of a
    ``kind``; and whether it may be null."""

    holds: str
    null: bool = False
    of: type | None = None
    inner: FieldShape | None = None
    words: tuple[str, ...] = ()
    kind: ValueKind | None = None
    plain: type | None = None


class DeclaredField(NamedTuple):
    """A field of an object; ``required`` where every document has it."""

    key: str
    shape: FieldShape
    required: bool
    field: Field


def title(of: type) -> str:
    """What an object is called outside this code: in schemas, in JavaScript and on its page. A class ends in ``Entry``
    where what it is made from has that name."""
    return of.__name__.removesuffix("Entry")


@cache
def fields(of: type) -> tuple[DeclaredField, ...]:
    """The fields of an object, in the order of the columns of its tables."""
    return tuple(_declared(key, hint) for key, hint in get_type_hints(of, include_extras=True).items())


def _declared(key: str, hint: Any) -> DeclaredField:
    required = get_origin(hint) is not NotRequired
    held, *kinds, field = get_args(hint if required else get_args(hint)[0])
    of = FieldShape("value", kind=kinds[0], plain=held) if kinds else shape(held)
    return DeclaredField(key, of, required, field)


def shape(hint: Any) -> FieldShape:
    """The shape of a type. Raises TypeError for one that documents do not hold."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (held,) = (one for one in arguments if one is not type(None))
        return shape(held)._replace(null=True)
    if origin is Annotated:
        plain, kind = arguments
        return FieldShape("value", kind=kind, plain=plain)
    if origin is Literal:
        return FieldShape("words", words=arguments)
    if origin is list:
        return FieldShape("list", inner=shape(arguments[0]))
    if origin is dict:
        key, value = map(shape, arguments)
        return FieldShape("map", inner=value, kind=key.kind)
    if is_typeddict(hint):
        return FieldShape("object", of=hint)
    if hint in _PLAIN:
        return FieldShape("value", kind=_PLAIN[hint], plain=hint)
    raise TypeError(f"{hint} is nothing a document holds")


@cache
def objects(root: type) -> tuple[type, ...]:
    """The objects inside an object, in the order of the first reference to them."""
    inside: dict[type, None] = {}
    for one in fields(root):
        held = one.shape
        while held.inner is not None:
            held = held.inner
        if held.of is not None:
            inside |= dict.fromkeys((held.of, *objects(held.of)))
    return tuple(inside)
