"""TensorFlow's executors: threads that run a graph for the program's own thread, which meanwhile waits for them.

A call of a function hands its graph to the threads of a pool and returns when they have run it; the batch that a graph
takes is waited for on a thread of its own. Work goes from one of them to the next, so that they and the program's own
thread are one line of host work. What they do for tf.data, whose functions may run in the same pool, is none of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.names.tf_executors import FUNCTION, calls_graph, is_executors, is_programs, takes_batch
from stepscope.names.xla_hosts import INPUT_THREAD
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, distinct, marked, used_codes
from stepscope.trace.forest import inherit, rows_of_track
from stepscope.trace.tables import Bools, Kind, Rows, TrackKind
from stepscope.trace.trace import Trace

_OWN_KINDS = (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC, Kind.ALLOCATION, Kind.COMPILE)


@record
class Executors:
    """The threads that run graphs for the main thread of a trace."""

    tracks: tuple[int, ...]
    waits: iv.Intervals
    """When the main thread does nothing but wait for them."""
    ahead: Bools
    """Slices that are tf.data's, on its threads or theirs: what it prepares ahead of the step."""


def find_executors(trace: Trace, main: int) -> Executors | None:
    """The executors of a profile of TensorFlow on a device, whose ops they launch; None where it holds none."""
    if trace.info.framework != "TensorFlow" or not len(trace.device_ops) or main < 0:
        return None
    slices, tracks = trace.slices, trace.tracks
    runs = marked(slices.track[among(slices.name, _codes(trace, is_executors))], len(tracks))
    # NCCL's calls have a thread per communicator (nccl_manager.cc), on which nothing else is recorded.
    runs[slices.track[trace.launches.call]] = True
    runs[slices.track[among(slices.name, _codes(trace, is_programs))]] = False
    runs[_preparing(trace)] = False
    runs[main] = False
    threads = np.flatnonzero(runs & (tracks.kind == TrackKind.HOST_THREAD))
    return Executors(tuple(threads.tolist()), _waits(trace, main), of_pipeline(trace)) if threads.size else None


def _codes(trace: Trace, says: Callable[[str], bool]) -> list[int]:
    return [code for code in used_codes(trace.slices.name, len(trace.strings)).tolist() if says(trace.strings[code])]


def _preparing(trace: Trace) -> Rows:
    """Tracks on which tf.data prepares batches."""
    labels = trace.tracks.label
    codes = [code for code in distinct(labels[labels >= 0]) if INPUT_THREAD.match(trace.strings[code])]
    return np.flatnonzero(among(labels, codes))


def of_pipeline(trace: Trace) -> Bools:
    """Slices on threads of tf.data, and tasks handed over by these or where a batch is taken, with all they hold."""
    slices, flows = trace.slices, trace.flows
    own = among(slices.track, _preparing(trace))
    takes = np.where(among(slices.name, _codes(trace, takes_batch)), np.int32(0), np.int32(-1))
    hands = own | (inherit(takes, slices.parent) >= 0)
    seeds = np.where(own, np.int32(0), np.int32(-1))
    seeds[flows.target[hands[flows.source]]] = 0
    return np.asarray(inherit(seeds, slices.parent) >= 0)


def _waits(trace: Trace, main: int) -> iv.Intervals:
    """From where a call has handed its graph over until it returns, but for what the thread itself does in it."""
    slices = trace.slices
    low, high = rows_of_track(slices, main)
    rows = np.arange(low, high)
    calls = rows[among(slices.name[low:high], _codes(trace, calls_graph))]
    chosen = np.full(len(slices), -1, np.int32)
    chosen[calls] = calls
    around = inherit(chosen, slices.parent)[low:high]
    handed = rows[among(slices.name[low:high], _codes(trace, FUNCTION.__eq__)) & (around >= 0)]
    end, never = slices.start_ns + slices.dur_ns, np.iinfo(np.int64).max
    first = np.full(len(slices), never)
    np.minimum.at(first, around[handed - low], slices.start_ns[handed])
    waited = iv.union(np.where(first == never, slices.start_ns, first)[calls], end[calls])
    own = rows[among(slices.kind[low:high], _OWN_KINDS) & (around >= 0) & (around != rows)]
    return iv.subtract(waited, iv.of(slices, own))
