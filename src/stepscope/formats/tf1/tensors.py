"""Element types and shapes of TensorFlow's tensors as text, as protocol buffers print them and shapes are written."""

from __future__ import annotations

from collections.abc import Sequence

DTYPES = (
    *("INVALID", "FLOAT", "DOUBLE", "INT32", "UINT8", "INT16", "INT8", "STRING", "COMPLEX64", "INT64", "BOOL", "QINT8"),
    *("QUINT8", "QINT32", "BFLOAT16", "QINT16", "QUINT16", "UINT16", "COMPLEX128", "HALF", "RESOURCE", "VARIANT"),
    *("UINT32", "UINT64", "FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E4M3FNUZ", "FLOAT8_E4M3B11FNUZ", "FLOAT8_E5M2FNUZ"),
    *("INT4", "UINT4", "INT2", "UINT2", "FLOAT4_E2M1FN"),
)
"""By number: tensorflow/core/framework/types.proto."""
_REFERENCE = 100
"""Added to the number of a type for a reference to such a tensor."""


def dtype_text(number: int) -> str | None:
    """``DT_FLOAT`` for 1; a number that has no name is its own text, 0 is none.

    >>> dtype_text(1), dtype_text(103), dtype_text(77)
    ('DT_FLOAT', 'DT_INT32_REF', '77')
    """
    if number == 0:
        return None
    plain = number - _REFERENCE if number > _REFERENCE else number
    if not 0 < plain < len(DTYPES):
        return str(number)
    return f"DT_{DTYPES[plain]}" + ("_REF" if plain != number else "")


def shape_text(dims: Sequence[int]) -> str:
    """``[2,3]``; ``[]`` for a scalar, -1 for a size that is not known."""
    return f"[{','.join(map(str, dims))}]"
