"""One call of a host op as its shapes, types and scalars were recorded, and what it costs."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import lru_cache
from math import prod
from typing import Any

from stepscope.record import record

Shape = tuple[int, ...]

LONGEST = 1 << 20
"""Characters of recorded shapes that are read: a list of a thousand tensors takes 20,000."""

_SIZES = {
    "double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "Half": 2, "BFloat16": 2,
    "long int": 8, "long": 8, "long long": 8, "int": 4, "short": 2, "short int": 2, "unsigned char": 1,
    "signed char": 1, "char": 1, "bool": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip
_FLOATING = ("double", "float", "c10::Half", "c10::BFloat16", "Half", "BFloat16")
_FLOAT8 = "c10::Float8_"


class CostKind(StrEnum):
    """What an op does, as far as its cost goes."""

    GEMM = "gemm"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    NORMALIZATION = "normalization"
    SOFTMAX = "softmax"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    EMBEDDING = "embedding"
    OPTIMIZER = "optimizer"
    COPY = "copy"
    COMPILED = "compiled"
    """An op of a module compiled by XLA, which says itself what it costs."""


MATRIX_KINDS = (CostKind.GEMM, CostKind.CONVOLUTION, CostKind.ATTENTION)
"""Kinds whose arithmetic is products of matrices."""


@record
class Cost:
    """What one call computes and the least it moves.

    ``flops`` are floating-point operations, a multiply-add counting two. ``bytes`` are those of its inputs read once
    and its outputs written once: what caches cannot save. None where the recorded facts do not tell.
    """

    kind: CostKind
    flops: int | None
    bytes: int | None
    out: Shape | None = None
    """Shape of the output, of ops that memory bounds."""
    written: int | None = None
    """Its bytes, of ``bytes``."""


@record
class OpCall:
    """Arguments of a call by position. ``shapes`` holds a shape per tensor, a tuple of shapes per list of tensors."""

    shapes: tuple[Any, ...]
    types: tuple[str, ...]
    values: tuple[str, ...]

    def shape(self, at: int) -> Shape | None:
        """The shape of a tensor; None where the argument is absent or a list. A tensor of no dimensions has ``()``."""
        value = self.shapes[at] if at < len(self.shapes) else None
        is_tensor = at < len(self.types) and self.size(at) is not None
        return value if value is not None and is_tensor and not (value and isinstance(value[0], tuple)) else None

    def tensors(self, at: int) -> tuple[Shape, ...] | None:
        """The shapes of a list of tensors."""
        value = self.shapes[at] if at < len(self.shapes) else None
        return value if value and isinstance(value[0], tuple) else None

    def size(self, at: int) -> int | None:
        """Bytes per element of a tensor."""
        return size_of(self.types[at]) if at < len(self.types) else None

    def bytes(self, *at: int) -> int | None:
        """Bytes of some tensors together; None where one is not known."""
        total = 0
        for one in at:
            shape, size = self.shape(one), self.size(one)
            if shape is None or size is None:
                return None
            total += prod(shape) * size
        return total

    def present(self, *at: int) -> int:
        """Bytes of those of some optional tensors that were given."""
        return sum(self.bytes(one) or 0 for one in at)

    def value(self, at: int) -> Any:
        """A recorded scalar, flag or list of them; None where it was not recorded."""
        if at >= len(self.values) or not isinstance(self.values[at], str) or not self.values[at]:
            return None
        try:
            return json.loads(self.values[at].lower())
        except (ValueError, RecursionError):
            return None

    def integers(self, at: int) -> tuple[int, ...] | None:
        """A recorded list of integers."""
        value = self.value(at)
        if not isinstance(value, list) or not all(type(one) is int for one in value):
            return None
        return tuple(value)

    def flag(self, at: int) -> bool | None:
        """A recorded flag."""
        value = self.value(at)
        return value if isinstance(value, bool) else None


def size_of(type_name: str) -> int | None:
    """Bytes per element of a type as PyTorch's profiler writes it."""
    return 1 if type_name.startswith(_FLOAT8) else _SIZES.get(type_name)


def is_floating(type_name: str) -> bool:
    """Whether a type as PyTorch's profiler writes it is a floating-point one."""
    return type_name in _FLOATING or type_name.startswith(_FLOAT8)


def parse_call(shapes: str | None, types: str | None, values: str | None) -> OpCall | None:
    """Read the recorded texts (JSON lists); None where the shapes or types cannot be read."""
    dims, names = _read(shapes), _read(types)
    if dims is None or names is None or not all(isinstance(name, str) for name in names):
        return None
    made = tuple(_shape(one) for one in dims)
    return OpCall(made, tuple(names), tuple(_read(values) or ()))


@lru_cache(maxsize=4096)
def recorded_shapes(text: str) -> frozenset[Shape]:
    """The shapes of the tensors among recorded shapes (a JSON list)."""
    made = [_shape(one) for one in _read(text) or ()]
    return frozenset(shape for shape in made if shape and not isinstance(shape[0], tuple))


_OPERANDS_AT = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::linear": 0}


def recorded_operands(name: str, dims: str) -> tuple[int, int, int] | None:
    """Rows, summed length and columns of a matrix product by its recorded shapes; None for other ops."""
    at, shapes = _OPERANDS_AT.get(name), _read(dims)
    if at is None or shapes is None or len(shapes) < at + 2:
        return None
    left, right = _shape(shapes[at]), _shape(shapes[at + 1])
    if not left or not right or len(left) < 2 or len(right) < 2 or isinstance(left[0], tuple):
        return None
    return left[-2], left[-1], right[-2 if name == "aten::linear" else -1]


def _read(text: str | None) -> list[Any] | None:
    if text is None or len(text) > LONGEST:
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, list) else None


def _shape(value: Any) -> tuple[Any, ...] | None:
    """A shape or a tuple of shapes; None for anything else."""
    if not isinstance(value, list):
        return None
    if all(type(one) is int and one >= 0 for one in value):
        return tuple(value)
    if all(isinstance(one, list) and all(type(size) is int and size >= 0 for size in one) for one in value):
        return tuple(tuple(one) for one in value)
    return None
