"""What a dispatcher's op says of the message it sends: bytes, type, and among how many ranks it is shared out."""

from __future__ import annotations

import json

import numpy as np

from stepscope.names.collectives import Collective, called, message_bytes
from stepscope.record import record
from stepscope.trace.trace import Trace


@record
class Message:
    """What one rank puts in."""

    bytes: int
    element: int
    """Bytes of an element."""
    ranks: int | None
    """Of the group: how many times an all-gather's output is its input, a reduce-scatter's input its output."""


def recorded_message(trace: Trace, row: int) -> Message | None:
    """The message of a host op, from its shapes; None where shapes or types are not recorded.

    An op that takes an output and an input (``_allgather_base_``) has the input last; lists of tensors have no type.
    """
    ops = trace.host_ops
    if ops.input_dims[row] < 0 or ops.input_types[row] < 0:
        return None
    try:
        shapes, kinds = json.loads(trace.strings[ops.input_dims[row]]), json.loads(trace.strings[ops.input_types[row]])
        tensors = [
            (int(np.prod(shape, dtype=np.int64)), kind)
            for shape, kind in zip(shapes, kinds, strict=True)
            if shape and all(type(n) is int for n in shape)
        ]
        sized = [(message_bytes(count, kind), message_bytes(1, kind)) for count, kind in tensors]
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return None
    known = [(size, element) for size, element in sized if size and element]
    if not known:
        return None
    size, element = known[-1]
    return Message(size, element, _ranks(called(trace.name_of(int(ops.slice[row]))), [one for one, _ in known]))


def _ranks(kind: Collective | None, sizes: list[int]) -> int | None:
    """How many ranks share an output and an input, of which one is so many times the other."""
    if len(sizes) != 2 or kind not in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER):
        return None
    large, small = sizes if kind is Collective.ALL_GATHER else sizes[::-1]
    return large // small if large % small == 0 else None
