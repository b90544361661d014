"""Loads, stores and byte searches on raw addresses, each compiled to one or a few machine instructions.

numba's array indexing cannot load eight unaligned bytes or compare sixty-four at once; these intrinsics can. An
address is an int64. Nothing here checks bounds: every buffer handed to the scanner ends in ``PADDING`` bytes that stop
every search (see ``windows.pad``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_HALF = ir.IntType(32)

Codegen = Callable[[Any, Any, Any, Any], Any]


def _load(builder: Any, address: Any, kind: Any) -> Any:
    pointer = builder.inttoptr(address, kind.as_pointer())
    try:
        return builder.load(pointer, align=1, typ=kind)
    except TypeError:  # llvmlite before 0.44 has typed pointers only
        return builder.load(pointer, align=1)


def _vector(width: int) -> Any:
    return ir.VectorType(_BYTE, width)


def _splat(width: int, value: int) -> Any:
    return ir.Constant(_vector(width), [value] * width)


def _as_mask(builder: Any, truths: Any, width: int) -> Any:
    bits = builder.bitcast(truths, ir.IntType(width))
    return bits if width == 64 else builder.zext(bits, _WORD)


def _unary(codegen: Codegen) -> Any:
    """An intrinsic int64 -> int64."""

    def typed(typing_context: Any, address: Any) -> Any:
        return types.int64(types.int64), codegen

    return intrinsic(typed)


def _binary(codegen: Codegen) -> Any:
    """An intrinsic (int64, int64) -> int64."""

    def typed(typing_context: Any, first: Any, second: Any) -> Any:
        return types.int64(types.int64, types.int64), codegen

    return intrinsic(typed)


def _loader(kind: Any, extend: str) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = _load(builder, arguments[0], kind)
        return value if kind is _WORD else getattr(builder, extend)(value, _WORD)

    return _unary(codegen)


def _storer(kind: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, value = arguments
        value = value if kind is _WORD else builder.trunc(value, kind)
        builder.store(value, builder.inttoptr(address, kind.as_pointer()), align=1)
        return context.get_dummy_value()

    def typed(typing_context: Any, address: Any, value: Any) -> Any:
        return types.void(types.int64, types.int64), codegen

    return intrinsic(typed)


def _searcher(width: int, test: Callable[[Any, Any], Any]) -> Any:
    """Bit i of the result says whether ``test`` holds for byte i of the ``width`` bytes at the address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = _load(builder, arguments[0], _vector(width))
        return _as_mask(builder, test(builder, loaded), width)

    return _unary(codegen)


def _equals(width: int, value: int) -> Callable[[Any, Any], Any]:
    return lambda builder, loaded: builder.icmp_unsigned("==", loaded, _splat(width, value))


def _above_blank(builder: Any, loaded: Any) -> Any:
    return builder.icmp_unsigned(">", loaded, _splat(32, 32))


def _ends_scalar(builder: Any, loaded: Any) -> Any:
    blank = builder.icmp_unsigned("<=", loaded, _splat(32, 32))
    comma = builder.icmp_unsigned("==", loaded, _splat(32, ord(",")))
    closing = builder.icmp_unsigned("==", builder.or_(loaded, _splat(32, 32)), _splat(32, ord("}")))
    return builder.or_(builder.or_(blank, comma), closing)


def _is_structure(builder: Any, loaded: Any) -> Any:
    lowered = builder.or_(loaded, _splat(64, 32))  # [ and { differ in bit 5 only, and so do ] and }
    is_structure = builder.icmp_unsigned("==", loaded, _splat(64, ord('"')))
    is_structure = builder.or_(is_structure, builder.icmp_unsigned("==", lowered, _splat(64, ord("{"))))
    return builder.or_(is_structure, builder.icmp_unsigned("==", lowered, _splat(64, ord("}"))))


load_byte = _loader(_BYTE, "zext")
load_half = _loader(_HALF, "sext")
load_word = _loader(_WORD, "")
store_byte = _storer(_BYTE)
store_half = _storer(_HALF)
store_word = _storer(_WORD)

quotes_64 = _searcher(64, _equals(64, ord('"')))
backslashes_64 = _searcher(64, _equals(64, ord("\\")))
quotes_32 = _searcher(32, _equals(32, ord('"')))
above_blank_32 = _searcher(32, _above_blank)
scalar_ends_32 = _searcher(32, _ends_scalar)
structure_64 = _searcher(64, _is_structure)


@_unary
def trailing_zeros(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Index of the lowest set bit; 64 for zero."""
    return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))


@_binary
def shift_right(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Logical shift of an int64."""
    return builder.lshr(*arguments)


@_binary
def equal_64(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Bit i says whether byte i at both addresses is the same."""
    left, right = (_load(builder, address, _vector(64)) for address in arguments)
    return _as_mask(builder, builder.icmp_unsigned("==", left, right), 64)
