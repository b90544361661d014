"""The backbone: every nanosecond of every device booked exactly once.

Per device the rows tile the time from the first op or marker to the last op, and the categories of each row are
integers that sum to the row's duration exactly. ``check`` verifies both and is called on every profile.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from stepscope.analysis.categories import CATEGORIES, HOST_CAUSES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.host import HostActivity
from stepscope.analysis.idle import Idle, explain_idle
from stepscope.analysis.once import Once, OneTimeWork
from stepscope.analysis.step_rows import DeviceRows, device_rows
from stepscope.analysis.steps import Markers
from stepscope.analysis.waits import awaited_ends
from stepscope.errors import TraceInvariantError
from stepscope.names.collectives import tensorflow_collective
from stepscope.names.xla_hosts import INPUT_THREAD, XlaRole
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, mapped, used_codes
from stepscope.trace.forest import on_host_threads, outermost
from stepscope.trace.tables import I64, Bools, Kind
from stepscope.trace.trace import Trace

_COMPUTES = (
    Category.COMPUTE,
    Category.COLLECTIVE,
    Category.COLLECTIVE_WAIT,
    Category.COLLECTIVE_TRANSFER,
)
SPARSE = "sparse_core"
"""The kind of device that a sparse core is."""
_COLLECTIVE_RANGE = regex(r"(?:gloo|mpi|ucc|xccl|nccl):")
"""Annotations PyTorch writes around a collective, on the thread that carries it out."""


@record
class Account:
    """One device's time (or the host's, where the profile has no device): rows by category.

    ``parts`` has one row per row of ``rows`` and one column per ``CATEGORIES``, in ns.
    """

    rows: DeviceRows
    parts: I64
    idle: Idle | None
    between_steps_ns: I64
    """Per row, idle time in gaps that began where the row began: between the steps, not within one."""

    @property
    def duration_ns(self) -> I64:
        """Duration of each row."""
        return np.diff(self.rows.bounds)

    def step_rows(self, steps: tuple[int, ...]) -> list[int]:
        """The rows of some steps that have one."""
        return [row for row in map(self._row_of_step.get, steps) if row is not None]

    def windows(self, rows: list[int]) -> tuple[I64, I64]:
        """When some rows begin and end."""
        first = np.array(rows, np.int64)
        return self.rows.bounds[first], self.rows.bounds[first + 1]

    def step_row(self, step: int) -> int | None:
        """The row of a step, None where there is none."""
        return self._row_of_step.get(step)

    @cached_property
    def _row_of_step(self) -> dict[int, int]:
        return {step: row for row, step in enumerate(self.rows.steps) if step is not None}


def accounts_of(trace: Trace, activities: list[DeviceActivity], host: HostActivity, markers: Markers) -> list[Account]:
    """One per device; where there is no device, one for the host (none without host threads)."""
    if activities:
        return account_devices(trace, activities, host, markers)
    account = account_host(trace, host, markers)
    return [] if account is None else [account]


def account_devices(
    trace: Trace, activities: list[DeviceActivity], host: HostActivity, markers: Markers
) -> list[Account]:
    """Book the time of every device."""
    awaited = awaited_ends(trace, activities)
    accounts = []
    busy = [activity.busy for activity in activities]
    one, several = iv.joined(busy), iv.overlapping(busy)
    for activity, ends in zip(activities, awaited, strict=True):
        rows = device_rows(activity, markers)
        others = iv.joined([iv.subtract(one, activity.busy), several])
        window = int(rows.bounds[0]), int(rows.bounds[-1])
        accounts.append(_account_device(activity, rows, explain_idle(trace, activity, host, ends, others, window)))
    return accounts


def _account_device(activity: DeviceActivity, rows: DeviceRows, idle: Idle) -> Account:
    idle = replace(idle, pieces=idle.pieces.cut_at(rows.bounds))
    parts = np.zeros((len(rows.steps), len(CATEGORIES)), np.int64)
    for start, end, codes in (activity.busy_pieces, (idle.pieces.start, idle.pieces.end, idle.pieces.category)):
        for code in distinct(codes):
            spans: iv.Intervals = start[codes == code], end[codes == code]
            parts[:, code] += iv.covered_between(spans, rows.bounds[:-1], rows.bounds[1:])
    account = Account(rows, parts, idle, _idle_at_start(rows, idle))
    check(account)
    return account


def _idle_at_start(rows: DeviceRows, idle: Idle) -> I64:
    """Idle time of each row that lies in the gap across its beginning (a row ends where an op ends)."""
    gaps = idle.gaps
    starts = rows.bounds[:-1]
    at = np.searchsorted(gaps.start, starts, "right") - 1
    inside = (at >= 0) & (gaps.end[at] > starts) if len(gaps) else np.zeros(starts.size, np.bool_)
    between = np.minimum(gaps.end[at], rows.bounds[1:]) - starts if len(gaps) else starts
    return np.where(inside, between, 0)


def unused_devices(accounts: list[Account], steps: tuple[int, ...], marked: Collection[int] = ()) -> frozenset[int]:
    """Devices that ran a kernel or a collective in fewer than half of some steps, where others did in more, and that
    mark no steps of their own (``marked``).

    What they do then (copies of data that was put there, clearing memory) follows the others' steps: a step that waits
    for such a copy waits on the device that computes, and is booked there. Empty where no device computed.
    """
    codes = [category.code for category in _COMPUTES]
    idle = [account for account in accounts if 2 * _steps_with(account, steps, codes) < max(len(steps), 1)]
    unused = {a.rows.device for a in idle if a.rows.device is not None and len(idle) < len(accounts)}
    return frozenset(int(device) for device in unused.difference(marked))


def cores_beside(trace: Trace, accounts: list[Account]) -> frozenset[int]:
    """Sparse cores of chips that compute: a step is the chip's, which waits for what it asked them to do, and they rest
    in between without anything being wrong."""
    kinds = {device.id: device.kind for device in trace.info.devices}
    cores = {int(a.rows.device) for a in accounts if a.rows.device is not None and kinds.get(a.rows.device) == SPARSE}
    return frozenset(cores) if len(cores) < len(accounts) else frozenset()


def _steps_with(account: Account, steps: tuple[int, ...], codes: list[int]) -> int:
    """In how many of some steps a device spent time on some categories."""
    return int(account.parts[account.step_rows(steps)][:, codes].any(axis=1).sum())


def account_host(trace: Trace, host: HostActivity, markers: Markers) -> Account | None:
    """Book the main thread's time where the profile has no device; None where there is no host thread either."""
    if host.main < 0:
        return None
    slices = trace.slices
    on_host = ~among(slices.kind, (Kind.OTHER, Kind.OVERHEAD))
    ends = slices.start_ns[on_host] + slices.dur_ns[on_host]
    bounds = np.append(markers.start, max(int(markers.end[-1]), int(ends.max())))
    phases: list[str] = ["step"] * len(markers)
    steps: list[int | None] = [*range(len(markers))]
    for at, paused in enumerate(np.flatnonzero(markers.gap_after).tolist()):
        behind = paused + at + 1
        bounds = np.insert(bounds, behind, markers.end[paused])
        phases.insert(behind, "gap")
        steps.insert(behind, None)
    if bounds[-1] > markers.end[-1]:
        bounds = np.insert(bounds, -1, markers.end[-1])
        phases, steps = [*phases, "after"], [*steps, None]
    first = int(slices.start_ns[on_host].min())
    if first < bounds[0]:
        bounds, phases, steps = np.insert(bounds, 0, first), ["before", *phases], [None, *steps]
    rows = DeviceRows(None, bounds, tuple(steps), tuple(phases))
    parts = np.zeros((len(steps), len(CATEGORIES)), np.int64)
    for cause, taken in _host_pieces(trace, host, (bounds[:1], bounds[-1:])):
        parts[:, cause.code] += iv.covered_between(taken, bounds[:-1], bounds[1:])
    account = Account(rows, parts, None, np.zeros(len(steps), np.int64))
    check(account)
    return account


def one_time_ns(account: Account, once: OneTimeWork, *kinds: Once) -> I64:
    """Per row, how long the device waited for one-time work of the host, of some kinds or any."""
    if account.idle is None:
        return np.zeros(len(account.rows.steps), np.int64)
    pieces = account.idle.pieces
    loading = pieces.category == Category.COMPILE.code
    spans = iv.intersect((pieces.start[loading], pieces.end[loading]), once.spans(*kinds))
    return iv.covered_between(spans, account.rows.bounds[:-1], account.rows.bounds[1:])


def host_time(trace: Trace, host: HostActivity, cause: Category, window: iv.Intervals) -> iv.Intervals:
    """When, inside a window, the account of the host books its time to a cause."""
    parts = [taken for booked, taken in _host_pieces(trace, host, window) if booked is cause]
    return iv.union(*(np.concatenate(part) for part in zip(iv.EMPTY, *parts, strict=True)))


def _host_pieces(trace: Trace, host: HostActivity, window: iv.Intervals) -> Iterator[tuple[Category, iv.Intervals]]:
    """A window of the host's time by cause: the first that applies takes it."""
    rest = window
    for cause, spans in [] if trace.completeness.nameless else _host_sets(trace, host):
        yield cause, iv.intersect(rest, spans)
        rest = iv.subtract(rest, spans)
    yield Category.UNKNOWN_HOST, rest


def _host_sets(trace: Trace, host: HostActivity) -> list[tuple[Category, iv.Intervals]]:
    """The main thread's causes in order; ops on any thread are computing, collectives count where exposed.

    Graphs run on other threads than the one that waits for them: a step that takes its batch there waits for input
    where nothing computes meanwhile.
    """
    slices, on_host = trace.slices, on_host_threads(trace)
    wraps = host.in_role(XlaRole.DISPATCH) | host.in_role(XlaRole.EXECUTE)
    ahead = among(slices.track, _tracks_called(trace, INPUT_THREAD))
    takes = host.causes == Category.INPUT.code
    stages = outermost(takes, slices.parent) >= 0  # what taking a batch consists of, the taking itself included
    ops = np.where((slices.kind == Kind.HOST_OP) & on_host, slices.name, np.int32(-1))
    exchanging: Bools = mapped(ops, trace.strings, _is_collective, np.bool_)
    exchanges = outermost(exchanging, slices.parent) >= 0
    computing = (slices.kind == Kind.HOST_OP) & on_host & ~wraps & ~ahead & ~stages & ~exchanges
    # Of nodes placed on a device whose work was not recorded, the launching is all there is.
    launching = (slices.kind == Kind.RUNTIME_CALL) & among(slices.track, host.pool)
    launching |= wraps & (slices.track == host.main) & (host.causes == Category.LAUNCH.code)
    talking = (slices.kind == Kind.ANNOTATION) & among(slices.name, _codes(trace, _COLLECTIVE_RANGE))
    talking |= exchanging
    causes = [(cause, host.time(host.main, cause)) for cause in HOST_CAUSES if cause is not Category.LAUNCH]
    return [
        *causes[:-1],
        (Category.HOST_COMPUTE, iv.of(trace.slices, computing)),
        (Category.INPUT, iv.of(trace.slices, host.takes_batch)),
        (Category.COLLECTIVE, iv.of(trace.slices, talking)),
        (Category.LAUNCH, iv.of(trace.slices, launching)),
        causes[-1],
    ]


def _is_collective(name: str) -> bool:
    return tensorflow_collective(name) is not None


def _codes(trace: Trace, pattern: re.Pattern[str]) -> list[int]:
    used = used_codes(trace.slices.name, len(trace.strings))
    return [code for code in used.tolist() if pattern.search(trace.strings[code])]


def _tracks_called(trace: Trace, pattern: re.Pattern[str]) -> list[int]:
    labels = trace.tracks.label.tolist()
    return [track for track, code in enumerate(labels) if code >= 0 and pattern.match(trace.strings[code])]


def check(account: Account) -> None:
    """Verify that the rows tile and that each row's parts sum to its duration, to the nanosecond.

    Raises TraceInvariantError otherwise.
    """
    durations = account.duration_ns
    if (durations < 0).any() or (account.parts < 0).any():
        raise TraceInvariantError("internal error: a row or category has negative time; please report this profile")
    if not np.array_equal(account.parts.sum(axis=1), durations):
        raise TraceInvariantError("internal error: the categories do not sum to the rows; please report this profile")
