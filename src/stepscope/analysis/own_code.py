"""Which Python frames and ranges are of the program that was profiled, and which of what it uses."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.frame import is_in_framework, parse_frame
from stepscope.names.frames import hands_on
from stepscope.trace.codes import looked_up, mapped
from stepscope.trace.forest import inherit
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, Bools, Kind, Rows
from stepscope.trace.trace import Trace


def is_programs(trace: Trace, rows: Rows) -> Bools:
    """Which of some slices are ranges, functions of the program's own, or called by one."""
    slices = trace.slices
    frame = np.where(slices.kind == Kind.PYTHON_FRAME, slices.name, np.int32(-1))
    caller = np.append(inherit(frame, slices.parent), np.int32(-1))[slices.parent[rows]]
    own, called = (mapped(names, trace.strings, is_users, np.bool_) for names in (slices.name[rows], caller))
    return np.asarray(own | called | (slices.kind[rows] == Kind.ANNOTATION))


def asking(trace: Trace) -> I32:
    """Per slice, the innermost function around it that asked for it, -1 for none: not one through which PyTorch hands
    on what is asked (a tensor's own, ``torch.functional``)."""
    slices = trace.slices
    asks = (slices.kind == Kind.PYTHON_FRAME) & ~mapped(slices.name, trace.strings, hands_on, np.bool_)
    own = np.where(asks, np.arange(len(slices), dtype=np.int32), np.int32(-1))
    return looked_up(np.append(inherit(own, slices.parent), np.int32(-1)), slices.parent)


@shared
def in_framework(trace: Trace) -> Bools:
    """Whether each slice is a Python frame in a file of JAX, TensorFlow or Keras; one more, False, is for no slice."""
    slices = trace.slices
    inside = mapped(slices.name, trace.strings, is_in_framework, np.bool_)
    return np.append(inside & (slices.kind == Kind.PYTHON_FRAME), np.False_)


def is_users(name: str) -> bool:
    """Whether a frame is of the program's own code."""
    frame = parse_frame(name)
    return frame is not None and frame.is_users
