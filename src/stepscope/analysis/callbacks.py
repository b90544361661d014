"""Callbacks of training loops: which slices are inside one, and where the batches end that they are told of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.places import Place
from stepscope.analysis.where import Where
from stepscope.names.callbacks import (
    CallbackRole,
    callback_role,
    ended_batch,
    is_for_any_batch,
    is_for_every_batch,
    named_callback,
)
from stepscope.names.frames import frame_parts
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, looked_up, mapped, used_codes
from stepscope.trace.forest import is_outermost, outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import F64, I32, U8, Bools, Kind
from stepscope.trace.trace import Trace

_ROLES = (None, *CallbackRole)


def _lists(trace: Trace, roles: U8) -> Bools:
    """Frames that begin to call all callbacks: of Keras 2's only where its own way to them is seen too."""
    lists: Bools = roles == _ROLES.index(CallbackRole.LIST)
    old = roles == _ROLES.index(CallbackRole.OLD_LIST)
    if not lists.any() and (roles == _ROLES.index(CallbackRole.PASSES)).any():
        lists = old
    return is_outermost(lists, trace.slices.parent)


def _roles(trace: Trace) -> U8:
    """Per slice the place in ``_ROLES`` of what it does, 0 where it is no frame."""
    slices = trace.slices
    roles = mapped(slices.name, trace.strings, lambda name: _ROLES.index(callback_role(name)), np.uint8)
    return np.asarray(roles * (slices.kind == Kind.PYTHON_FRAME))


@shared
def callbacks_around(trace: Trace) -> I32:
    """Per slice, the outermost callback around it (or itself), -1 for none."""
    slices, strings = trace.slices, trace.strings
    chosen: Bools = mapped(slices.name, strings, lambda name: named_callback(name) is not None, np.bool_)
    chosen &= slices.kind == Kind.ANNOTATION
    if not chosen.any():  # With ranges, the frames of what made them are around the callbacks.
        chosen = _called(trace)
    if not chosen.any():
        return np.broadcast_to(np.int32(-1), len(slices))  # one number: most jobs have none
    return outermost(chosen, slices.parent)


def _called(trace: Trace) -> Bools:
    """Frames that are callbacks: what a list calls; of Keras's own method for every kind of batch, what that calls."""
    slices, strings, roles = trace.slices, trace.strings, _roles(trace)
    giving = _lists(trace, roles)
    if not giving.any():
        return giving
    giving |= roles == _ROLES.index(CallbackRole.PASSES)
    inside = (slices.parent >= 0) & looked_up(giving, slices.parent)
    free = ~giving & (roles != _ROLES.index(CallbackRole.HELPS))
    frame = slices.kind == Kind.PYTHON_FRAME
    called: Bools = frame & inside & free
    for_any = frame & mapped(slices.name, strings, is_for_any_batch, np.bool_)
    inner = np.flatnonzero(for_any & ~called & (slices.parent >= 0))
    hands_on = called & mapped(slices.name, strings, is_for_every_batch, np.bool_)
    inner = inner[hands_on[slices.parent[inner]]]
    called[slices.parent[inner]] = False
    called[inner] = True
    return called


@record
class BatchEnds:
    """Where a training loop told its callbacks of the ends of batches."""

    slice: I32
    """In order of time."""
    function: str


def batch_ends(trace: Trace) -> BatchEnds | None:
    """The ends of the kind of batches that has most of them; None where fewer than two are recorded."""
    roles = _roles(trace)
    rows = np.flatnonzero(_lists(trace, roles)).astype(np.int32)
    kinds = {code: ended_batch(trace.strings[code]) for code in distinct(trace.slices.name[rows])}
    ends = [rows[trace.slices.name[rows] == code] for code, kind in kinds.items() if kind is not None]
    most = max(ends, key=len, default=np.empty(0, np.int32))
    if most.size < 2:
        return None
    function = kinds[int(trace.slices.name[most[0]])]
    assert function is not None
    return BatchEnds(most[np.argsort(trace.slices.start_ns[most], kind="stable")], function)


def callback_time(trace: Trace, around: I32, tracks: Sequence[int]) -> iv.Intervals:
    """When one of some threads was in a callback."""
    rows = np.flatnonzero(around == np.arange(around.size, dtype=np.int32))
    rows = rows[among(trace.slices.track[rows], tracks)]
    return iv.of(trace.slices, rows)


def callbacks_in(trace: Trace, around: I32, slices: I32, weight: F64) -> tuple[Place, ...]:
    """The callbacks in which the time of some slices (-1: unknown) passes, longest first."""
    known = slices >= 0
    callback = np.where(known, around[slices], np.int32(-1))
    names = np.where(callback >= 0, trace.slices.name[callback], np.int32(-1))
    total = float(weight.sum())
    sums = {code: float(weight[names == code].sum()) for code in used_codes(names, len(trace.strings)).tolist()}
    return tuple(
        Place(where, name, round(ns), ns / total)
        for code, ns in sorted(sums.items(), key=lambda each: -each[1])
        for where, name in (_place(trace.strings[code]),)
    )


def _place(name: str) -> tuple[Where, str]:
    """A callback's method, and what it is called."""
    told, parts = named_callback(name), frame_parts(name)
    if told is not None:
        function, file, line = told
    elif parts is not None:
        file, line, function = parts
    else:
        return Where(), f"`{name}`"
    return Where(file, line, function, defined=True), f"`{function}` ({file}:{line})"
