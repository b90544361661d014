"""Which host call launched which device op: by correlation id, or by the run of the compiled module.

XLA runs a module as a whole: the call that executed it launched all its ops. Which run a call started is said by its
``run_id``, or by the id under which it handed the work over (context type PJRT, whose ids are run ids). A call may
name its device (``[5] CommonPjRtLoadedExecutable::Execute (jit_step)``); one that does is preferred to the call that
started all devices. Where no id tells, an op was launched by the call in which it ran, or in which its thread was
handed the task that ran it (straight or by way of other tasks); else the calls of a module on a device are its runs in
order, if there are as many of both and each call came first, or as their numbers or they themselves count on from one
that is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stepscope.formats.xplane.devices import Devices
from stepscope.formats.xplane.grouping import dense, distinct, grouped, match
from stepscope.formats.xplane.handovers import PJRT, REGION_START, REGION_STOP, Handovers
from stepscope.formats.xplane.moments import (
    EventStretches,
    OnLines,
    around_or_of_task,
    first_from,
    outermost_around,
    task_of,
)
from stepscope.formats.xplane.times import EventTimes
from stepscope.formats.xplane.view import View
from stepscope.formats.xplane.xla import SpaceXlaOps
from stepscope.names.calls import is_graph_launch
from stepscope.names.xla_hosts import xla_execution
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import among, united
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, Kind, LaunchBasis, Rows

_CALL_KINDS = (Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)
_OF_ONE_PROGRAM = 1 << 16
_RUN_MASK = (1 << 27) - 1
"""A TPU keeps these bits of the host's run id (tsl/profiler/utils/preprocess_xplane.h)."""


@record
class Launch:
    """Per device op the event of the call (-1: none recorded), and how it was found."""

    call: Rows
    basis: U8


@record
class _Executes:
    """Calls that execute modules, earliest first: event, device and run (NULL where not told), module (-1)."""

    rows: Rows
    device: I64
    run: I64
    module: I32

    def of(self, chosen: Bools) -> _Executes:
        """Some of them."""
        return _Executes(self.rows[chosen], self.device[chosen], self.run[chosen], self.module[chosen])


class HostSlices(NamedTuple):
    """Per event whether it became a slice of the host, and the kind of every one."""

    chosen: Bools
    kinds: U8


class LaunchFinder:
    """Finds the launches of one file's device ops."""

    def __init__(
        self,
        view: View,
        times: EventTimes,
        on_host: HostSlices,
        xla: SpaceXlaOps,
        handovers: Handovers,
        devices: Devices,
    ) -> None:
        self._view, self._times, self._on_host = view, times, on_host
        self._xla, self._handovers, self._devices = xla, handovers, devices

    def of(self, ops: Rows, device: I32) -> Launch:
        """The launch of each op."""
        call, basis = self._by_correlation(ops)
        missing = call < 0
        call[missing] = self._by_run(ops[missing], device[missing])
        basis[missing] = LaunchBasis.EXECUTION
        return Launch(call, basis)

    # --- correlation ----------------------------------------------------------------------------------------------

    def _by_correlation(self, ops: Rows) -> tuple[Rows, U8]:
        view, stats = self._view, self._view.space.stats
        calls = stats.rows("correlation_id").astype(np.intp)
        calls = calls[self._on_host.chosen[calls] & np.isin(self._on_host.kinds[calls], _CALL_KINDS)]
        if not calls.size:
            return np.full(ops.size, -1, np.intp), np.zeros(ops.size, np.uint8)
        # Where two calls share an id (a driver call inside a runtime call) the outer, earlier one is the launch.
        calls = self._earliest_first(calls)
        at = match(
            [self._process(ops), stats.integers("correlation_id", ops)],
            [self._process(calls), view.space.stats.integers("correlation_id", calls)],
        )
        at[stats.integers("correlation_id", ops) == NULL] = -1
        call = _picked(calls, at)
        is_graph = np.array([is_graph_launch(name) for name in view.names] + [False])
        basis = np.where(is_graph[view.name[call]] & (call >= 0), LaunchBasis.GRAPH, LaunchBasis.CORRELATION)
        return call, basis.astype(np.uint8)

    def _process(self, rows: Rows) -> I64:
        """A number per process: ids are unique in one."""
        _, numbers = np.unique([parts.process for parts in self._view.planes], return_inverse=True)
        return numbers[self._view.lines.plane[self._view.events.line[rows]]] if rows.size else np.empty(0, np.int64)

    def _earliest_first(self, calls: Rows) -> Rows:
        return calls[np.lexsort((-self._times.dur[calls], self._times.start[calls]))]

    # --- execution ------------------------------------------------------------------------------------------------

    def _by_run(self, ops: Rows, device: I32) -> Rows:
        columns = self._xla.columns
        call = np.full(ops.size, -1, np.intp)
        at = np.searchsorted(columns.rows, ops)
        at[at == columns.rows.size] = 0
        is_op = columns.rows[at] == ops if columns.rows.size else np.zeros(ops.size, np.bool_)
        if not is_op.any():
            return call
        at, device = at[is_op], device[is_op]
        calls = self._by_id(columns.run[at], device)
        for others in (self._by_thread, self._in_order):
            left = calls < 0
            if left.any():
                calls[left] = others(at[left], device[left], calls)
                self._one_run_each(at, device, calls)
        self._by_number(at, device, calls)
        self._between_known(at, device, calls)
        call[is_op] = calls
        return call

    def _one_run_each(self, at: Rows, device: I32, calls: Rows) -> None:
        """Take back the calls of all but the first run of each on a device: a run that was queued is often begun by the
        task that ends the run before it, and was asked for by another call."""
        columns, start = self._xla.columns, self._times.start
        told = np.flatnonzero((calls >= 0) & (columns.run[at] != NULL))
        told = told[np.argsort(start[columns.rows[at[told]]], kind="stable")]
        if told.size:
            group, first = dense(calls[told], device[told])
            run = columns.run[at[told]]
            calls[told[run != run[first][group]]] = -1

    @cached_property
    def _executes(self) -> _Executes:
        """The calls that execute modules, earliest first."""
        view, stats = self._view, self._view.space.stats
        told = [xla_execution(name) for name in view.names]
        executes = among(view.name, [code for code, call in enumerate(told) if call is not None])
        rows = self._earliest_first(np.flatnonzero(executes & self._on_host.chosen))
        text = view.builder.text
        ordinals = np.array([NULL if not call or call.device is None else call.device for call in told] + [NULL])
        modules = np.array([text(call.module) if call else -1 for call in told] + [-1], np.int32)
        device = ordinals.astype(np.int64)[view.name[rows]]
        for key in ("device_ordinal", "global_device_id"):
            device = np.where(device == NULL, stats.sizes(key, rows), device)
        run = stats.integers("run_id", rows)
        for ends in (self._handovers.producers, self._handovers.consumers):
            if ends.rows.size:
                at = np.minimum(np.searchsorted(ends.rows, rows), ends.rows.size - 1)
                of_run = (ends.rows[at] == rows) & (ends.type[at] == PJRT) & (run == NULL)
                run[of_run] = ends.id[at[of_run]]
        module = np.where(modules[view.name[rows]] < 0, view.codes("name", rows), modules[view.name[rows]])
        return _Executes(rows, self._numbered(device), run, module)

    def _numbered(self, ordinals: I64) -> I64:
        """Device numbers of the ordinals that calls name."""
        used, each = distinct(ordinals)
        numbers = [self._devices.of_ordinal.get(ordinal, NULL) for ordinal in used.tolist()]
        return np.array(numbers, np.int64)[each] if numbers else ordinals

    def _by_id(self, run: I64, device: I32) -> Rows:
        """Calls that say which run they started."""
        known = self._executes.of(self._executes.run != NULL)
        each, first = dense(run, device)
        run, device = run[first], device[first]
        picked_calls = _of_run(known, known.run, run, device)
        masked = np.flatnonzero((picked_calls < 0) & np.isin(device, self._devices.numbers("tpu")))
        picked_calls[masked] = _of_run(known, known.run & _RUN_MASK, run[masked], device[masked])
        return picked_calls[each]

    def _by_thread(self, at: Rows, device: I32, calls: Rows) -> Rows:
        """The outermost call in which an op ran, or in which its thread was handed the task that ran it.

        What is known of one op of an execution is known of all.
        """
        columns, events = self._xla.columns, self._view.events
        ops, execution = columns.rows[at], columns.execution[at]
        call = around_or_of_task(self._executes_on, self._tasks, ops, events)
        left = np.flatnonzero((call < 0) & (execution != NULL))
        if left.size:
            told = np.flatnonzero((call >= 0) & (execution != NULL))
            told = told[dense(execution[told], device[told], call[told])[1]]
            told = told[np.lexsort((told, events.start_ns[call[told]]))]
            same = match([execution[left], device[left]], [execution[told], device[told]])
            call[left] = _picked(call[told], same)
        return call

    @cached_property
    def _executes_on(self) -> EventStretches:
        """The calls that start a module."""
        view, known = self._view, self._executes.rows
        continues = np.array([is_continuation(name) for name in view.names] + [False])
        lines = OnLines.of(known[~continues[view.name[known]]], view.events.line, view.events.start_ns)
        return EventStretches(lines, lines.start + view.events.dur_ns[lines.rows], lines.rows)

    @cached_property
    def _tasks(self) -> EventStretches:
        """The tasks of threads of pools, each with the call in which it was handed to them (-1: none recorded)."""
        view, events = self._view, self._view.events
        source, target = self._handovers.pairs
        is_begin = view.called(REGION_START.__eq__)[target]
        handed_by = np.empty(len(events), np.intp)
        handed_by[target[is_begin]] = source[is_begin]
        tasks = OnLines.of(target[is_begin], events.line, events.start_ns)
        stops = np.flatnonzero(view.called(REGION_STOP.__eq__))
        stop = first_from(stops, tasks, events.line, events.start_ns)
        until = np.where(stop < 0, np.iinfo(np.int64).max, events.start_ns[stop])
        by = handed_by[tasks.rows]
        line, begun = events.line[by], events.start_ns[by]
        call = outermost_around(self._executes_on, line, begun, begun)
        # A task may be handed over from within another one: what launched that one launched it too.
        before = task_of(EventStretches(tasks, until, np.arange(by.size)), line, begun)
        while (more := (call < 0) & (before >= 0) & (call[before] >= 0)).any():
            call[more] = call[before[more]]
        return EventStretches(tasks, until, call)

    def _in_order(self, at: Rows, device: I32, launched_by: Rows) -> Rows:
        """The calls of a module in order, where as many are left as executions of it on the device."""
        columns, start = self._xla.columns, self._times.start
        calls = self._calls_by_module(~np.isin(self._executes.rows, launched_by) & (self._executes.run == NULL))
        call = np.full(at.size, -1, np.intp)
        told = np.flatnonzero((columns.execution[at] != NULL) & (columns.module[at] >= 0))
        told = told[np.argsort(start[columns.rows[at[told]]], kind="stable")]
        for mine, ordered in self._with_calls(at, device, told, calls):
            _, first, run = np.unique(columns.execution[at[mine]], return_index=True, return_inverse=True)
            begun, in_time = start[columns.rows[at[mine[np.sort(first)]]]], np.argsort(np.argsort(first))
            if ordered.size == first.size and (start[ordered] <= begun).all():
                call[mine] = ordered[in_time[run]]
        return call

    def _by_number(self, at: Rows, device: I32, launched_by: Rows) -> None:
        """Fill in executions by the numbers of their runs, which count a module's calls: one known call tells all."""
        columns, start = self._xla.columns, self._times.start
        numbered = np.flatnonzero((columns.run[at] != NULL) & (columns.module[at] >= 0))
        if not (launched_by[numbered] < 0).any():
            return
        calls = self._calls_by_module(np.ones(self._executes.rows.size, np.bool_))
        for mine, ordered in self._with_calls(at, device, numbered, calls):
            told, left = mine[launched_by[mine] >= 0], mine[launched_by[mine] < 0]
            place = match([launched_by[told]], [ordered])
            offsets = united(columns.run[at[told[place >= 0]]] - place[place >= 0])
            if offsets.size != 1 or not left.size:
                continue
            nth = columns.run[at[left]] - offsets[0]
            called = _picked(ordered, np.where((nth >= 0) & (nth < ordered.size), nth, -1))
            launched_by[left] = np.where(start[called] <= start[columns.rows[at[left]]], called, -1)

    def _between_known(self, at: Rows, device: I32, launched_by: Rows) -> None:
        """Fill in executions of a module that come between two whose calls are known, where as many calls do, and those
        around all that are known: of what ran first some was called before the profile, and of the last calls some
        did not run before its end."""
        columns, start = self._xla.columns, self._times.start
        told = np.flatnonzero((columns.execution[at] != NULL) & (columns.module[at] >= 0))
        if not (launched_by[told] < 0).any():
            return
        told = told[np.argsort(start[columns.rows[at[told]]], kind="stable")]
        calls = self._calls_by_module(np.ones(self._executes.rows.size, np.bool_))
        for mine, ordered in self._with_calls(at, device, told, calls):
            _, first, run = np.unique(columns.execution[at[mine]], return_index=True, return_inverse=True)
            order = np.argsort(first)
            firsts = mine[first[order]]
            if _skips(columns.run[at[firsts]]):
                continue
            known = launched_by[firsts]  # Not all say of which module they are.
            ordered = self._earliest_first(united(ordered, known[known >= 0]))
            picked = _picked(ordered, _in_turn(match([known], [ordered]), ordered.size))
            picked[start[picked] > start[columns.rows[at[firsts]]]] = -1
            of_all = picked[np.argsort(order)[run]]
            launched_by[mine] = np.where(launched_by[mine] < 0, of_all, launched_by[mine])

    def _with_calls(
        self, at: Rows, device: I32, chosen: Rows, calls: dict[tuple[int, int], list[int]]
    ) -> Iterator[tuple[Rows, Rows]]:
        """Ops of one module on one device, in the order given, with the calls of that module in order."""
        columns, start = self._xla.columns, self._times.start
        only = np.unique(device).size == 1
        for _, places in grouped(dense(columns.module[at[chosen]], device[chosen])[0]):
            mine = chosen[places]
            module, number = int(columns.module[at[mine[0]]]), int(device[mine[0]])
            of = calls.get((module, number), []) + (calls.get((module, NULL), []) if only else [])
            yield mine, np.array(sorted(of, key=start.__getitem__), np.intp)

    def _calls_by_module(self, chosen: Bools) -> dict[tuple[int, int], list[int]]:
        """Module and device (NULL: not told) -> some of the calls, the outermost where they nest."""
        events, calls = self._view.events, self._executes.of(chosen)
        begun = events.start_ns[calls.rows]
        outer = outermost_around(self._executes_on, events.line[calls.rows], begun, begun) == calls.rows
        modules = np.where(calls.module < 0, self._dispatched(calls.rows), calls.module)
        by_module: dict[tuple[int, int], list[int]] = {}
        for row, module, number in zip(
            calls.rows[outer].tolist(), modules[outer].tolist(), calls.device[outer].tolist(), strict=True
        ):
            by_module.setdefault((module, number), []).append(row)
        return by_module

    def _dispatched(self, rows: Rows) -> I32:
        """The module that the jitted function around each event is compiled to, -1 for none: ``jit_`` and its name."""
        view, events = self._view, self._view.events
        named = [_JITTED.fullmatch(name) for name in view.names]
        modules = np.array([view.builder.text(f"jit_{of['name']}") if of else -1 for of in named] + [-1], np.int32)
        jitted = np.flatnonzero(among(view.name, np.flatnonzero(modules >= 0)))
        lines = OnLines.of(jitted, events.line, events.start_ns)
        calls = EventStretches(lines, lines.start + events.dur_ns[lines.rows], lines.rows)
        around = outermost_around(calls, events.line[rows], events.start_ns[rows], events.start_ns[rows])
        return np.where(around >= 0, modules[view.name[around]], -1).astype(np.int32)


_JITTED = regex(r"PjitFunction\((?P<name>[^()]+)\)")


def is_continuation(name: str) -> bool:
    """Whether an event runs part of a module that another thread had started."""
    return name.startswith("ThunkExecutor::")


def _skips(run: I64) -> bool:
    """Whether runs are missing: those of one program are numbered, from a number far from every other program's on."""
    apart = np.diff(united(run[run != NULL]))
    return bool(((apart > 1) & (apart < _OF_ONE_PROGRAM)).any())


def _in_turn(place: Rows, count: int) -> Rows:
    """Of executions in order, of which some have a place among the calls of their module (-1: not known), the places of
    all that follow from these; -1 where calls and executions between two are not as many."""
    known = np.flatnonzero(place >= 0)
    if not known.size or (np.diff(place[known]) <= 0).any():
        return np.full(place.size, -1, np.intp)
    of = np.arange(place.size)
    behind = np.searchsorted(known, of)
    before, after = known[np.maximum(behind - 1, 0)], known[np.minimum(behind, known.size - 1)]
    from_before, from_after = place[before] + of - before, place[after] + of - after
    agreed = np.where(
        behind == 0, from_after, np.where((behind == known.size) | (from_before == from_after), from_before, -1)
    )
    return np.where((agreed >= 0) & (agreed < count), agreed, -1)


def _of_run(calls: _Executes, runs: I64, wanted: I64, device: I32) -> Rows:
    """The call of each wanted run: that for the device, else that for all devices."""
    whole = np.flatnonzero(calls.device == NULL)
    own = match([wanted, device], [runs, calls.device])
    other = match([wanted], [runs[whole]])
    picked = np.where(own >= 0, _picked(calls.rows, own), _picked(calls.rows[whole], other))
    return np.where(wanted == NULL, -1, picked)


def _picked(rows: Rows, at: Rows) -> Rows:
    """The rows at some places, -1 where the place is -1."""
    return np.append(rows, -1)[at]
