"""The iterators of tf.data: what each says of itself, and in which of them the time passes that a batch is waited for.

As XProf counts it (``xplane_to_tf_data_stats``): an iterator holds up the one that asks it while that one holds up the
step, and what it takes itself is that time without the time in which it waits for those that it asks, on whichever
threads they work.
"""

from __future__ import annotations

import numpy as np

from stepscope.names.tf_data import dataset_of, is_inner, is_iterator, is_python_op, pipeline_path
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import mapped, used_codes
from stepscope.trace.forest import on_host_threads
from stepscope.trace.tables import I64, NULL, Bools, Rows
from stepscope.trace.trace import Trace

Path = tuple[str, ...]


@record
class IteratorUse:
    """One iterator of a pipeline in the used steps; None for what the profile does not say."""

    path: Path
    """The datasets from the root to its own."""
    dataset: str | None
    """Node of the dataset's graph, or those that were made one."""
    calls: int
    total_ns: int
    """Time of all calls together."""
    own_ns: int
    """The part of the waiting for a batch that it takes itself."""
    python_ns: int
    """Of that the part in which an op that calls Python runs."""
    parallelism: int | None
    buffer_limit: int | None
    autotuned: bool | None
    """Whether its number (of calls at once, of elements kept) is chosen while it runs."""

    @property
    def kind(self) -> str:
        """The dataset it is of, without version."""
        return dataset_of("Iterator::" + self.path[-1])


@record
class PipelineIterators:
    """The iterators of a profile's pipelines, roots first, and what their roots say."""

    each: tuple[IteratorUse, ...]
    wait_ns: int
    """Time in which a batch was waited for in one of them."""
    cpu_budget: int | None
    """Cores that autotuning may use."""
    threadpool_size: int | None
    """Threads that run the pipeline's functions."""

    @property
    def slowest(self) -> IteratorUse | None:
        """The one that takes most of the waiting."""
        slowest = max(self.each, key=lambda one: one.own_ns, default=None)
        return slowest if slowest is not None and slowest.own_ns else None


def iterators_of(trace: Trace, in_steps: Bools, waited: iv.Intervals) -> PipelineIterators | None:
    """The iterators; ``in_steps`` are the slices of the used steps, ``waited`` is when a batch was waited for. None
    where no iterator was recorded."""
    slices = trace.slices
    on_host = on_host_threads(trace)
    asked = np.flatnonzero(on_host & mapped(slices.name, trace.strings, _is_asked, np.bool_))
    if not asked.size:
        return None
    names = used_codes(slices.name[asked], len(trace.strings)).tolist()
    paths = {code: pipeline_path(trace.strings[code]) for code in names}
    order = sorted(set(paths.values()))
    place = {path: at for at, path in enumerate(order)}
    of = np.array([place[paths[code]] for code in slices.name[asked].tolist()])
    rows = {path: asked[of == at] for path, at in place.items()}
    spans = {path: iv.of(trace.slices, mine) for path, mine in rows.items()}
    own = _own_spans(order, spans, waited)
    python = iv.of(trace.slices, np.flatnonzero(on_host & mapped(slices.name, trace.strings, is_python_op, np.bool_)))
    told = _Told(trace)
    used = {path: mine[in_steps[mine]] for path, mine in rows.items()}
    each = tuple(
        IteratorUse(
            path=path,
            dataset=told.text("dataset", mine),
            calls=mine.size,
            total_ns=int(slices.dur_ns[mine].sum()),
            own_ns=iv.measure(own[path]),
            python_ns=iv.measure(iv.intersect(own[path], python)),
            parallelism=told.number("parallelism", mine),
            buffer_limit=told.number("buffer_limit", mine),
            autotuned={"true": True, "false": False}.get(told.text("autotune", mine) or ""),
        )
        for path, mine in used.items()
        if mine.size
    )
    everything = asked[in_steps[asked]]
    budget, pool = told.number("cpu_budget", everything), told.number("threadpool_size", everything)
    roots = iv.joined([spans[path] for path in order if _above(path, spans) is None])
    return PipelineIterators(each, iv.measure(iv.intersect(roots, waited)), budget, pool)


def _is_asked(name: str) -> bool:
    return is_iterator(name) and not is_inner(name)


def _own_spans(order: list[Path], spans: dict[Path, iv.Intervals], waited: iv.Intervals) -> dict[Path, iv.Intervals]:
    """Per iterator when it holds up the step itself."""
    blocking: dict[Path, iv.Intervals] = {}
    below: dict[Path, list[iv.Intervals]] = {path: [] for path in order}
    for path in order:  # what asks comes before what it asks
        above = _above(path, spans)
        blocking[path] = iv.intersect(spans[path], waited if above is None else blocking[above])
        if above is not None:
            below[above].append(spans[path])
    return {path: iv.subtract(blocking[path], iv.joined(below[path])) for path in order}


def _above(path: Path, known: dict[Path, iv.Intervals]) -> Path | None:
    """The iterator that asks this one."""
    return next((path[:size] for size in range(len(path) - 1, 0, -1) if path[:size] in known), None)


class _Told:
    """What the last of some calls say; autotuning changes its numbers as it goes."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._row = np.full(len(trace.slices), -1, np.int32)
        self._row[trace.iterators.slice] = np.arange(len(trace.iterators))

    def number(self, column: str, calls: Rows) -> int | None:
        values: I64 = getattr(self._trace.iterators, column)[self._known(calls)]
        known = values[values != NULL]
        return int(known[-1]) if known.size else None

    def text(self, column: str, calls: Rows) -> str | None:
        codes = getattr(self._trace.iterators, column)[self._known(calls)]
        known = codes[codes >= 0]
        return self._trace.strings[int(known[-1])] if known.size else None

    def _known(self, calls: Rows) -> Rows:
        order = calls[np.argsort(self._trace.slices.start_ns[calls], kind="stable")]
        rows = self._row[order]
        return rows[rows >= 0].astype(np.intp)
