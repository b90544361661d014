"""What iterators of tf.data say of themselves, from the statistics of their events."""

from __future__ import annotations

import numpy as np

from stepscope.formats.xplane.stats import ITERATORS
from stepscope.formats.xplane.view import View
from stepscope.names.tf_data import is_iterator
from stepscope.trace import tables as t
from stepscope.trace.codes import mapped, united


def iterators(view: View, slices: t.Bools, slice_id: t.I32) -> t.Iterators:
    """A row per event of an iterator that says anything but how long it took; ``slices`` are the events kept."""
    stats = view.space.stats
    told = [stats.rows(key) for key in ("name", *ITERATORS.values())]
    rows = united(np.concatenate(told)).astype(np.intp)
    rows = rows[slices[rows]]
    rows = rows[mapped(view.name[rows], view.names, is_iterator, np.bool_)]
    key = ITERATORS
    return t.Iterators(
        slice=slice_id[rows],
        dataset=view.codes("name", rows),
        parallelism=view.sizes(key["parallelism"], rows),
        buffer_limit=view.sizes(key["buffer_limit"], rows),
        cpu_budget=view.sizes(key["cpu_budget"], rows),
        threadpool_size=view.sizes(key["threadpool_size"], rows),
        autotune=view.codes(key["autotune"], rows),
    )
