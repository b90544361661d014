"""Python functions that compiled programs call on the host: when a device waited for them, and which they are."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.frame import parse_frame
from stepscope.analysis.host import HostActivity
from stepscope.analysis.limits import TOLD_SHARE
from stepscope.analysis.waits import callback_waits
from stepscope.analysis.where import Where
from stepscope.names.host_callbacks import hands_on, wraps_callback
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, marked, used_codes
from stepscope.trace.forest import is_outermost, outermost
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows
from stepscope.trace.trace import Trace

_NUMBER = regex(r"(?:\.\d+)+$")
JAXS_OWN = ("debug_print",)
"""Ops that call no function of the user's."""
_LOOKED_AT = 100
"""Waits whose function is looked up: the longest."""


@record
class HostCallback:
    """All calls that one op of a program makes, in the used steps."""

    op: str
    """The op without its number, or JAX's wrapper where no op was recorded."""
    slices: I32
    """Of each call, longest first."""
    ns: int
    """Idle time of the device in them."""
    functions: tuple[Where, ...]
    """The user's function that ran most of the time; empty where none did, or no Python was recorded."""


def callback_slices(trace: Trace, host: HostActivity, device: int) -> I32:
    """Where a device's program called Python: its own waits for it, else the ranges of host threads that run it."""
    drawn = trace.device_waits.slice[callback_waits(trace, device)]
    return drawn if drawn.size else host.called_python


def host_callbacks(trace: Trace, host: HostActivity, account: Account, rows: list[int]) -> tuple[HostCallback, ...]:
    """What a device waited for in some rows of its account, the op that took longest first."""
    device = account.rows.device
    if account.idle is None or device is None or not rows:
        return ()
    calls = callback_slices(trace, host, device)
    pieces = account.idle.pieces
    waiting = pieces.category == Category.PYTHON.code
    bounds = account.rows.bounds
    used = iv.union(bounds[rows], bounds[np.array(rows) + 1])
    idle = iv.intersect(iv.union(pieces.start[waiting], pieces.end[waiting]), used)
    start = trace.slices.start_ns[calls]
    calls = calls[iv.covered_between(used, start, start + 1) > 0]
    start = trace.slices.start_ns[calls]
    cost = iv.covered_between(idle, start, start + trace.slices.dur_ns[calls])
    callbacks = [_of_op(trace, op, calls[mine], cost[mine]) for op, mine in _by_op(trace, calls).items()]
    return tuple(sorted((each for each in callbacks if each.ns), key=lambda each: -each.ns))


def _by_op(trace: Trace, calls: I32) -> dict[str, Bools]:
    names = trace.slices.name[calls]
    codes = used_codes(names, len(trace.strings)).tolist()
    ops = dict.fromkeys(_op(trace.strings[code]) for code in codes)
    return {op: among(names, [code for code in codes if _op(trace.strings[code]) == op]) for op in ops}


def _op(name: str) -> str:
    frame = parse_frame(name)
    return frame.function if frame else _NUMBER.sub("", name)


def _of_op(trace: Trace, op: str, calls: I32, cost: I64) -> HostCallback:
    calls = calls[np.argsort(-cost, kind="stable")]
    functions = () if op in JAXS_OWN else _functions(trace, calls[:_LOOKED_AT])
    return HostCallback(op, calls, int(cost.sum()), functions)


def _functions(trace: Trace, calls: I32) -> tuple[Where, ...]:
    """The user's functions that ran in some calls: on whichever thread JAX's wrapper began during one."""
    slices = trace.slices
    frames = np.where(slices.kind == Kind.PYTHON_FRAME, slices.name, np.int32(-1))
    wrappers = np.flatnonzero(mapped(frames, trace.strings, wraps_callback, np.bool_))
    is_wrapper = marked(wrappers, len(slices))
    own = mapped(frames, trace.strings, _is_users, np.bool_) & (outermost(is_wrapper, slices.parent) >= 0)
    rows = np.flatnonzero(is_outermost(own, slices.parent))
    total: dict[Where, int] = {}
    looked_at = 0
    for call in calls.tolist():
        begun, ended = int(slices.start_ns[call]), trace.end_ns(call)
        inside = wrappers[(slices.start_ns[wrappers] >= begun) & (slices.start_ns[wrappers] < ended)]
        if not inside.size:
            continue
        wrapper = int(inside[slices.dur_ns[inside].argmax()])
        looked_at += int(slices.dur_ns[wrapper])
        for row in rows[(slices.start_ns[rows] >= slices.start_ns[wrapper]) & _within(trace, rows, wrapper)].tolist():
            frame = parse_frame(trace.name_of(row))
            assert frame is not None
            where = Where(frame.file, frame.line, frame.function, defined=True)
            total[where] = total.get(where, 0) + int(slices.dur_ns[row])
    return tuple(where for where, ns in total.items() if ns >= TOLD_SHARE * looked_at)


def _within(trace: Trace, rows: Rows, wrapper: int) -> Bools:
    """Which slices lie inside of one, on its thread."""
    slices = trace.slices
    inside = (slices.start_ns[rows] + slices.dur_ns[rows] <= trace.end_ns(wrapper)) & (
        slices.track[rows] == slices.track[wrapper]
    )
    return np.asarray(inside & (slices.depth[rows] > slices.depth[wrapper]))


def _is_users(name: str) -> bool:
    frame = parse_frame(name)
    return frame is not None and frame.is_users and not hands_on(name)
