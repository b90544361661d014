"""What it takes to make the batches of a loader, so that who else could make them can be reckoned with."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import Frame, parse_frame
from stepscope.analysis.inputs import InputRanges
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import inherit
from stepscope.trace.tables import Kind

SINGLE_PROCESS = "_SingleProcessDataLoaderIter"
MULTI_PROCESS = "_MultiProcessingDataLoaderIter"
_SLEEPS = regex(r"built-in (?:method|function) (?:sleep|poll|select|recv\w*|acquire|wait\w*|connect)\b")


@record
class LoaderFunction:
    """A function of the program's own in which much of the loading passes."""

    frame: Frame
    calls: float
    """Per step."""
    time: iv.Intervals


@record
class Loading:
    """Making batches in the process of the loop, or with workers whose number is known."""

    time: iv.Intervals
    """When the loop's thread was in it."""
    waiting_ns: int
    """Of that, per step, what it slept or waited in: no core is busy meanwhile."""
    function: LoaderFunction | None
    workers: int
    """Worker processes that make batches now."""
    by_loop: bool = False
    """Whether the loop's own code makes them, and no loader."""


def loader_of(ranges: InputRanges) -> str:
    """The one that takes most time; of PyTorch's own frames the range says which it is."""
    named = (name for name, _ in ranges.loaders if name.startswith("enumerate("))
    return next(named, ranges.loader) if "torch/utils/data/" in ranges.loader else ranges.loader


def loading(facts: Facts, *, by_loop: bool = False) -> Loading | None:
    """How the loader that takes most time loads, or the loop itself makes its batches; None where that is no loader of
    PyTorch's, or not known."""
    ranges = facts.inputs
    if ranges is None or not facts.used:
        return None
    loader = loader_of(ranges)
    in_loop = by_loop or SINGLE_PROCESS in loader
    workers = 0 if in_loop else facts.run.workers if MULTI_PROCESS in loader else None
    if workers is None or not (in_loop or workers):
        return None
    chosen = np.full(len(facts.trace.slices), -1, np.int32)
    chosen[list(ranges.slices)] = ranges.slices
    inside = inherit(chosen, facts.trace.slices.parent) >= 0
    asleep = inside & mapped(facts.trace.slices.name, facts.trace.strings, _sleeps, np.bool_)
    waiting = iv.measure(iv.union(*_bounds(facts, asleep))) if in_loop else 0
    time = facts.host.time(facts.host.main, Category.INPUT)
    hot = ranges.hot if in_loop and not by_loop else None
    function = None if hot is None else _function(facts, inside, hot)
    return Loading(time, facts.per_step(waiting), function, workers, by_loop)


def _function(facts: Facts, inside: np.ndarray, frame: Frame) -> LoaderFunction:
    slices = facts.trace.slices

    def is_it(name: str) -> bool:
        return parse_frame(name) == frame

    mine = inside & (slices.kind == Kind.PYTHON_FRAME) & mapped(slices.name, facts.trace.strings, is_it, np.bool_)
    step = np.searchsorted(facts.markers.start, slices.start_ns[mine], "right") - 1
    count = int(among(step, facts.used).sum())
    return LoaderFunction(frame, count / len(facts.used), iv.union(*_bounds(facts, mine)))


def _bounds(facts: Facts, chosen: np.ndarray) -> iv.Intervals:
    slices = facts.trace.slices
    return slices.start_ns[chosen], slices.start_ns[chosen] + slices.dur_ns[chosen]


def _sleeps(name: str) -> bool:
    return _SLEEPS.search(name) is not None
