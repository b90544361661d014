"""Thresholds of jobs of many ranks: each says where it comes from."""

from __future__ import annotations

from typing import Final

ROWS_KEPT: Final = 512
"""Rows of the accounting kept of one rank, for the same reason."""

ROWS_SHOWN: Final = 20_000
"""Rows of the accounting a job's report lists; of more ranks the late ones and the first have theirs listed."""

EXPOSED_KEPT: Final = 2_048
"""Stretches of exposed collective time kept of one rank, the longest; the rest stays undivided."""

KERNEL_NAMES_KEPT: Final = 24
"""Kernels compared between ranks: those that take most of the time."""

USES_KEPT: Final = 50
"""Kernels, ops, layers and stages each that are kept of one rank and listed of a job, as of one profile."""

RANKS_OF_A_USE: Final = 16
"""Ranks that a row of a job's pages opens to: those with most and least. Pages stay small at any number of ranks."""

SAME_HOST_CLOCK_NS: Final = 50_000
"""Clocks of processes of one host are taken to agree to this: profilers read the system's clock, and devices' clocks
are brought to it within tens of microseconds."""

ENDS_TOGETHER_NS: Final = 20_000
"""A collective of devices ends on all of them within this, or its own duration where that is less: what the last chunk
takes around the ring. Where ends scatter more, clocks are that uncertain."""

CLOCK_SHARE: Final = 0.25
"""A collective is divided into waiting and transfer where clocks are known to this share of its longest duration."""

DRIFT_SIGNIFICANCE: Final = 4.0
DRIFT_COLLECTIVES: Final = 8
"""Clocks drift where the slope is this many times its standard error; and the least collectives that show it."""

STRAGGLER_SIGNIFICANCE: Final = 0.005
"""A rank is a straggler where chance makes any rank of the job as late as this rarely (one-sided t over steps)."""

SUSPECT_SIGNIFICANCE: Final = 0.05
"""And short of that it is named as who is late more often, to be looked at with more steps: nothing else is claimed."""

EXCEPTIONAL_SPREADS: Final = 6.0
"""A step counts as exceptional beyond this many median distances from the median (four standard deviations where
values are spread normally): a machine stalls now and then, and who is late otherwise is late all the same."""

STRAGGLER_STEPS: Final = 0.5
"""And stragglers are the late ones in this share of the steps: a few steps do not show how times are distributed."""

CAUSE_SHARE: Final = 0.5
"""A late rank's cause is named where one category explains this share of how late it is."""

SAME_GPU_SHARE: Final = 0.5
"""A device is slow, and its work no larger, where nine tenths of its kernel time is slower by this share of the
whole slowdown at least; work that is uneven slows some kernels alone."""

SLOW_LINK_TIMES: Final = 1.25
"""A group's links are slow where it takes so many times as long as groups like it: below, placement within a switch and
other jobs' traffic do as much. Our judgement."""

RUN_RANKS_SHARE: Final = 0.5
"""The newest run of a folder is read where it has at least this share of the ranks of the fullest: fewer are the rest
of one that failed as it started. A judgement."""

POOL_BYTES: Final = 8 << 20
"""Ranks of fewer bytes together are read in this process: starting others takes a second each."""

DASK_AHEAD: Final = 4
"""Tasks that a Dask scheduler knows of for each thread of its workers: enough that none waits for the next."""

DASK_BATCH_BYTES: Final = 2 << 20
"""Smaller profiles are read together, so many bytes to a task: some half a second's work, of which what a task costs
the scheduler, its worker and this process (20 ms measured) is little."""

DASK_LEAST: Final = 64
"""Tasks it knows of at least: workers that come later have some at once."""

DASK_WAIT_S: Final = 600
"""Seconds for which a scheduler may have no worker: batch queues take minutes to start some."""
