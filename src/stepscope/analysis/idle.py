"""Why a device was idle: every gap, attributed through the op that ended it to what the host did meanwhile.

The launch instant is the start of the runtime call that launched the op. What lies before it
inside the gap is the host's time, booked to the first cause that applies; the call itself is launching; after the
call the device owes an answer. A gap that begins after the launch is the host's where the launch was still under way
to the device (what the host did is then looked for that much earlier), else the device's own. Host time that only
exists because a wait for the device had emptied the queue is booked to that wait, up to the lead the wait destroyed;
of several devices of one process, one idles all the time in which its host is blocked in a wait for another.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.device_gaps import Gaps, find_gaps
from stepscope.analysis.host import HostActivity
from stepscope.analysis.idle_pieces import Pieces, columns, in_order, kept, pieces_of, told_by_device, without
from stepscope.analysis.latency import latency_cap, time_between_launches, under_way
from stepscope.analysis.limits import TOLD_BY_TIME_NS
from stepscope.analysis.staging import staged
from stepscope.analysis.waits import callback_waits, drawn_waits, told_waits
from stepscope.compiled import kernel
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct
from stepscope.trace.tables import I32, I64, NULL, Bools, Rows
from stepscope.trace.trace import Trace

_MOVABLE = (
    np.array([Category.LAUNCH.code], np.uint8),
    np.array([Category.UNKNOWN_HOST.code], np.uint8),
    np.array([Category.PYTHON.code], np.uint8),
)
"""What a destroyed lead would have hidden, in the order in which the wait is to blame for it: launching, which any
program must do, before what could also go itself. Python code that was recorded stays booked to Python all the same:
it is what the host did, whatever the wait before it has to do with the device's having nothing left."""


@record
class IdleBlame:
    """Which waits for the device which gaps are due to; one value per pair. A gap's pairs sum to its ``sync`` time and
    to what of its Python code the host would have been ahead with."""

    gap: I32
    wait: I32
    """Slice of the host's wait that had emptied the queue."""
    ns: I64


@record
class Idle:
    """Why one device was idle."""

    gaps: Gaps
    pieces: Pieces
    causes: Pieces
    """The same before any of it was booked to the wait that had emptied the queue: what the host did meanwhile."""
    blame: IdleBlame
    latency_ns: int
    """The most that is booked to launch or device latency per gap."""
    under_way: Bools
    """Gaps that began after the launch of their op and ended when it arrived."""


def explain_idle(
    trace: Trace,
    activity: DeviceActivity,
    host: HostActivity,
    awaited: I64,
    others: iv.Intervals,
    window: tuple[int, int],
) -> Idle:
    """Attribute every idle nanosecond of a device in a window ``(start, end)``.

    ``awaited`` is, per op, the end of what a recorded wait made it wait for (``waits.awaited_ends``), ``others`` when
    other devices worked.
    """
    gaps = find_gaps(activity, *window)
    latency = latency_cap(activity, gaps)
    held = np.maximum(awaited[gaps.op], awaited[gaps.cause_op])
    arriving = under_way(activity, gaps) & (held <= gaps.start)
    arriving &= ~staged(trace, activity.row[gaps.cause_op])
    calls = _calls(trace, activity, gaps, np.flatnonzero((gaps.launch != NULL) & ~arriving), held)
    pieces = [
        *_queued(trace, activity, gaps, calls, latency, held),
        *_arriving(activity, gaps, arriving, host),
        *_unrecorded(trace, activity, gaps, host),
        *_host_time(gaps, host),
        *_in_call(trace, activity, gaps, calls, host),
        *_after_call(gaps, latency, held),
    ]
    pieces = told_by_device(pieces, told_waits(trace, activity.device))
    calling = iv.intersect((gaps.start, gaps.end), _callbacks(trace, activity.device))
    merged = in_order(without(pieces, calling), gaps)
    merged, meanwhile = _waits_for_others(gaps, merged, host, others)
    booked, blame = _blame_waits(activity, gaps, merged, host, meanwhile)
    # No wait for the device has to do with it that the device itself waits for Python.
    booked, merged = (in_order([part, pieces_of(calling, Category.PYTHON)], gaps) for part in (booked, merged))
    return Idle(gaps, booked, merged, blame, latency, arriving)


def _callbacks(trace: Trace, device: int) -> iv.Intervals:
    """When a device waited for a Python function that its program calls."""
    rows = trace.device_waits.slice[callback_waits(trace, device)]
    return iv.of(trace.slices, rows)


def _waits_for_others(
    gaps: Gaps, pieces: Pieces, host: HostActivity, others: iv.Intervals
) -> tuple[Pieces, list[IdleBlame]]:
    """Pieces in which the host is blocked in a wait while another device works are that wait's: it launches nothing."""
    launching = pieces.category == Category.LAUNCH.code
    blames: list[IdleBlame] = []
    waits, parts = host.waits, [Pieces(*(values[~launching] for values in columns(pieces)))]
    for thread in distinct(gaps.thread[pieces.gap[launching]]) if len(others[0]) else ():
        mine = launching & (gaps.thread[pieces.gap] == thread)
        rest = pieces.start[mine], pieces.end[mine]
        launching &= ~mine
        for track in dict.fromkeys((thread, host.main)):
            rows = np.flatnonzero(waits.track == track)
            rows = rows[np.argsort(waits.start[rows], kind="stable")]
            blocked = iv.intersect((waits.start[rows], waits.end[rows]), others)
            if track != thread:
                blocked = iv.subtract(blocked, host.active(thread))
            taken = iv.intersect(rest, blocked)
            rest = iv.subtract(rest, taken)
            wait = waits.slice[rows[np.searchsorted(waits.start[rows], taken[0], "right") - 1]]
            gap = np.searchsorted(gaps.start, taken[0], "right") - 1
            blames.append(IdleBlame(gap.astype(np.int32), wait, taken[1] - taken[0]))
            parts.append(pieces_of(taken, Category.SYNC))
        parts.append(pieces_of(rest, Category.LAUNCH))
    parts.append(Pieces(*(values[launching] for values in columns(pieces))))
    return (in_order(parts, gaps), blames) if blames else (pieces, blames)


def _queued(trace: Trace, activity: DeviceActivity, gaps: Gaps, calls: _Calls, latency: int, held: I64) -> list[Pieces]:
    """Gaps that began after the launch: what their ops waited for (``held``: until when) before the rest of its call
    and behind it, else latency, else the device alone knows."""
    queued = gaps.launch[calls.gap] < gaps.start[calls.gap]
    rows, begin, called = calls.gap[queued], calls.begin[queued], calls.end[queued]
    start, end = gaps.start[rows], gaps.end[rows]
    until = np.clip(held[rows], called, end)
    drawn = iv.intersect(kept(until, end), _drawn_waits(trace, activity, gaps, rows))
    rest = iv.subtract(kept(until, end), drawn)
    near = iv.intersect(rest, kept(until, np.minimum(until + latency, end)))
    return [
        pieces_of(kept(start, begin), Category.DEPENDENCY),
        pieces_of(kept(called, until), Category.DEPENDENCY),
        pieces_of(drawn, Category.DEPENDENCY),
        pieces_of(near, Category.DEVICE_LATENCY),
        pieces_of(iv.subtract(rest, near), Category.UNKNOWN_DEVICE),
    ]


def _drawn_waits(
    trace: Trace,
    activity: DeviceActivity,
    gaps: Gaps,
    rows: Rows,
) -> iv.Intervals:
    """When a wait was drawn on the very stream of the op that ended a gap."""
    stream_of_gap = activity.stream[gaps.cause_op[rows]]
    waits = [
        iv.intersect(
            drawn_waits(trace, activity.device, stream),
            (gaps.start[rows][stream_of_gap == stream], gaps.end[rows][stream_of_gap == stream]),
        )
        for stream in distinct(trace.device_waits.stream)
    ]
    return iv.union(*(np.concatenate(part) for part in zip(iv.EMPTY, *waits, strict=True)))


def _arriving(activity: DeviceActivity, gaps: Gaps, chosen: Bools, host: HostActivity) -> list[Pieces]:
    """Gaps that ended when a launch arrived: what the host did before that launch, as much later as it arrived."""
    length, later = time_between_launches(activity, gaps, chosen)
    launch, thread = gaps.launch[chosen], gaps.thread[chosen]
    order = np.argsort(launch, kind="stable")
    pieces = [pieces_of(kept(gaps.start[chosen], gaps.end[chosen] - length), Category.LAUNCH_LATENCY)]
    for track in distinct(thread):
        mine = order[thread[order] == track]
        begin, add = (launch - length)[mine], later[mine]
        for part in _of_thread((begin, launch[mine]), host, track):
            moved = add[np.searchsorted(begin, part.start, "right") - 1]
            pieces.append(Pieces(part.start + moved, part.end + moved, part.category, part.gap))
    return pieces


def _unrecorded(trace: Trace, activity: DeviceActivity, gaps: Gaps, host: HostActivity) -> list[Pieces]:
    """Gaps whose op has no recorded launch: nothing says what they waited for. Of a device that runs programs, and none
    of whose launches was recorded, what the host did at the time tells, in gaps that clocks can tell apart."""
    rows = gaps.launch == NULL
    spans: iv.Intervals = (gaps.start[rows], gaps.end[rows])
    if not told_by_time(trace, activity, host):
        return [pieces_of(spans, Category.UNKNOWN_DEVICE)]
    long = spans[1] - spans[0] >= TOLD_BY_TIME_NS
    rest, pieces = (spans[0][long], spans[1][long]), []
    for cause in HOST_CAUSES:
        own = host.time(host.main, cause)
        taken = iv.intersect(rest, iv.subtract(own, host.blocked) if cause is Category.LAUNCH else own)
        rest = iv.subtract(rest, taken)
        pieces.append(pieces_of(taken, cause))
    return [*pieces, *(pieces_of(part, Category.UNKNOWN_DEVICE) for part in (rest, (spans[0][~long], spans[1][~long])))]


def told_by_time(trace: Trace, activity: DeviceActivity, host: HostActivity) -> bool:
    """Whether an accelerator runs programs of which no launch was recorded, while the host was."""
    if activity.launched.any() or host.main < 0 or not among(activity.slice, trace.xla_ops.slice).any():
        return False
    described = trace.info.device(activity.device)
    return described is None or described.kind != "cpu"


def _host_time(gaps: Gaps, host: HostActivity) -> list[Pieces]:
    """The part of each gap before the launch call, by what the launching thread did.

    While that thread did nothing (autograd and data-parallel threads between their bursts) the thread that hands
    them work tells: the main one.
    """
    pieces: list[Pieces] = []
    before_end = np.minimum(gaps.launch, gaps.end)
    inside = (gaps.launch != NULL) & (gaps.launch > gaps.start)
    for thread in distinct(gaps.thread[inside]):
        rows = inside & (gaps.thread == thread)
        pieces += _of_thread((gaps.start[rows], before_end[rows]), host, thread)
    return pieces


def _of_thread(spans: iv.Intervals, host: HostActivity, thread: int) -> list[Pieces]:
    """Spans by what a launching thread did in them, or the main one meanwhile."""
    own = spans if thread == host.main else iv.intersect(spans, host.active(thread))
    return [*_by_cause(own, host, thread), *_by_cause(iv.subtract(spans, own), host, host.main)]


def _by_cause(spans: iv.Intervals, host: HostActivity, track: int) -> list[Pieces]:
    """Spans by what a thread did in them: the first cause of the list wins."""
    pieces = []
    for cause in HOST_CAUSES:
        if not len(spans[0]):
            break
        taken = iv.intersect(spans, host.time(track, cause))
        if len(taken[0]):
            spans = iv.subtract(spans, taken)
            pieces.append(pieces_of(taken, cause))
    return [*pieces, pieces_of(spans, Category.UNKNOWN_HOST)]


@record
class _Calls:
    """From when to when in gaps the calls that launch their ops hold them up."""

    gap: Rows
    begin: I64
    end: I64


def _calls(trace: Trace, activity: DeviceActivity, gaps: Gaps, rows: Rows, held: I64) -> _Calls:
    """The calls of some gaps.

    A call that began before the gap does so from what the op waited for on its stream on; but a pageable copy is being
    staged by the host as long as its call lasts.
    """
    launch, start, end = gaps.launch[rows], gaps.start[rows], gaps.end[rows]
    waits = (launch < start) & ~staged(trace, activity.row[gaps.cause_op[rows]])
    begin = np.clip(np.where(waits, np.maximum(launch, held[rows]), launch), start, end)
    return _Calls(rows, begin, np.clip(gaps.launch_end[rows], begin, end))


def _in_call(trace: Trace, activity: DeviceActivity, gaps: Gaps, calls: _Calls, host: HostActivity) -> list[Pieces]:
    """The part of each gap inside the launch call: staging of a pageable copy, what is nested, else launching."""
    staging = staged(trace, activity.row[gaps.cause_op[calls.gap]])
    pieces = [pieces_of(kept(calls.begin[staging], calls.end[staging]), Category.COPY_STAGING)]
    threads = gaps.thread[calls.gap]
    for thread in distinct(threads[~staging]):
        mine = ~staging & (threads == thread)
        rest = kept(calls.begin[mine], calls.end[mine])
        for cause in (Category.PROFILER, Category.COMPILE, Category.ALLOCATOR):
            taken = iv.intersect(rest, host.time(thread, cause))
            rest = iv.subtract(rest, taken)
            pieces.append(pieces_of(taken, cause))
        pieces.append(pieces_of(rest, Category.LAUNCH))
    return pieces


def _after_call(gaps: Gaps, latency: int, held: I64) -> list[Pieces]:
    """The part of each gap after the launch call: what the op waited for, then latency up to the cap; beyond it the
    other party is not recorded."""
    rows = (gaps.launch != NULL) & (gaps.launch >= gaps.start) & (gaps.launch_end < gaps.end)
    start, end = gaps.launch_end[rows], gaps.end[rows]
    until = np.clip(held[rows], start, end)
    near = np.minimum(until + latency, end)
    return [
        pieces_of(kept(start, until), Category.DEPENDENCY),
        pieces_of(kept(until, near), Category.LAUNCH_LATENCY),
        pieces_of(kept(near, end), Category.UNKNOWN_DEVICE),
    ]


def _blame_waits(
    activity: DeviceActivity, gaps: Gaps, pieces: Pieces, host: HostActivity, meanwhile: list[IdleBlame]
) -> tuple[Pieces, IdleBlame]:
    """The waits that had emptied the queue before each gap, the part of the gap each is to blame for, and the pieces
    with that part booked to ``sync``.

    A wait destroys at most the lead the host would have gained in the time it was blocked while the device worked;
    each nanosecond of that is spent once. ``meanwhile`` is what is due to waits for other devices.
    """
    threads = [*distinct(gaps.thread[gaps.thread >= 0]), *host.loop]
    chosen = np.flatnonzero(among(host.waits.track, threads))
    chosen = chosen[np.argsort(host.waits.start[chosen], kind="stable")]
    start, end = host.waits.start[chosen], host.waits.end[chosen]
    left = iv.covered_between(_had_work(activity, gaps), start, end)
    blamed = [(part.gap, part.wait, part.ns) for part in meanwhile]
    for movable in _MOVABLE:
        length = np.where(among(pieces.category, movable), pieces.end - pieces.start, 0)
        rest = np.bincount(pieces.gap, length, len(gaps)).astype(np.int64)
        gap, wait, ns, left = _spend_lead(gaps.start, rest, start, left)
        blamed.append((gap, host.waits.slice[chosen][wait], ns))
        if Category.PYTHON.code not in movable:
            pieces = _move_to_sync(pieces, length, np.bincount(gap, ns, len(gaps)).astype(np.int64))
    gap, wait, ns = (np.concatenate(part) for part in zip(*blamed, strict=True))
    order = np.argsort(gap, kind="stable")
    return pieces, IdleBlame(gap[order], wait[order], ns[order])


def _had_work(activity: DeviceActivity, gaps: Gaps) -> iv.Intervals:
    """When the device worked or its next op was already queued.

    Work from before the profile does not count: a profiler waits for it when it starts, and no step pays for that.
    """
    known = ~activity.before_profile
    queued = (gaps.launch != NULL) & (gaps.launch < gaps.start)
    return iv.union(
        np.concatenate((activity.start[known], gaps.start[queued])),
        np.concatenate((activity.end[known], gaps.end[queued])),
    )


@kernel
def _spend_lead(gap_start: I64, rest: I64, wait_start: I64, blocked: I64) -> tuple[I32, I32, I64, I64]:
    """Spend the time blocked in each wait on the gaps after it, the latest wait first, each nanosecond once; the last
    array is what is left of it."""
    left = blocked.copy()
    # Every entry but the last of a gap empties a wait, so there are at most this many.
    out_gap = np.empty(gap_start.size + wait_start.size, np.int32)
    out_wait = np.empty_like(out_gap)
    out_ns = np.empty(out_gap.size, np.int64)
    count = 0
    stack = np.empty(wait_start.size, np.int32)
    size = 0
    following = 0
    for g in range(gap_start.size):
        while following < wait_start.size and wait_start[following] < gap_start[g]:
            if left[following] > 0:
                stack[size] = following
                size += 1
            following += 1
        owed = rest[g]
        while size > 0 and owed > 0:
            top = stack[size - 1]
            taken = min(left[top], owed)
            out_gap[count], out_wait[count], out_ns[count] = g, top, taken
            count += 1
            owed -= taken
            left[top] -= taken
            if left[top] == 0:
                size -= 1
    return out_gap[:count], out_wait[:count], out_ns[:count], left


def _move_to_sync(pieces: Pieces, length: I64, moved: I64) -> Pieces:
    """Book the first ``moved`` ns of each gap to ``sync``, of the pieces that have a ``length``."""
    before = np.cumsum(length) - length
    first_of_gap = np.searchsorted(pieces.gap, pieces.gap)
    within = before - before[first_of_gap] if len(before) else before
    taken = np.clip(moved[pieces.gap] - within, 0, length)
    cut = pieces.start + taken
    start = np.stack((pieces.start, cut), 1).ravel()
    end = np.stack((cut, pieces.end), 1).ravel()
    sync = np.full(pieces.category.size, Category.SYNC.code, np.uint8)
    category = np.stack((sync, pieces.category), 1).ravel()
    gap = np.repeat(pieces.gap, 2)
    keep = end > start
    return Pieces(start[keep], end[keep], category[keep], gap[keep])
