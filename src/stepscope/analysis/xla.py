"""What XLA adds to a profile: executions of compiled modules, duty cycle, compilations, and graph building.

The duty cycle of a device is the share of time in which it executed a module: from an execution's first op to its
last, gaps inside included (Cloud TPU's ``tensorcore duty cycle`` counts the same). It stands beside the share of time
in which ops ran, and is never smaller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.limits import UNMATCHED_SHARE
from stepscope.analysis.steps import Markers
from stepscope.names.xla_hosts import XlaRole, compiled_module
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, grouped
from stepscope.trace.forest import is_outermost, on_host_threads, outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, NULL, Bools, Kind, Rows, TrackKind
from stepscope.trace.trace import Trace

_NUMBER = regex(r"\.\d+$")
_SHAPE = regex(r"\w+\??\[[^\]]*\]")


@record
class ModuleExecutions:
    """The executions of modules on one device, in time order; one value per execution."""

    device: int
    start: I64
    end: I64
    module: I32
    """Dictionary code of the module's name, -1 where not recorded."""
    program: I64
    """Id of the compiled program, NULL where not recorded."""
    told: bool = True
    """Whether one is told from the next; else executions of one program behind each other are one here."""

    def __len__(self) -> int:
        """The number of executions."""
        return len(self.start)


@record
class DutyCycle:
    """How long one device executed modules, and how long its collectives ran, over the used steps."""

    device: int
    executions: int | None
    """None, as the next, where nothing tells one execution from the next."""
    executing_ns: int | None
    collective_ns: int
    """Union of the collectives' time, hidden or exposed."""
    window_ns: int

    @property
    def share(self) -> float | None:
        """The duty cycle; None where it is not known, and where no module executed on the device, which is not 0 %."""
        return self.executing_ns / self.window_ns if self.executing_ns and self.window_ns else None

    @property
    def collective_share(self) -> float | None:
        """Share of the steps in which collectives ran; None where no module executed."""
        return None if self.executing_ns == 0 or not self.window_ns else self.collective_ns / self.window_ns


@record
class Compilation:
    """One compilation in the profile."""

    slice: int
    step: int | None
    ns: int
    module: str | None
    """The module compiled, where a name tells it."""
    parameters: str | None
    """Types and shapes of the program's parameters."""
    previous: str | None
    """Those of the program of the same module that ran before; None where none did or they are not recorded."""
    again: bool
    """Whether another program of this module had run before in the profile."""

    @property
    def changed(self) -> str | None:
        """The parameters that are not those of the program before; None where that is not known.

        >>> Compilation(0, 0, 1, "jit_f", "f32[8], s32[]", "f32[4], s32[]", again=True).changed
        'parameter 0: f32[4] → f32[8]'
        """
        if self.parameters is None or self.previous is None:
            return None
        before, now = _SHAPE.findall(self.previous), _SHAPE.findall(self.parameters)
        if len(before) != len(now):
            return f"{len(before)} → {len(now)} parameters"
        pairs = enumerate(zip(before, now, strict=True))
        return ", ".join(f"parameter {at}: {old} → {new}" for at, (old, new) in pairs if old != new) or None


@record
class GraphBuilding:
    """Time the launching thread spent building graphs, and how much of it the devices worked through."""

    ns: int
    overlapped_ns: int


@record
class XlaFacts:
    """What is known of XLA's work in a trace."""

    duty: tuple[DutyCycle, ...]
    compilations: tuple[Compilation, ...]
    building: GraphBuilding | None
    """None where no graph was built in the used steps."""


def xla_facts(
    trace: Trace,
    activities: list[DeviceActivity],
    bounds: list[tuple[I64, I64]],
    host: HostActivity,
    markers: Markers,
    used: tuple[int, ...],
) -> XlaFacts | None:
    """What XLA did; None for a profile without its ops and compilations.

    ``bounds`` are, per device, the starts and ends of the rows of the ``used`` steps.
    """
    executions = [executions_of(trace, activity, host) for activity in activities]
    compilations = _compilations(trace, host, markers, executions)
    if not any(map(len, executions)) and not compilations:
        return None
    duty = tuple(map(_duty, activities, executions, bounds))
    running = [activity for activity, ran in zip(activities, executions, strict=True) if len(ran)]
    return XlaFacts(duty, compilations, _building(host, running or activities, markers, used))


def executions_of(trace: Trace, activity: DeviceActivity, host: HostActivity) -> ModuleExecutions:
    """The executions on a device: as its modules line draws them, else what each run's ops span together."""
    drawn = _drawn(trace, activity.device)
    if len(drawn) or not len(trace.xla_ops):
        return drawn
    row_of = np.full(len(trace.slices), -1, np.int32)
    row_of[trace.xla_ops.slice] = np.arange(len(trace.xla_ops), dtype=np.int32)
    ops = np.flatnonzero(row_of[activity.slice] >= 0)
    rows = row_of[activity.slice[ops]]
    key, known = _execution_keys(trace, activity, host, (ops, rows))
    missing = ~known & ~activity.before_profile[ops]
    told = int(missing.sum()) <= UNMATCHED_SHARE * ops.size
    if told:
        ops, rows, key = ops[known], rows[known], key[known]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    start, end = np.full(first.size, np.iinfo(np.int64).max), np.full(first.size, NULL)
    np.minimum.at(start, group, activity.start[ops])
    np.maximum.at(end, group, activity.end[ops])
    order = np.argsort(start, kind="stable")
    of = rows[first][order]
    module, program = trace.xla_ops.module[of], trace.xla_ops.program[of]
    return ModuleExecutions(activity.device, start[order], end[order], module, program, told)


def _drawn(trace: Trace, device: int) -> ModuleExecutions:
    tracks = trace.tracks
    lines = np.flatnonzero((tracks.kind == TrackKind.DEVICE_LINE) & (tracks.device == device))
    modules = np.flatnonzero(trace.slices.kind == Kind.MODULE)
    rows = modules[among(trace.slices.track[modules], lines)]
    rows = rows[np.argsort(trace.slices.start_ns[rows], kind="stable")]
    start = trace.slices.start_ns[rows]
    program = np.full(rows.size, NULL, np.int64)
    return ModuleExecutions(device, start, start + trace.slices.dur_ns[rows], trace.slices.name[rows], program)


def _execution_keys(
    trace: Trace, activity: DeviceActivity, host: HostActivity, places: tuple[Rows, I32]
) -> tuple[I64, Bools]:
    """Equal numbers for ops of one execution, and which are known: by run id, else by the execute call; else the number
    is that of an unbroken row of ops of one program.

    ``places`` are the ops and their rows of ``xla_ops``.
    """
    ops, rows = places
    run = trace.xla_ops.run[rows]
    if (run != NULL).any():
        # A run id is the host's: several programs may use it, so the program is part of the key.
        return _dense(run, trace.xla_ops.program[rows]), run != NULL
    calls = activity.call[ops]
    of = np.where(calls >= 0, _executing(host)[calls], -1).astype(np.int64)
    module, program = trace.xla_ops.module[rows].astype(np.int64), trace.xla_ops.program[rows]
    changes = np.concatenate(([0], np.cumsum((np.diff(module) != 0) | (np.diff(program) != 0)))) if rows.size else of
    return _dense(of, np.where(of >= 0, 0, changes)), of >= 0


@shared
def _executing(host: HostActivity) -> I32:
    """Per slice, the outermost execute call around it."""
    return outermost(host.in_role(XlaRole.EXECUTE), host.trace.slices.parent)


def _dense(*columns: I64) -> I64:
    return grouped(*columns)[1].astype(np.int64)


def _duty(activity: DeviceActivity, executions: ModuleExecutions, bounds: tuple[I64, I64]) -> DutyCycle:
    executing = iv.union(executions.start, executions.end)
    talking = activity.category == Category.COLLECTIVE.code
    collective = iv.union(activity.start[talking], activity.end[talking])
    inside = np.searchsorted(bounds[0], executions.start, "right") - 1
    counted = (inside >= 0) & (executions.start < bounds[1][inside]) if bounds[0].size else np.zeros(0, np.bool_)
    return DutyCycle(
        activity.device,
        int(counted.sum()) if executions.told else None,
        int(iv.covered_between(executing, *bounds).sum()) if executions.told else None,
        int(iv.covered_between(collective, *bounds).sum()),
        int((bounds[1] - bounds[0]).sum()),
    )


def _building(
    host: HostActivity, activities: list[DeviceActivity], markers: Markers, used: tuple[int, ...]
) -> GraphBuilding | None:
    """Graph building of the main thread in the used steps; overlapped is what every device that runs modules worked
    through."""
    if not activities or host.main < 0 or not used:
        return None
    until = np.where(markers.gap_after, markers.end, np.append(markers.start[1:], markers.end[-1]))
    steps = iv.union(markers.start[list(used)], until[list(used)])
    building = iv.subtract(host.time(host.main, Category.GRAPH_BUILD), host.time(host.main, Category.COMPILE))
    building = iv.intersect(building, steps)
    overlapped = building
    for activity in activities:
        overlapped = iv.intersect(overlapped, activity.busy)
    total = iv.measure(building)
    return GraphBuilding(total, iv.measure(overlapped)) if total else None


def _compilations(
    trace: Trace, host: HostActivity, markers: Markers, executions: list[ModuleExecutions]
) -> tuple[Compilation, ...]:
    """Compilations the main thread waited for, else those of any thread, in time order."""
    slices = trace.slices
    compiling = host.in_role(XlaRole.COMPILE) & on_host_threads(trace)
    rows = np.flatnonzero(is_outermost(compiling, slices.parent))
    mine = rows[slices.track[rows] == host.main]
    rows = mine if mine.size else rows
    rows = rows[np.argsort(slices.start_ns[rows], kind="stable")]
    if not rows.size:
        return ()
    named, runs = _module_names(trace), executions[0] if executions else None
    until = [*slices.start_ns[rows].tolist(), np.iinfo(np.int64).max][1:]
    return tuple(
        _compilation(trace, row, markers, _programs_around(trace, row, runs, named, limit))
        for row, limit in zip(rows.tolist(), until, strict=True)
    )


def _module_names(trace: Trace) -> list[tuple[int, str]]:
    """Every slice whose name tells which module is being compiled, as (start, module), in time order."""
    modules = []
    known = {code: module for code, name in enumerate(trace.strings) if (module := compiled_module(name))}
    rows = np.flatnonzero(among(trace.slices.name, list(known)))
    for row in rows.tolist():
        modules.append((int(trace.slices.start_ns[row]), known[int(trace.slices.name[row])]))
    return sorted(modules)


def _compilation(trace: Trace, row: int, markers: Markers, programs: _Programs) -> Compilation:
    start = int(trace.slices.start_ns[row])
    step = int(np.searchsorted(markers.start, start, "right")) - 1
    return Compilation(
        slice=row,
        step=step if step >= 0 else None,
        ns=int(trace.slices.dur_ns[row]),
        module=programs.module,
        parameters=_parameters(trace, programs.compiled),
        previous=_parameters(trace, programs.before),
        again=programs.before is not None,
    )


class _Programs(NamedTuple):
    """The module of a compilation, the program of it that first runs afterwards, and the one that last ran before."""

    module: str | None
    compiled: int | None = None
    before: int | None = None


def _programs_around(
    trace: Trace, row: int, runs: ModuleExecutions | None, named: list[tuple[int, str]], limit: int
) -> _Programs:
    """What a compilation made; where no name tells, the next program that is new, if it runs before the next
    compilation (``limit``). Lazy frameworks number their modules (``SyncTensorsGraph.81``): numbers do not count."""
    start, end = int(trace.slices.start_ns[row]), trace.end_ns(row)
    module = compiled_module(trace.name_of(row)) or next((m for at, m in named if start <= at <= end), None)
    if runs is None:
        return _Programs(module)
    known = np.flatnonzero((runs.program != NULL) & (runs.module >= 0))
    after, before = known[runs.start[known] >= end], known[runs.start[known] < start]
    if module is None:
        new = after[~among(runs.program[after], runs.program[before]) & (runs.start[after] < limit)]
        if not new.size:
            return _Programs(None)
        module = trace.strings[int(runs.module[new[0]])]
    ran = distinct(runs.module[known])
    kin = [code for code in ran if _unnumbered(trace.strings[code]) == _unnumbered(module)]
    after, before = after[among(runs.module[after], kin)], before[among(runs.module[before], kin)]
    return _Programs(
        module,
        int(runs.program[after[0]]) if after.size else None,
        int(runs.program[before[-1]]) if before.size else None,
    )


def _unnumbered(module: str) -> str:
    return _NUMBER.sub("", module)


def _parameters(trace: Trace, program: int | None) -> str | None:
    if program is None:
        return None
    rows = np.flatnonzero(trace.programs.program == program)
    code = int(trace.programs.parameters[rows[0]]) if rows.size else -1
    return trace.strings[code] if code >= 0 else None
