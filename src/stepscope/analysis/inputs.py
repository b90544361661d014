"""The input pipeline as the training thread sees it: what ran inside its input ranges, by stage."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.host import HostActivity
from stepscope.analysis.steps import Markers
from stepscope.analysis.where import Frame, parse_frame
from stepscope.names.tf_data import stage_of_iterator
from stepscope.trace.codes import mapped
from stepscope.trace.forest import inherit
from stepscope.trace.tables import I32, I64, Bools, Kind, Rows, TrackKind
from stepscope.trace.trace import Trace

WAITING = "wait for workers"
PREFETCHING = "PrefetchProduce"
"""The range in which a thread of tf.data prepares one element ahead."""

# What a name inside an input range says about the stage; the innermost name that says something decides.
STAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("collate", re.compile(r"collate|aten::stack\b|torch\.stack|aten::cat\b", re.IGNORECASE)),
    (
        "decode",
        re.compile(
            r"decode|demux|imread|PIL/|\bImage\b|jpeg|png|decord|torchcodec|VideoCapture|read_video|librosa|soundfile"
            r"|torchaudio/|tokeniz|tiktoken|sentencepiece|CoreBPE|encode_batch|encode_plus",
            re.IGNORECASE,
        ),
    ),
    ("read", re.compile(r"\bopen\b|\bread|fromfile|\bload\b|h5py|lmdb|pyarrow|posixpath|\bio\.", re.IGNORECASE)),
    ("source", re.compile(r"\bGeneratorDataset\b")),
    (
        "transform",
        re.compile(
            r"transform|augment|normalize|resize|crop|flip|aten::(div|sub|mul|add|index|permute)", re.IGNORECASE
        ),
    ),
    ("pin", re.compile(r"pin_memory", re.IGNORECASE)),
    (WAITING, re.compile(r"\bpoll\b|select\.py|selectors\.py|\bacquire\b|\bwait\b", re.IGNORECASE)),
)


@dataclass(frozen=True, slots=True)
class InputRanges:
    """The input ranges of the used steps, and the main thread's time inside them by stage."""

    slices: tuple[int, ...]
    loaders: tuple[tuple[str, int], ...]
    """(name, ns), longest first: of the annotated range (``enumerate(DataLoader)#...``), else of the frame."""
    total_ns: int
    """Time of the host in all of them, whether or not a device waits for it."""
    hot: Frame | None
    """The user's own function in which at least half of the time passes, innermost; None where not recorded."""
    stages: tuple[tuple[str, int], ...]
    """(stage, ns), longest first; ``not recorded`` is time in which nothing inside the range was recorded."""
    ahead: tuple[tuple[str, int], ...]
    """The same of all threads on which tf.data prepares batches ahead, but for what is not known; empty for others."""

    @property
    def loader(self) -> str:
        """The one that takes most time."""
        return self.loaders[0][0]


@dataclass(frozen=True, slots=True)
class Taking:
    """Which slices take a batch or prepare one; masks and ids per slice."""

    own: I32
    """The slice itself where its name or kind says input, else -1."""
    taking: Bools
    """Outermost ranges in which the training thread (or a graph of its own) takes a batch, in the used steps."""
    preparing: Bools
    """Outermost ranges of other host threads, in the used steps."""
    mine: Bools
    """Every input slice of the threads that take batches, in the used steps."""


def takings(trace: Trace, host: HostActivity, markers: Markers, used: tuple[int, ...]) -> Taking:
    """Who takes batches and who prepares them: the main thread, else those of a graph, and all others."""
    slices = trace.slices
    own = np.where(host.causes == Category.INPUT.code, np.arange(len(slices), dtype=np.int32), np.int32(-1))
    outermost = (own >= 0) & ((slices.parent < 0) | (inherit(own, slices.parent)[slices.parent] < 0))
    step = np.searchsorted(markers.start, slices.start_ns, "right") - 1
    inside_steps = (own >= 0) & np.isin(step, used)
    mine = inside_steps & np.isin(slices.track, host.loop)
    # A graph that takes its batch by itself (Keras) does so on a thread of its own.
    mine = mine if mine.any() else inside_steps & host.takes_batch
    elsewhere = ~np.isin(slices.track, np.unique(slices.track[mine])) & ~np.isin(slices.track, host.loop)
    on_host = trace.tracks.kind[slices.track] == TrackKind.HOST_THREAD
    return Taking(own, outermost & mine, outermost & inside_steps & elsewhere & on_host, mine)


def input_ranges(trace: Trace, host: HostActivity, markers: Markers, used: tuple[int, ...]) -> InputRanges | None:
    """What the used steps' input ranges hold, those of the main thread, else those of a graph; None without any."""
    slices = trace.slices
    found = takings(trace, host, markers, used)
    own, mine, rows = found.own, found.mine, np.flatnonzero(found.taking)
    if rows.size == 0:
        return None
    prefetching = [code for code, name in enumerate(trace.strings) if name == PREFETCHING]
    ahead = found.preparing & np.isin(slices.name, prefetching)
    # A profile with stacks has the loader's frames around its annotation; the annotation names the loader.
    annotated = np.flatnonzero((slices.kind == Kind.ANNOTATION) & mine)
    chosen = np.full(len(slices), -1, np.int32)
    chosen[rows] = rows
    around = inherit(chosen, slices.parent)
    inside = np.flatnonzero(around >= 0)
    named = np.union1d(annotated, rows[~np.isin(rows, around[annotated])])
    total = int(slices.dur_ns[rows].sum())
    return InputRanges(
        slices=tuple(named.tolist()),
        loaders=_loaders(trace, rows, annotated, around),
        total_ns=total,
        hot=_hot(trace, inside, total),
        stages=_stages(trace, own, rows, inside),
        ahead=_ahead(trace, own, np.flatnonzero(ahead)),
    )


def _hot(trace: Trace, inside: Rows, total_ns: int) -> Frame | None:
    """The innermost of the user's own functions inside the ranges in which at least half of their time passes."""
    slices = trace.slices
    frames = inside[slices.kind[inside] == Kind.PYTHON_FRAME]
    codes, dense = np.unique(slices.name[frames], return_inverse=True)
    times, depths = np.bincount(dense, slices.dur_ns[frames]), np.zeros(codes.size, np.int64)
    np.maximum.at(depths, dense, slices.depth[frames])
    for at in np.argsort(-depths, kind="stable").tolist():
        frame = parse_frame(trace.strings[int(codes[at])])
        if frame is not None and frame.is_users and times[at] >= 0.5 * total_ns:
            return frame
    return None


def _loaders(trace: Trace, rows: Rows, annotated: Rows, around: I32) -> tuple[tuple[str, int], ...]:
    """Each loader's time: a range is called after PyTorch's own annotation inside it, else the longest one there."""
    slices, name = trace.slices, trace.slices.name.copy()
    is_own = mapped(slices.name[annotated], trace.strings, lambda text: text.startswith("enumerate("), np.bool_)
    order = annotated[np.lexsort((slices.dur_ns[annotated], is_own))]
    name[around[order]] = slices.name[order]
    codes, dense = np.unique(name[rows], return_inverse=True)
    times = np.bincount(dense, slices.dur_ns[rows])
    longest_first = np.argsort(-times, kind="stable").tolist()
    return tuple((trace.strings[int(codes[at])], int(times[at])) for at in longest_first)


def _ahead(trace: Trace, own: I32, ranges: Rows) -> tuple[tuple[str, int], ...]:
    """What the thread that prefetches did, by stage, but for waiting for others like it."""
    chosen = np.full(len(trace.slices), -1, np.int32)
    chosen[ranges] = ranges
    inside = np.flatnonzero(inherit(chosen, trace.slices.parent) >= 0)
    told = _stages(trace, own, ranges, inside)
    return tuple(pair for pair in told if pair[0] not in (WAITING, "other", "not recorded"))


def stage_of(trace: Trace, own: I32, inside: Rows) -> I32:
    """Per slice, the place in ``STAGES`` of the innermost name around it that says one, -1 for none; ``inside`` are the
    slices whose names count."""
    slices = trace.slices
    stage = np.full(len(slices), -1, np.int32)
    stage[inside] = mapped(slices.name[inside], trace.strings, _stage_number, np.int32) - 1
    iterators = np.zeros(len(slices), np.bool_)
    iterators[inside] = mapped(slices.name[inside], trace.strings, _is_iterator, np.bool_)
    # What a loader is called says nothing of its stages; an iterator of tf.data is one.
    stage[(own >= 0) & ~iterators] = -1
    return inherit(stage, slices.parent)


def _stages(trace: Trace, own: I32, outermost: Rows, inside: Rows) -> tuple[tuple[str, int], ...]:
    slices, stage = trace.slices, stage_of(trace, own, inside)
    itself = _self_time(slices.dur_ns, slices.parent, inside)
    totals = {name: int(itself[inside][stage[inside] == at].sum()) for at, (name, _) in enumerate(STAGES)}
    bare = np.isin(inside, outermost)
    totals["other"] = int(itself[inside][(stage[inside] < 0) & ~bare].sum())
    totals["not recorded"] = int(itself[inside][(stage[inside] < 0) & bare].sum())
    return tuple(sorted(((name, ns) for name, ns in totals.items() if ns > 0), key=lambda pair: -pair[1]))


def _self_time(dur: I64, parent: I32, rows: Rows) -> I64:
    """Duration without what is nested directly inside."""
    itself = dur.copy()
    inner = rows[parent[rows] >= 0]
    np.subtract.at(itself, parent[inner], dur[inner])
    return np.maximum(itself, 0)


def _is_iterator(name: str) -> bool:
    return stage_of_iterator(name) is not None


def _stage_number(name: str) -> int:
    """One more than the place in ``STAGES``, 0 for none."""
    iterator = stage_of_iterator(name)
    if iterator is not None:
        return [stage for stage, _ in STAGES].index(iterator) + 1
    if name.startswith("Iterator::"):
        return 0  # a path of datasets, of which the last alone counts
    return next((at + 1 for at, (_, pattern) in enumerate(STAGES) if pattern.search(name)), 0)
