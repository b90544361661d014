"""What kind of slice each event is: by the role of its line, its name, and the statistics that tell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.formats import xla_details as details
from stepscope.formats.xplane.grouping import dense
from stepscope.formats.xplane.hosts import call_kind, host_kind, is_from_python, runs_python
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.times import EventTimes
from stepscope.formats.xplane.view import View
from stepscope.formats.xplane.xla import SpaceXlaOps
from stepscope.names.hosts import step_marker
from stepscope.names.kernels import describe
from stepscope.names.xla_hosts import XlaRole, classify_xla_name
from stepscope.trace import intervals as iv
from stepscope.trace import tables as t
from stepscope.trace.codes import used_codes

_OF_ROLE = {
    LineRole.HOST_OTHER: t.Kind.OTHER,
    LineRole.STEPS: t.Kind.STEP,
    LineRole.MODULES: t.Kind.MODULE,
    LineRole.DERIVED: t.Kind.DEVICE_ANNOTATION,
    LineRole.OVERHEAD: t.Kind.OVERHEAD,
    LineRole.COUNTERS: t.Kind.OTHER,
    LineRole.OTHER: t.Kind.OTHER,
    LineRole.STREAM: t.Kind.KERNEL,
    LineRole.HOST: t.Kind.HOST_OP,
}
_DETAIL_KINDS = {
    "memcpy_details": t.Kind.COPY,
    "Memset_details": t.Kind.MEMSET,
    "memalloc_details": t.Kind.ALLOCATION,
    "MemFree_details": t.Kind.ALLOCATION,
    "MemoryResidency_details": t.Kind.ALLOCATION,
}


def kinds_of(view: View, times: EventTimes, ops: SpaceXlaOps) -> t.U8:
    """The kind of every event, were it a slice."""
    by_role = np.array([_OF_ROLE[role] for role in LineRole], np.uint8)
    kinds = view.of_lines(by_role[view.role]) if len(view.lines) else np.zeros(0, np.uint8)
    on_host, on_stream = view.on(LineRole.HOST), view.on(LineRole.STREAM)
    _host(view, times, kinds, on_host)
    _by_name(view, kinds, on_stream, _device_kind)
    for key, kind in _DETAIL_KINDS.items():
        rows = view.space.stats.rows(key)
        kinds[rows[on_stream[rows]]] = kind
    columns = ops.columns
    on_device = on_stream[columns.rows] | np.isin(columns.rows, ops.on_processor)
    kinds[columns.rows[~on_device]] = t.Kind.HOST_OP
    computes = on_device & ~np.isin(kinds[columns.rows], (t.Kind.COPY, t.Kind.MEMSET, t.Kind.ALLOCATION))
    kinds[columns.rows[computes & (kinds[columns.rows] != t.Kind.COLLECTIVE)]] = t.Kind.KERNEL
    kinds[columns.rows[computes & (columns.collective >= 0)]] = t.Kind.COLLECTIVE
    kinds[columns.rows[computes & columns.waiting]] = t.Kind.DEVICE_WAIT
    kinds[columns.rows[computes & columns.copied]] = t.Kind.COPY
    if view.is_own:
        own = view.own_kind < len(t.Kind)
        kinds[own] = view.own_kind[own]
    return kinds


def _host(view: View, times: EventTimes, kinds: t.U8, on_host: t.Bools) -> None:
    if not on_host.any():
        return
    python = on_host & view.of_lines(_python_lines(view, on_host))
    _by_name(view, kinds, python, _python_kind)
    _by_name(view, kinds, on_host & ~python, _pool_kind)
    _part_of_framework(view, times, kinds, on_host)
    calls = view.space.stats.rows("correlation_id").astype(np.intp)
    calls = calls[on_host[calls]]
    _by_name(view, kinds, calls, call_kind)
    steps = view.space.stats.rows("step_num")
    kinds[steps[on_host[steps]]] = t.Kind.STEP


def _part_of_framework(view: View, times: EventTimes, kinds: t.U8, on_host: t.Bools) -> None:
    """What lies inside a compilation or execution is no annotation of the user's: passes have names of all kinds."""
    framework = on_host & view.called(lambda name: classify_xla_name(name) in (XlaRole.COMPILE, XlaRole.EXECUTE))
    noted = on_host & (kinds == t.Kind.ANNOTATION)
    if not framework.any() or not noted.any():
        return
    rows = np.flatnonzero(framework | noted)
    framework, noted = framework[rows], noted[rows]
    # Lines one behind the other on one axis, so that all of them are looked at at once.
    lane = dense(view.events.line[rows])[0]
    start = times.start[rows] - times.start[rows].min()
    end = start + times.dur[rows]
    reach = int(end.max()) + 1
    if reach > (1 << 62) // (int(lane.max()) + 1):
        return
    start, end = start + lane * reach, end + lane * reach
    begin, over = iv.union(start[framework], end[framework])
    at = np.searchsorted(begin, start[noted], "right") - 1
    inside = (at >= 0) & (end[noted] <= np.append(over, 0)[at])
    kinds[rows[noted][inside]] = t.Kind.HOST_OP


def _python_lines(view: View, on_host: t.Bools) -> t.Bools:
    """Which threads run Python: by their name, or because of what they hold: frames, calls from Python, steps."""
    is_python = np.array(
        [runs_python(shown or name) for name, shown in zip(view.lines.names, view.lines.displayed, strict=True)]
    )
    is_python |= view.lines_with(view.called(is_from_python) & on_host)
    is_python[view.events.line[view.space.stats.rows("step_num")]] = True
    return is_python


def _by_name(view: View, kinds: t.U8, chosen: t.Rows | t.Bools, kind_of: Callable[[str], t.Kind]) -> None:
    """Set the kind of events by their name, asked once per distinct name."""
    names, codes = view.names, view.name[chosen]
    table = np.zeros(len(names), np.uint8)
    used = used_codes(codes, len(names))
    table[used] = [kind_of(names[code]) for code in used.tolist()]
    kinds[chosen] = table[codes]


def _python_kind(name: str) -> t.Kind:
    kind = host_kind(name, on_python=True)
    return t.Kind.STEP if kind is t.Kind.ANNOTATION and step_marker(name) is not None else kind


def _pool_kind(name: str) -> t.Kind:
    return host_kind(name, on_python=False)


def _device_kind(name: str) -> t.Kind:
    if details.is_copy(name):
        return t.Kind.COPY
    if details.is_memset(name):
        return t.Kind.MEMSET
    return t.Kind.KERNEL if describe(name).collective is None else t.Kind.COLLECTIVE
