"""The input pipeline as the training thread sees it: what ran inside its input ranges, by stage."""

from __future__ import annotations

import re

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.frame import Frame, parse_frame
from stepscope.analysis.host import HostActivity
from stepscope.analysis.steps import Markers, begun_in
from stepscope.names.remembered import remembered
from stepscope.names.tf_data import is_of_pipeline, is_own_thread, stage_of_iterator
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import among, mapped, united, without
from stepscope.trace.forest import inherit, is_outermost, on_host_threads, outermost
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, Bools, FlowKind, Kind, Rows
from stepscope.trace.trace import Trace

WAITING = "wait for workers"

# What a name inside an input range says about the stage; the innermost name that says something decides.
STAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("collate", regex(r"collate|aten::stack\b|torch\.stack|aten::cat\b", re.IGNORECASE)),
    (
        "decode",
        regex(
            r"decode|demux|imread|PIL/|\bImage\b|jpeg|png|decord|torchcodec|VideoCapture|read_video|librosa|soundfile"
            r"|torchaudio/|tokeniz|tiktoken|sentencepiece|CoreBPE|encode_batch|encode_plus",
            re.IGNORECASE,
        ),
    ),
    ("read", regex(r"\bopen\b|\bread|fromfile|\bload\b|h5py|lmdb|pyarrow|posixpath|\bio\.", re.IGNORECASE)),
    ("source", regex(r"\bGeneratorDataset\b")),
    (
        "transform",
        regex(r"transform|augment|normalize|resize|crop|flip|aten::(div|sub|mul|add|index|permute)", re.IGNORECASE),
    ),
    ("pin", regex(r"pin_memory", re.IGNORECASE)),
    (WAITING, regex(r"\bpoll\b|select\.py|selectors\.py|\bacquire\b|\bwait\b", re.IGNORECASE)),
)


@record
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
    """The same of all threads on which tf.data prepares batches, but for what is not known; empty for others."""

    @property
    def loader(self) -> str:
        """The one that takes most time."""
        return self.loaders[0][0]


@record
class Taking:
    """Which slices take a batch or prepare one; masks and ids per slice."""

    named: Bools
    """Which slices' name or kind says input."""
    taking: Bools
    """Outermost ranges in which the training thread (or a graph of its own) takes a batch, in the used steps."""
    preparing: Bools
    """Outermost ranges of other host threads, in the used steps: input by name, all that threads of tf.data's own do,
    and what its iterators hand to others, which run their functions."""
    mine: Bools
    """Every input slice of the threads that take batches, in the used steps."""
    handed_by: I32
    """The slice that handed over what a slice does, where that is work of tf.data's; else -1."""

    @property
    def ranges(self) -> Rows:
        """All of them."""
        return np.flatnonzero(self.taking | self.preparing)


@shared
def takings(host: HostActivity, markers: Markers, used: tuple[int, ...]) -> Taking:
    """Who takes batches and who prepares them: the main thread, else those of a graph, and all others."""
    trace, slices = host.trace, host.trace.slices
    named: Bools = host.causes == Category.INPUT.code
    in_steps = begun_in(trace, markers, used)
    inside_steps = named & in_steps
    mine = inside_steps & among(slices.track, host.loop)
    # A graph that takes its batch by itself (Keras) does so on a thread of its own.
    mine = mine if mine.any() else inside_steps & host.takes_batch
    takers = np.union1d(np.unique(slices.track[mine]), host.loop)
    on_host = on_host_threads(trace)
    elsewhere = ~among(slices.track, takers) & on_host
    # Threads that run the graph may run the functions of the pipeline too.
    handed_by = _handed_on(trace, inside_steps, on_host & (slices.track != host.main))
    theirs = in_steps & ((elsewhere & (named | _on_own_threads(trace))) | (handed_by >= 0))
    taking = mine & is_outermost(named, slices.parent)
    return Taking(named, taking, is_outermost(theirs, slices.parent), mine, handed_by)


def _on_own_threads(trace: Trace) -> Bools:
    """Which slices lie on threads of tf.data's own pools."""
    tracks = trace.tracks
    named = mapped(tracks.thread, trace.strings, is_own_thread, np.bool_)
    named |= mapped(tracks.label, trace.strings, is_own_thread, np.bool_)
    return np.asarray(named[trace.slices.track])


def _handed_on(trace: Trace, inputs: Bools, elsewhere: Bools) -> I32:
    """Per slice ``elsewhere`` the one that handed its work over, where that lies in a range of tf.data's,
    or in something that was itself handed over so; -1 for all others."""
    slices, flows = trace.slices, trace.flows
    rows = np.flatnonzero((flows.kind == FlowKind.PRODUCER_CONSUMER) & elsewhere[flows.target])
    ranges = inputs & mapped(slices.name, trace.strings, is_of_pipeline, np.bool_)
    if not rows.size or not ranges.any():
        return np.broadcast_to(np.int32(-1), len(slices))  # one number: only TensorFlow's pipelines hand on
    handed = np.full(len(slices), -1, np.int32)
    while rows.size:
        inside = outermost(ranges, slices.parent) >= 0
        new = rows[inside[flows.source[rows]] & ~inside[flows.target[rows]]]
        handed[flows.target[new]] = flows.source[new]
        ranges = ranges.copy()
        ranges[flows.target[new]] = True
        rows = without(rows, new) if new.size else new
    return handed


def input_ranges(trace: Trace, host: HostActivity, markers: Markers, used: tuple[int, ...]) -> InputRanges | None:
    """What the used steps' input ranges hold, those of the main thread, else those of a graph; None without any."""
    slices = trace.slices
    taking = takings(host, markers, used)
    mine, rows = taking.mine, np.flatnonzero(taking.taking)
    if rows.size == 0:
        return None
    # A profile with stacks has the loader's frames around its annotation; the annotation names the loader.
    annotated = np.flatnonzero((slices.kind == Kind.ANNOTATION) & mine)
    chosen = np.full(len(slices), -1, np.int32)
    chosen[rows] = rows
    around = inherit(chosen, slices.parent)
    inside = np.flatnonzero(around >= 0)
    named = united(annotated, rows[~among(rows, around[annotated])])
    total = int(slices.dur_ns[rows].sum())
    return InputRanges(
        slices=tuple(named.tolist()),
        loaders=_loaders(trace, rows, annotated, around),
        total_ns=total,
        hot=_hot(trace, inside, total),
        stages=_stages(trace, taking, rows, inside),
        ahead=_ahead(trace, taking),
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
    """Each loader's time: a range is called after PyTorch's own annotation inside it, else the longest one there; a
    frame without any after the op inside it that takes the batch (``iterator_ops.py`` of tf.data)."""
    slices, name = trace.slices, trace.slices.name.copy()
    ops = np.flatnonzero((around >= 0) & (slices.kind != Kind.PYTHON_FRAME))
    ops = ops[slices.kind[around[ops]] == Kind.PYTHON_FRAME]
    ops = ops[mapped(slices.name[ops], trace.strings, _takes_batch, np.bool_)]
    ops = ops[np.argsort(slices.dur_ns[ops], kind="stable")]
    name[around[ops]] = slices.name[ops]
    is_own = mapped(slices.name[annotated], trace.strings, lambda text: text.startswith("enumerate("), np.bool_)
    order = annotated[np.lexsort((slices.dur_ns[annotated], is_own))]
    name[around[order]] = slices.name[order]
    codes, dense = np.unique(name[rows], return_inverse=True)
    times = np.bincount(dense, slices.dur_ns[rows])
    longest_first = np.argsort(-times, kind="stable").tolist()
    return tuple((trace.strings[int(codes[at])], int(times[at])) for at in longest_first)


def _ahead(trace: Trace, taking: Taking) -> tuple[tuple[str, int], ...]:
    """What tf.data's threads did, by stage, but for waiting for others like them."""
    ranges = np.flatnonzero(taking.preparing)
    if not mapped(trace.slices.name[ranges], trace.strings, is_of_pipeline, np.bool_).any():
        return ()
    chosen = np.full(len(trace.slices), -1, np.int32)
    chosen[ranges] = ranges
    inside = np.flatnonzero(inherit(chosen, trace.slices.parent) >= 0)
    told = _stages(trace, taking, ranges, inside)
    return tuple(pair for pair in told if pair[0] not in (WAITING, "other", "not recorded"))


def stage_of(trace: Trace, taking: Taking) -> I32:
    """Per slice of any of the ranges the place in ``STAGES`` of the innermost name around it that says one, else that
    of what handed it over, -1 for none."""
    slices = trace.slices
    inside = np.flatnonzero(outermost(taking.taking | taking.preparing, slices.parent) >= 0)
    stage = np.full(len(slices), -1, np.int32)
    stage[inside] = mapped(slices.name[inside], trace.strings, _stage_number, np.int32) - 1
    iterators = np.zeros(len(slices), np.bool_)
    iterators[inside] = mapped(slices.name[inside], trace.strings, _is_iterator, np.bool_)
    # What a loader is called says nothing of its stages; an iterator of tf.data is one.
    stage[taking.named & ~iterators] = -1
    open_ = np.flatnonzero((taking.handed_by >= 0) & (stage < 0))
    while open_.size:
        told = inherit(stage, slices.parent)[taking.handed_by[open_]]
        stage[open_] = told
        open_ = open_[told < 0] if (told >= 0).any() else open_[:0]
    return inherit(stage, slices.parent)


def _stages(trace: Trace, taking: Taking, ranges: Rows, inside: Rows) -> tuple[tuple[str, int], ...]:
    slices, stage = trace.slices, stage_of(trace, taking)
    itself = _self_time(slices.dur_ns, slices.parent, inside)
    totals = {name: int(itself[inside][stage[inside] == at].sum()) for at, (name, _) in enumerate(STAGES)}
    bare = among(inside, ranges)
    totals["other"] = int(itself[inside][(stage[inside] < 0) & ~bare].sum())
    totals["not recorded"] = int(itself[inside][(stage[inside] < 0) & bare].sum())
    return tuple(sorted(((name, ns) for name, ns in totals.items() if ns > 0), key=lambda pair: -pair[1]))


def _self_time(dur: I64, parent: I32, rows: Rows) -> I64:
    """Duration without what is nested directly inside."""
    itself = dur.copy()
    inner = rows[parent[rows] >= 0]
    np.subtract.at(itself, parent[inner], dur[inner])
    return np.maximum(itself, 0)


_TAKES = regex(r"(?:^|: ?)\w*IteratorGetNext|:QueueDequeue")


@remembered
def _takes_batch(name: str) -> bool:
    return _TAKES.search(name) is not None


@remembered
def _is_iterator(name: str) -> bool:
    return stage_of_iterator(name) is not None


@remembered
def _stage_number(name: str) -> int:
    """One more than the place in ``STAGES``, 0 for none."""
    iterator = stage_of_iterator(name)
    if iterator is not None:
        return [stage for stage, _ in STAGES].index(iterator) + 1
    if name.startswith("Iterator::"):
        return 0  # a path of datasets, of which the last alone counts
    return next((at + 1 for at, (_, pattern) in enumerate(STAGES) if pattern.search(name)), 0)
