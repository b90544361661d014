"""What a cure takes out of a profile: one function per kind of cause, from facts to a ``Change``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.exchange.exposed import Exchange, exchange_of, is_one_of
from stepscope.analysis.facts import Facts
from stepscope.analysis.floors import Faster
from stepscope.analysis.host_callbacks import callback_slices
from stepscope.analysis.once import Once
from stepscope.analysis.syncs import wait_places
from stepscope.analysis.waits import called_before
from stepscope.names.xla_hosts import XlaRole
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, united
from stepscope.trace.forest import outermost
from stepscope.trace.tables import I32, I64, Kind, Rows
from stepscope.whatif.change import GONE, Change
from stepscope.whatif.limits import LAUNCH_GAP_NS


def without_host_time(facts: Facts, cause: Category) -> Change:
    """The host does not do something any more: neither the loop's thread nor others that launch."""
    return Change(host={track: alone(facts, track, cause) for track in facts.launching_tracks})


def without_one_time_work(facts: Facts, *kinds: Once) -> Change:
    """Work that is done once was done before: of some kinds, or of any."""
    tracks = facts.launching_tracks
    return Change(
        host={
            track: iv.intersect(alone(facts, track, Category.COMPILE), facts.once.spans(*kinds, track=track))
            for track in tracks
        }
    )


def without_callbacks(facts: Facts, device: int | None) -> Change:
    """A device's program calls no Python any more: what comes behind the calls begins at once, and the thread that ran
    them goes on."""
    at = [index for index, activity in enumerate(facts.activities) if activity.device == device]
    called = called_before(facts.trace, [facts.activities[index] for index in at])
    sizes = [len(activity) for activity in facts.activities]
    mine = np.zeros(sum(sizes), np.bool_)
    for index, ns in zip(at, called, strict=True):
        mine[sum(sizes[:index]) : sum(sizes[: index + 1])] = ns > 0
    calls = callback_slices(facts.trace, facts.host, -1 if device is None else device)
    spans = iv.of(facts.trace.slices, calls)
    running = {track: iv.intersect(spans, _running(facts, track)) for track in facts.launching_tracks}
    return Change(host={track: time for track, time in running.items() if len(time[0])}, called=mine)


def _running(facts: Facts, track: int) -> iv.Intervals:
    """When a thread was itself running a compiled program."""
    slices = facts.trace.slices
    rows = np.flatnonzero(facts.host.in_role(XlaRole.EXECUTE) & (slices.track == track))
    return iv.of(slices, rows)


def without_all_waits(facts: Facts) -> Change:
    """The host never waits for a device."""
    return Change(waits=frozenset(facts.host.waits.slice.tolist()))


def wait_sites(facts: Facts) -> I64:
    """Per host wait a number that is equal for waits from the same place in the program."""
    return wait_places(facts.trace, facts.locator, facts.host.waits.slice)


def without_waits(facts: Facts, slices: tuple[int, ...], sites: I64) -> Change:
    """The host does not wait any more where these waits are, in any step. Copies they began stay."""
    return Change(waits=frozenset(_same_site(facts, slices, sites).tolist()))


def with_replacement(facts: Facts, slices: tuple[int, ...], sites: I64, op: str, replacement_ns: int) -> Change:
    """The same where each wait's outermost op of a name is replaced by one that keeps the device busy so long and makes
    nobody wait: what the op launched goes."""
    waits = _same_site(facts, slices, sites)
    named = [code for code, text in enumerate(facts.trace.strings) if text == op]
    table = facts.trace.slices
    outer = outermost((table.kind == Kind.HOST_OP) & among(table.name, named), table.parent)
    call = np.concatenate([activity.call for activity in facts.activities])
    launch = np.concatenate([activity.launch for activity in facts.activities])
    within = np.where(call >= 0, outer[call], -1)
    rows = np.flatnonzero((within >= 0) & among(within, outer[waits]))
    if not rows.size:
        return Change(waits=frozenset(waits.tolist()))
    rows = rows[np.lexsort((launch[rows], within[rows]))]
    last = rows[np.append(np.diff(within[rows]) != 0, True)]
    duration, charge = _durations(facts), np.zeros(call.size, np.int64)
    duration[rows] = GONE
    duration[last] = 0
    charge[last] = replacement_ns
    return Change(waits=frozenset(waits.tolist()), op_ns=duration, charge_ns=charge)


def _same_site(facts: Facts, slices: tuple[int, ...], sites: I64) -> I32:
    """The waits of all steps that are where these are."""
    waits = facts.host.waits.slice
    return waits[among(sites, sites[among(waits, slices)])]


def without_dispatch(facts: Facts) -> Change:
    """One launch runs what many do now: nothing is dispatched op by op any more, so that ops follow each other and the
    host holds up no cure that comes after. By itself that saves no more than the waiting for launches it ends,
    also that which a wait is to blame for.

    Left is what is no dispatching of ops: what the host does for any other cause, ops that compute on it, functions
    that launch nothing, and what it takes over ``LAUNCH_GAP_NS`` for while a device waits.
    """
    stays, most = _dispatches_nothing(facts), 0
    for account in facts.working:
        assert account.idle is not None
        gaps, pieces = account.idle.gaps, account.idle.causes
        launching = among(pieces.category, (Category.LAUNCH.code, Category.LAUNCH_LATENCY.code))
        long = (gaps.end - gaps.start > LAUNCH_GAP_NS)[pieces.gap]
        stays = iv.joined((stays, (pieces.start[launching & long], pieces.end[launching & long])))
        ended = launching & ~long & facts.in_used_steps(account, pieces.start)
        most = max(most, facts.per_step(int((pieces.end - pieces.start)[ended].sum())))
    spans = {track: iv.subtract(alone(facts, track, Category.LAUNCH), stays) for track in facts.launching_tracks}
    return Change(host=spans, most_ns=most)


def without_dispatch_of(facts: Facts, calls: I32, most_ns: int) -> Change:
    """The same for some launching calls: what their threads dispatch from the launch before each until it returns."""
    slices, stays = facts.trace.slices, _dispatches_nothing(facts)
    every = united(np.concatenate([a.call[a.launched] for a in facts.activities]))
    spans = {}
    for track in facts.launching_tracks:
        own = every[slices.track[every] == track]
        own = own[np.argsort(slices.start_ns[own], kind="stable")]
        end = slices.start_ns[own] + slices.dur_ns[own]
        chosen = among(own, calls)
        before = np.append(slices.start_ns[own[:1]], end[:-1])
        spans[track] = iv.intersect(
            iv.subtract(alone(facts, track, Category.LAUNCH), stays), iv.union(before[chosen], end[chosen])
        )
    return Change(host=spans, most_ns=most_ns)


def _dispatches_nothing(facts: Facts) -> iv.Intervals:
    return iv.joined((facts.host_op_time, facts.silent_time))


def waits_of_copies(facts: Facts, calls: I32) -> Rows:
    """Positions of the host waits that belong to copies begun by some calls: a copy that blocks waits in its own call,
    or (PyTorch without ``non_blocking``) in a synchronise call behind it, inside the same op.
    """
    slices, waits = facts.trace.slices, facts.host.waits.slice
    ops = slices.parent[calls]
    ops = ops[(ops >= 0) & (slices.kind[ops] == Kind.HOST_OP)]
    return np.flatnonzero(among(waits, calls) | among(slices.parent[waits], ops))


def without_copies(facts: Facts, category: Category) -> Change:
    """Copies of one direction cost nothing. Those to the device run beside the kernels, from pinned memory: the batch
    is there before, and nothing waits for them, but a step takes no less than they do. What is copied from a device is
    the work of the ops before, so such copies take no time but keep their place, and who waits for them waits for those
    ops: that is ``without_waits``.
    """
    chosen = np.concatenate([activity.category == category.code for activity in facts.activities])
    if category is not Category.COPY_H2D:
        return Change(op_ns=np.where(chosen, 0, _durations(facts)))
    calls = np.concatenate([activity.call for activity in facts.activities])[chosen]
    calls = calls[calls >= 0]
    slices = facts.trace.slices
    spans = {
        int(track): iv.union(
            slices.start_ns[calls[slices.track[calls] == track]],
            (slices.start_ns + slices.dur_ns)[calls[slices.track[calls] == track]],
        )
        for track in np.unique(slices.track[calls])
    }
    gone = {*calls.tolist(), *facts.host.waits.slice[waits_of_copies(facts, calls)].tolist()}
    return Change(spans, frozenset(gone), np.where(chosen, GONE, _durations(facts)), floor_ns=_longest(facts, category))


def without_collectives(facts: Facts, exchanges: tuple[Exchange, ...] = tuple(Exchange)) -> Change:
    """Collectives that exchange in some ways run beside compute: nothing waits for them, and a step takes no less than
    they do. Where others stay on their stream, those still wait for what the ones that go had to wait for."""
    alone, left = 0, [np.empty(0, np.int64)]
    beside: dict[tuple[int, str], int] = {}
    for activity, account in facts.devices:
        exchange = exchange_of(facts.trace, activity)
        chosen = is_one_of(exchange, exchanges)
        stays = among(activity.stream, activity.stream[~chosen & (exchange >= 0)])
        left.append(np.where(chosen, np.where(stays, 0, GONE), activity.end - activity.start))
        if account.rows.device in facts.unused or not facts.used_rows(account):
            continue
        taken = iv.EMPTY
        for one in Exchange:
            mine = is_one_of(exchange, (one,))
            busy = iv.union(activity.start[mine], activity.end[mine])
            if one in exchanges:
                alone = max(alone, _in_used_steps(facts, account, busy))
                beside[activity.device, str(one)] = _in_used_steps(facts, account, iv.subtract(busy, taken))
            taken = iv.union(*(np.concatenate(part) for part in zip(taken, busy, strict=True)))
    return Change(op_ns=np.concatenate(left), floor_ns=alone, beside_ns=beside)


def _in_used_steps(facts: Facts, account: Account, spans: iv.Intervals) -> int:
    """How much of some time lies in the used steps of a device, per step."""
    return facts.per_step(int(iv.covered_between(spans, *facts.used_windows(account)).sum()))


def _longest(facts: Facts, category: Category) -> int:
    """The time per step in which the device that has most of it runs ops of a category."""
    longest = 0
    for activity, account in facts.devices:
        mine = activity.category == category.code
        if account.rows.device not in facts.unused:
            busy = iv.union(activity.start[mine], activity.end[mine])
            longest = max(longest, _in_used_steps(facts, account, busy))
    return longest


def faster_kernels(facts: Facts, faster: Faster) -> Change:
    """Kernels take less time, bounded as ``analysis/floors.py`` does. Those that another does the work of are launched
    no more, which by itself counts for nothing, but holds up no cure that comes after."""
    made, activity = _durations(facts), faster.work.activity
    made[_first_op(facts, activity.device) + faster.work.rows[faster.rows]] = faster.ns
    if not faster.replaced.size:
        return Change(op_ns=made)
    calls = activity.call[faster.work.rows[faster.replaced]]
    most = facts.per_step(faster.gained_ns)
    return replace(Change(op_ns=made) | without_dispatch_of(facts, calls[calls >= 0], most), most_ns=most)


def without_ops(facts: Facts, device: int, ops: Rows) -> Change:
    """Some ops of a device (places in its activity) take no time."""
    made = _durations(facts)
    made[_first_op(facts, device) + ops] = 0
    return Change(op_ns=made)


def never_full(facts: Facts) -> Change:
    """The host is never held up in starting programs because as many are in flight as may be: the device paces it so
    long as it falls behind. Which thread waits for room tells when (XLA: a semaphore), the starting one shows nothing.
    """
    host, slices = facts.host, facts.trace.slices
    on_main = slices.track == host.main
    starts = (host.in_role(XlaRole.EXECUTE) | host.in_role(XlaRole.DISPATCH)) & on_main
    waits = host.in_role(XlaRole.WAIT) & ~on_main
    calls = iv.of(slices, starts)
    held = iv.intersect(calls, iv.of(slices, waits))
    return Change(host={host.main: held}) if len(held[0]) else Change()


def beside_the_rest(change: Change, floor_ns: int) -> Change:
    """What takes no time any more runs beside the rest: a step takes no less than it does."""
    return replace(change, floor_ns=max(change.floor_ns, floor_ns))


def _first_op(facts: Facts, device: int) -> int:
    """Where the ops of a device begin among those of all."""
    return sum(len(activity) for activity in facts.activities if activity.device < device)


def larger_batch(facts: Facts, factor: float) -> Change:
    """A batch so many times as large: kernels and copies take as many times as long, which leaves out that larger
    kernels use a device better. Collectives (gradients have the model's size), clearing memory and the host stay."""
    growing = [c.code for c in Category if c is Category.COMPUTE or c.startswith("copy")]
    grows = among(np.concatenate([activity.category for activity in facts.activities]), growing)
    duration = _durations(facts)
    return Change(op_ns=np.where(grows, np.rint(duration * factor), duration).astype(np.int64))


def _durations(facts: Facts) -> I64:
    return np.concatenate([activity.end - activity.start for activity in facts.activities])


def alone(facts: Facts, track: int, cause: Category) -> iv.Intervals:
    """Time of a thread that is booked to a cause: none of the causes before it in the list applies."""
    spans = facts.host.time(track, cause)
    for earlier in HOST_CAUSES[: HOST_CAUSES.index(cause)]:
        spans = iv.subtract(spans, facts.host.time(track, earlier))
    return spans
