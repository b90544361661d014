"""Python functions of the loop's thread by the time spent in their own code, where the host computes."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.frame import Frame
from stepscope.analysis.host import NO_CAUSE, HostActivity
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Locator
from stepscope.record import record
from stepscope.trace.codes import among, used_codes
from stepscope.trace.forest import outermost
from stepscope.trace.self_time import self_time
from stepscope.trace.tables import I64, Bools, Kind
from stepscope.trace.trace import Trace

_CODE = (Kind.PYTHON_FRAME, Kind.MODULE, Kind.ANNOTATION, Kind.STEP)


@record
class HotFunction:
    """All calls of a function of the program's own, or of a library that it uses."""

    frame: Frame
    ns: int
    """Time in its own code and in the framework's around its ops, without the ops, in the used steps."""
    slice: int
    """One of its slices: the longest stretch."""


def hot_functions(
    host: HostActivity, locator: Locator, markers: Markers, used: tuple[int, ...], but: Bools
) -> tuple[HotFunction, ...]:
    """The functions of the used steps, those with most time first; ``but`` are slices told elsewhere, with what is
    inside them."""
    trace, slices = host.trace, host.trace.slices
    if not len(slices):
        return ()
    own = _own(trace, markers)
    known = (host.causes != NO_CAUSE) | but
    step = np.searchsorted(markers.start, slices.start_ns, "right") - 1
    mine = (slices.track == host.main) & among(slices.kind, _CODE) & among(step, used)
    rows = np.flatnonzero(mine & (outermost(known, slices.parent) < 0))
    names = locator.functions[rows]
    functions = []
    for code in used_codes(names, len(trace.strings)).tolist():
        same = rows[names == code]
        frame = locator.frame(trace.strings[code])
        if frame is not None:
            functions.append(HotFunction(frame, int(own[same].sum()), int(same[own[same].argmax()])))
    return tuple(sorted(functions, key=lambda each: -each.ns))


def _own(trace: Trace, markers: Markers) -> I64:
    return self_time(trace.slices, int(markers.start[0]), int(markers.end[-1]))
