"""Operations of matrix products and convolutions, as XLA counts them (xla/service/hlo_cost_analysis.cc).

A multiply-add counts two. ``HandleDot``: two for each element of the result and each index summed over.
``GetConvolutionFlops``: two for each product of an element of the kernel and one of the input that is not padding, so
that what padding and dilation put in counts nothing.
"""

from __future__ import annotations

from math import prod

import numpy as np

from stepscope.hlo.program import Instruction, first_number, part_numbers, parts
from stepscope.hlo.shapes import Shape

_MOST_PLACES = 1 << 22
"""Places of a window that are tried one by one; larger ones are damage, or have no dilation."""


def dot(one: Instruction, left: Shape, result: Shape) -> int | None:
    """``dot``: what is summed over stands in its dimension numbers (field 30)."""
    return product(left, result, part_numbers(one.part(30), 1))


def product(left: Shape, result: Shape, summed: tuple[int, ...]) -> int | None:
    """A product of matrices; ``summed`` are dimensions of the left one."""
    if not left.bits or not result.bits or any(not 0 <= at < len(left.dims) for at in summed):
        return None
    return 2 * result.elements * prod(left.dims[at] for at in summed)


def convolution(one: Instruction, image: Shape, kernel: Shape, result: Shape) -> int | None:
    """A convolution with its window (field 15) and dimension numbers (field 16), whichever of the three is computed."""
    numbers = one.part(16)
    spatial = [part_numbers(numbers, field) for field in (11, 6, 12)]
    window = parts(one.part(15), 1)
    if len({len(window), *map(len, spatial)}) != 1:
        return None
    sizes = [_sizes(shape, at) for shape, at in zip((image, kernel, result), spatial, strict=True)]
    features, batch = (_sizes(image, (first_number(numbers, field),)) for field in (8, 7))
    out = _sizes(result, (first_number(numbers, 10),))
    if features is None or batch is None or out is None or None in sizes:
        return None
    groups, batches = (max(one.number(field, 1), 1) for field in (50, 58))
    places = 1
    for dimension, lengths in zip(window, zip(*(size or () for size in sizes), strict=True), strict=True):
        valid = _valid(dimension, *lengths)
        if valid is None:
            return None
        places *= valid
    return 2 * (features[0] // groups) * out[0] * (batch[0] // batches) * places


def _sizes(shape: Shape, at: tuple[int, ...]) -> tuple[int, ...] | None:
    return tuple(shape.dims[one] for one in at) if all(0 <= one < len(shape.dims) for one in at) else None


def _valid(dimension: bytes, image: int, kernel: int, result: int) -> int | None:
    """How many pairs of a place of the kernel and one of the result meet an element of the image."""
    stride, low, spread, holes = (first_number(dimension, field) for field in (2, 3, 5, 6))
    stride, spread, holes = max(stride, 1), max(spread, 1), max(holes, 1)
    if kernel * result > _MOST_PLACES:
        return None if holes > 1 or stride > 1 else _without_holes(image, kernel, result, (low, spread))
    at = np.arange(result)[:, None] * stride - low + np.arange(kernel)[None, :] * spread
    return int(((at % holes == 0) & (at >= 0) & (at // holes < image)).sum())


def _without_holes(image: int, kernel: int, result: int, pads: tuple[int, int]) -> int | None:
    """The same in closed form for each place of the kernel."""
    if kernel > _MOST_PLACES:
        return None
    base = pads[0] - np.arange(kernel) * pads[1]
    return int(np.maximum(np.minimum(image + base, result) - np.maximum(base, 0), 0).sum())
