"""Shapes of XLA's values (``xla.ShapeProto``): element types, sizes and memory spaces.

Element types are numbered as in xla/xla_data.proto; sizes in bytes are those of ``ShapeUtil::ByteSizeOf``, with
elements of less than a byte packed where the layout says so (``element_size_in_bits``).
"""

from __future__ import annotations

from math import prod

from stepscope.protobuf.columns import Spans, children, numbers, repeated_numbers, texts
from stepscope.record import record
from stepscope.trace.tables import U8

_BITS = {
    1: ("pred", 8), 2: ("s8", 8), 3: ("s16", 16), 4: ("s32", 32), 5: ("s64", 64), 6: ("u8", 8), 7: ("u16", 16),
    8: ("u32", 32), 9: ("u64", 64), 10: ("f16", 16), 11: ("f32", 32), 12: ("f64", 64), 15: ("c64", 64),
    16: ("bf16", 16), 18: ("c128", 128), 19: ("f8e5m2", 8), 20: ("f8e4m3fn", 8), 21: ("s4", 4), 22: ("u4", 4),
    23: ("f8e4m3b11fnuz", 8), 24: ("f8e5m2fnuz", 8), 25: ("f8e4m3fnuz", 8), 26: ("s2", 2), 27: ("u2", 2),
    28: ("f8e4m3", 8), 29: ("f8e3m4", 8), 30: ("s1", 1), 31: ("u1", 1), 32: ("f4e2m1fn", 4), 33: ("f8e8m0fnu", 8),
}  # fmt: skip
_NO_ARRAYS = {13: "tuple", 14: "opaque", 17: "token", 34: "buffer"}
_TUPLE = 13
_DEEPEST = 8
"""Tuples within tuples that are read: real ones nest two or three deep."""
_MOST_ELEMENTS = 1 << 50
"""No machine holds more; larger sizes are damage."""


@record
class Shape:
    """A value's type: an array, or a tuple of others."""

    element: str
    """Element type as HLO text writes it, or ``tuple``, ``token``, ``opaque``, ``buffer``."""
    dims: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    """Of a tuple."""
    bits: int = 0
    """Of an element in memory; 0 of what is no array."""
    space: int = 0
    """Memory space of its layout; 0 is the device's main memory."""

    @property
    def elements(self) -> int:
        """Elements of an array, of all its parts for a tuple."""
        return sum(part.elements for part in self.parts) if self.parts else prod(self.dims) if self.bits else 0

    @property
    def bytes(self) -> int:
        """Bytes of an array, of all its parts for a tuple."""
        return sum(part.bytes for part in self.parts) if self.parts else -(-self.bits * self.elements // 8)

    @property
    def first(self) -> Shape:
        """An array itself, the first part of a tuple (the results of library calls stand before their workspace)."""
        return self.parts[0].first if self.parts else self

    def __str__(self) -> str:
        if self.element == "tuple":
            return f"({', '.join(map(str, self.parts))})"
        return f"{self.element}[{','.join(map(str, self.dims))}]" if self.bits else self.element


UNKNOWN = Shape("type?")


def read_shapes(data: U8, spans: Spans, depth: int = _DEEPEST) -> list[Shape]:
    """The shapes in some messages; what makes no sense is ``UNKNOWN``."""
    types = numbers(data, spans, 2)[0].tolist()
    layouts = texts(data, spans, 5)
    packed, spaces = (column.tolist() for column in numbers(data, layouts, 7, 8))
    dims: list[list[int]] = [[] for _ in types]
    values, rows = repeated_numbers(data, spans, 3)
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        dims[row].append(value)
    parts: list[list[Shape]] = [[] for _ in types]
    inner = children(data, spans, 4)
    if len(inner) and depth:
        for row, shape in zip(inner.parent.tolist(), read_shapes(data, inner.spans, depth - 1), strict=True):
            parts[row].append(shape)
    return [
        Shape("tuple", parts=tuple(parts[row])) if kind == _TUPLE else _array(kind, dims[row], packed[row], spaces[row])
        for row, kind in enumerate(types)
    ]


def _array(kind: int, dims: list[int], packed: int, space: int) -> Shape:
    if kind in _NO_ARRAYS:
        return Shape(_NO_ARRAYS[kind])
    if kind not in _BITS or min(dims, default=0) < 0 or prod(dims) > _MOST_ELEMENTS:
        return UNKNOWN
    name, bits = _BITS[kind]
    return Shape(name, tuple(dims), bits=packed if 0 < packed < bits else max(bits, 8), space=max(space, 0))
