"""Everything the analyses found out about one trace, computed once and read by rules and reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal

import numpy as np

from stepscope.analysis.accounting import Account, cores_beside
from stepscope.analysis.allocator import AllocatorCalls, allocator_calls
from stepscope.analysis.backpressure import FullQueue, full_queues
from stepscope.analysis.callbacks import callbacks_around
from stepscope.analysis.categories import Category
from stepscope.analysis.complete import StepContents, step_contents
from stepscope.analysis.contention import Contention, contention
from stepscope.analysis.copies import Copies
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.exchange.collectives import Collectives, collectives_of
from stepscope.analysis.graph_copies import GraphCopies, graph_copies
from stepscope.analysis.hlo.programs import TracePrograms
from stepscope.analysis.host import HostActivity
from stepscope.analysis.host_ops import host_ops
from stepscope.analysis.input_stages import InputStages, input_stages
from stepscope.analysis.inputs import InputRanges, input_ranges
from stepscope.analysis.kernels import KernelTable
from stepscope.analysis.launches import LaunchDelay, launch_delay
from stepscope.analysis.layers import Layers, layer_costs
from stepscope.analysis.lazy_metrics import LazyMetrics, lazy_metrics
from stepscope.analysis.limits import HOST_OP_NS, HOT_PYTHON_SHARE, RECURS_SHARE
from stepscope.analysis.logged_placement import LoggedOp, logged_ops
from stepscope.analysis.memory import MemoryUse, memory_use
from stepscope.analysis.once import Once, OneTimeWork
from stepscope.analysis.ops import OpTable, Windows, op_table
from stepscope.analysis.phases import Phase, loss_scale_branch
from stepscope.analysis.placement import Placement, compiled_only, place_ops
from stepscope.analysis.prologues import Prologues, prologues
from stepscope.analysis.recording import NOTHING_KNOWN, RecordedRun
from stepscope.analysis.roofline import Work, device_work
from stepscope.analysis.sampling import Sampling, sampling_of
from stepscope.analysis.silent import Silence, silence, silent_calls
from stepscope.analysis.slow_steps import SlowStep
from stepscope.analysis.step_rows import host_periods
from stepscope.analysis.steps import Markers
from stepscope.analysis.syncs import Sync, returning_syncs
from stepscope.analysis.where import Locator
from stepscope.analysis.worker_starts import WorkerStarts, worker_starts
from stepscope.analysis.workload import Workload, workload_of
from stepscope.analysis.xla import XlaFacts
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, united
from stepscope.trace.tables import I32, I64, Bools, Kind
from stepscope.trace.trace import Trace

Progress = Callable[[str, int, int], None]


@record
class Facts:
    """What is known about one trace. Lists per device run parallel to ``activities``."""

    trace: Trace
    activities: list[DeviceActivity]
    host: HostActivity
    locator: Locator
    markers: Markers
    complete: tuple[bool, ...]
    used: tuple[int, ...]
    """Steps that costs and shares are of: complete ones but slow ones; of four and more not the first and last."""
    slow: tuple[SlowStep, ...]
    """Steps set apart for a rare cause (``slow_steps``)."""
    accounts: list[Account]
    """One per device; where there is no device, one for the host (none without host threads)."""
    unused: frozenset[int]
    """Devices that computed nothing in the steps (``unused_devices``), and sparse cores beside their chips: no step
    time, mean or finding is theirs."""
    step_bounds: tuple[I64, I64]
    """When each step begins and ends on the devices that are used together (``joint_windows``), else on the host."""
    syncs: list[list[Sync]]
    copies: list[list[Copies]]
    phases: list[dict[Phase, int]]
    """Busy time of the used steps by phase."""
    kernels: KernelTable
    xla: XlaFacts | None
    """What XLA did; None for a profile without its ops."""
    run: RecordedRun = NOTHING_KNOWN
    """What the tool that recorded the profile says of it."""

    @cached_property
    def step_ns(self) -> I64:
        """Duration of each step: up to where the last device has done its part, else its host period. Without pauses
        steps add up to the time they cover, whatever the number of devices."""
        begun, over = self.step_bounds
        return over - begun

    @property
    def once(self) -> OneTimeWork:
        """What the host does once, however long the job runs."""
        return self.host.once

    @cached_property
    def devices(self) -> list[tuple[DeviceActivity, Account]]:
        """Each device with its account; none where the host was booked instead."""
        return list(zip(self.activities, self.accounts, strict=False))

    @cached_property
    def at(self) -> dict[int | None, int]:
        """Where each device stands among the accounts, and the host under None."""
        return {account.rows.device: at for at, account in enumerate(self.accounts)}

    @property
    def device_lost(self) -> bool:
        """Whether device activity is lost, or may be: the file was cut and what is left holds no kernel. Nothing can
        then be told of what a device, or a host without one, waits for."""
        completeness = self.trace.completeness
        if self.trace.info.header.get("deviceProperties") == []:
            return False  # PyTorch's profiler knew of no device
        computes = any((activity.category == Category.COMPUTE.code).any() for activity in self.activities)
        return completeness.device_damaged or (completeness.cut and not computes)

    @cached_property
    def working(self) -> list[Account]:
        """The accounts of the devices that are used; the host's where it was booked instead."""
        return [account for account in self.accounts if account.rows.device not in self.unused]

    @cached_property
    def beside(self) -> frozenset[int]:
        """Sparse cores of the chips whose steps these are."""
        return cores_beside(self.trace, self.accounts)

    @property
    def basis(self) -> Literal["device", "host"]:
        """Whether step times are the device's or the host's."""
        return "device" if self.activities else "host"

    @cached_property
    def used_ns(self) -> int:
        """Total duration of the used steps."""
        return int(self.step_ns[list(self.used)].sum())

    @cached_property
    def steps_apart(self) -> bool:
        """Whether devices mark the same steps at times of their own that have nothing in common: programs, of other
        processes perhaps, that were recorded together."""
        working = {account.rows.device for account in self.working}
        begins = [marks for device, marks in self.markers.own.items() if device in working]
        if len(begins) < 2 or not self.used:
            return False
        steps = list(self.used)
        last = np.maximum.reduce([start[steps] for start, _ in begins])
        return bool((last >= np.minimum.reduce([end[steps] for _, end in begins])).mean() > 0.5)

    def used_rows(self, account: Account) -> list[int]:
        """The rows of the used steps in an account."""
        return self._used_rows.get(id(account)) or account.step_rows(self.used)

    @cached_property
    def _used_rows(self) -> dict[int, list[int]]:
        """Of each of the accounts, which rules ask for again and again."""
        return {id(account): account.step_rows(self.used) for account in self.accounts}

    def in_used_steps(self, account: Account, times: I64) -> Bools:
        """Which times lie in the used steps of an account."""
        return among(account.rows.at(times), self.used_rows(account))

    def used_windows(self, account: Account) -> iv.Intervals:
        """When the used steps begin and end in an account."""
        return account.windows(self.used_rows(account))

    def per_step(self, total_ns: int) -> int:
        """A total over the used steps as a whole number of ns per step."""
        return round(total_ns / len(self.used)) if self.used else 0

    @cached_property
    def timed(self) -> tuple[int, ...]:
        """The used and the slow steps: what step times are quantiles of."""
        return tuple(sorted((*self.used, *(each.step for each in self.slow))))

    @cached_property
    def workload(self) -> Workload:
        """What kind of program this is: what advice has to fit."""
        return workload_of(self.trace, self.phases, is_capture=self.is_capture, ours=self.run.ours)

    @cached_property
    def is_capture(self) -> bool:
        """Whether this is a recording of graphs that are captured, and not of steps of which some capture."""
        if not self.once.mostly_capture or self.markers.inferred:
            return self.once.mostly_capture
        capturing = iv.covered_between(self.once.spans(Once.CAPTURE), self.markers.start, self.markers.end) > 0
        return 2 * int(capturing.sum()) >= len(self.markers)

    @cached_property
    def loads_recur(self) -> bool:
        """Whether code is loaded by calls of its own in step after step: then it is new code, not loaded once."""
        once, steps = self.once, list(self.used)
        rows = once.rows(Once.LOADING)
        rows = rows[self.trace.slices.kind[once.slice[rows]] == Kind.COMPILE]
        spans = iv.union(once.start[rows], once.end[rows])
        held = iv.covered_between(spans, self.markers.start[steps], self.markers.end[steps]) > 0
        return int(held.sum()) >= max(2, RECURS_SHARE * len(steps))

    @cached_property
    def step_contents(self) -> StepContents:
        """What each step holds."""
        return step_contents(self.trace, self.markers, self.activities, self.once)

    @cached_property
    def host_step_ns(self) -> I64:
        """From each step's start to that of the next one of its cycle; the last takes its own length."""
        return host_periods(self.markers)

    @cached_property
    def launching_tracks(self) -> list[int]:
        """The loop's tracks and every other one that launches."""
        launching = (distinct(activity.thread[activity.launched]) for activity in self.activities)
        return sorted({*self.host.loop, *self.host.backward}.union(*launching))

    @cached_property
    def callbacks(self) -> I32:
        """Per slice, the callback of a training loop around it, -1 for none."""
        return callbacks_around(self.trace)

    @cached_property
    def host_ops(self) -> I32:
        """Ops of launching threads that compute on the host; the branch of a loss scale computes nothing."""
        ops = host_ops(self.trace, self.host, HOST_OP_NS)
        mine = among(self.trace.slices.track[ops], self.launching_tracks) & ~loss_scale_branch(self.trace)[ops]
        return ops[mine]

    @cached_property
    def host_op_time(self) -> iv.Intervals:
        """When they ran."""
        return iv.of(self.trace.slices, self.host_ops)

    @cached_property
    def prologues(self) -> Prologues:
        """The way of compiled code to its first launch."""
        calls = [activity.call[activity.launched] for activity in self.activities]
        launches = united(np.concatenate([*calls, np.empty(0, np.int32)]))
        return prologues(self.trace, self.launching_tracks, launches)

    @cached_property
    def graph_copies(self) -> list[GraphCopies]:
        """Per device, the copies right before and after launches of graphs."""
        return [graph_copies(self.trace, activity, self.markers.start) for activity, _ in self.devices]

    @cached_property
    def silences(self) -> list[Silence]:
        """Per device, the Python functions among its launches that launch nothing and for which it waits."""
        if not self.used:
            return [Silence()] * len(self.devices)
        calls = silent_calls(self.trace, self.host, self.launching_tracks)
        least = round(HOT_PYTHON_SHARE * self.used_ns)
        return [
            silence(self.trace, self.host, calls, account, self.used_rows(account), least)
            for _, account in self.devices
        ]

    @cached_property
    def silent_time(self) -> iv.Intervals:
        """When a thread that launches was in one of them."""
        times = [silent.time for silent in self.silences]
        return iv.union(*(np.concatenate(part) for part in zip(iv.EMPTY, *times, strict=True)))

    @cached_property
    def full_queues(self) -> list[FullQueue]:
        """Launches that waited for room in a device's queue, per device of which some did."""
        return [] if self.sampling.sampled else full_queues(self.trace, self.activities)

    @cached_property
    def sampling(self) -> Sampling:
        """Whether only a part of what happened was recorded."""
        return sampling_of(self.trace, self.activities, self.once.captured)

    @cached_property
    def delays(self) -> list[LaunchDelay]:
        """Per device, the time from launches to the ops they start."""
        return [launch_delay(activity, account, self.used_rows(account)) for activity, account in self.devices]

    @cached_property
    def placement(self) -> Placement | None:
        """Where the ops of the used steps ran; None where that was not recorded, as for what XLA compiled, or
        where ops were captured and did not run."""
        if not self.used or self.is_capture or compiled_only(self.trace):
            return None
        begin, end = int(self.markers.start[self.used[0]]), int(self.markers.end[self.used[-1]])
        return place_ops(self.trace, begin, end, self.once.captured)

    @cached_property
    def logged_ops(self) -> tuple[LoggedOp, ...]:
        """Ops of the used steps on the host of which a log of device placement says so."""
        if not self.used:
            return ()
        first, last = self.used[0], self.used[-1]
        return logged_ops(self.trace, int(self.markers.start[first]), int(self.markers.end[last]))

    @cached_property
    def returning_syncs(self) -> list[Sync]:
        """The places that wait in every used step without being blocked, as what they wait for is done by then."""
        known = np.array([s for syncs in self.syncs for sync in syncs for s in sync.slices], np.int32)
        return returning_syncs(self.trace, self.host, self.locator, self.markers, self.used, known)

    @cached_property
    def ops(self) -> OpTable | None:
        """The ops of the used steps; None where none was recorded."""
        costs = [delay.median_ns for delay in self.delays if delay.median_ns is not None]
        return op_table(self.trace, self.activities, self.locator, self._windows, min(costs, default=None))

    @cached_property
    def layers(self) -> list[Layers]:
        """What each layer costs, per device; none where neither modules nor scopes were recorded."""
        return layer_costs(self.trace, self.activities, self._windows)

    @property
    def _windows(self) -> tuple[Windows, list[Windows]]:
        """The used steps on the host and on each device."""
        steps = list(self.used)
        start = self.markers.start[steps]
        return (start, start + self.host_step_ns[steps]), [self.used_windows(account) for _, account in self.devices]

    @cached_property
    def work(self) -> list[Work]:
        """Per device, the kernels and what the ops they work for cost."""
        periods = [(account.rows.bounds, self.used_rows(account)) for _, account in self.devices]
        return device_work(self.trace, self.activities, periods, self.programs)

    @cached_property
    def programs(self) -> TracePrograms:
        """What the compiled programs in the profile say of its ops."""
        return TracePrograms(self.trace)

    @cached_property
    def mean_step_ns(self) -> int | None:
        """Mean duration of the used steps: what parts, costs and savings are shares of."""
        return round(self.used_ns / len(self.used)) if self.used else None

    @cached_property
    def median_step_ns(self) -> int | None:
        """Median duration of the timed steps."""
        return int(np.median(self.step_ns[list(self.timed)])) if self.used else None

    @cached_property
    def collectives(self) -> Collectives:
        """What this rank exchanged with others."""
        return collectives_of(self.trace, self.activities, self.accounts, self.markers)

    @cached_property
    def contention(self) -> Contention | None:
        """Ops of launching threads that loader threads hold up; None where no contrast shows it."""
        blocked = np.concatenate([np.empty(0, np.int32), *(queue.slice for queue in self.full_queues)])
        return contention(self.trace, self.host, self.markers, self.used, self.activities, blocked)

    @cached_property
    def inputs(self) -> InputRanges | None:
        """What the training thread did in its input ranges; None without any."""
        return input_ranges(self.trace, self.host, self.markers, self.used)

    @cached_property
    def worker_starts(self) -> WorkerStarts | None:
        """Starts of a loader's worker processes; None where none is recorded."""
        return worker_starts(self.host, self.markers)

    @cached_property
    def input_stages(self) -> InputStages | None:
        """The input pipeline by stage, and its producers; None where nothing of it was recorded."""
        return input_stages(self.trace, self.host, self.markers, self.used, self.activities)

    @cached_property
    def memory(self) -> list[MemoryUse]:
        """Each allocator's memory; none where it was not recorded."""
        return memory_use(self.trace, self.markers, self.used, self.locator)

    @cached_property
    def lazy_metrics(self) -> LazyMetrics | None:
        """What PyTorch/XLA counted in the recorded window; None where that was not recorded."""
        return lazy_metrics(self.trace)

    @cached_property
    def allocator_calls(self) -> AllocatorCalls | None:
        """Calls of the used steps that take memory from the driver or give it back."""
        return allocator_calls(self.trace, self.markers, self.used)
