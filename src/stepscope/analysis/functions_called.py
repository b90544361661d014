"""Calls of compiled functions from eager code, where nothing else says what a step is.

TensorFlow runs a ``tf.function`` as the op ``__inference_<name>_<number>``. Which function is called once per step is
decided as ``stepscope run`` decides it (``capture/steps.py``): the least frequent one that is not occasional, and of
equals the first within an iteration.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.limits import CALLS_OCCASIONAL, CALLS_REPEATED
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import mapped
from stepscope.trace.forest import is_outermost, on_host_threads
from stepscope.trace.tables import I32, Bools, Kind
from stepscope.trace.trace import Trace

_CALL = regex(r"^EagerLocalExecute: __inference_(?P<name>.+)_\d+$")
_LONGEST = 2_048


@record
class FunctionCalls:
    """The calls of one function."""

    slice: I32
    """In order of time, all of one thread."""
    function: str


def calls_of_functions(trace: Trace) -> FunctionCalls | None:
    """The calls of the function that is called once per step; None where none is called often enough."""
    slices = trace.slices
    rows = np.flatnonzero(_outermost_calls(trace)).astype(np.int32)
    if rows.size < CALLS_REPEATED:
        return None
    rows = rows[slices.track[rows] == np.bincount(slices.track[rows]).argmax()]
    rows = rows[np.argsort(slices.start_ns[rows], kind="stable")]
    by_name: dict[str, list[int]] = {}
    for row, code in zip(rows.tolist(), slices.name[rows].tolist(), strict=True):
        by_name.setdefault(_function(trace.strings[code]) or "", []).append(row)
    most = max(len(called) for called in by_name.values())
    often = [
        (name, called)
        for name, called in by_name.items()
        if len(called) >= CALLS_REPEATED and len(called) * CALLS_OCCASIONAL >= most
    ]
    if not often:
        return None
    fewest = min(len(called) for _, called in often)
    name, called = next((name, called) for name, called in often if len(called) <= fewest + 1)
    return FunctionCalls(np.array(called, np.int32), name)


def _outermost_calls(trace: Trace) -> Bools:
    slices = trace.slices
    ops = np.where(slices.kind == Kind.HOST_OP, slices.name, np.int32(-1))
    calls: Bools = mapped(ops, trace.strings, lambda name: _function(name) is not None, np.bool_)
    calls &= on_host_threads(trace)
    outer: Bools = is_outermost(calls, slices.parent)
    return outer


def _function(name: str) -> str | None:
    match = _CALL.match(name[:_LONGEST])
    return match["name"] if match else None
