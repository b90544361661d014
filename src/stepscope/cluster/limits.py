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

PATH_PIECES_KEPT: Final = 2_048
"""Pieces of the critical path kept of one rank, those of the first steps: two for each of their
collectives, 130 kB together at most."""

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
"""Collectives are divided into waiting and transfer where clocks are known to this share of the longest."""

DRIFT_SIGNIFICANCE: Final = 4.0
DRIFT_COLLECTIVES: Final = 8
"""Clocks drift where the slope is this many times its standard error; and the least collectives that show it."""

STRAGGLER_SIGNIFICANCE: Final = 0.005
"""A rank is a straggler where chance makes any rank of the job as late as this rarely (one-sided t over steps)."""

SUSPECT_SIGNIFICANCE: Final = 0.05
"""Short of that it is named as late more often: nothing else is claimed."""

EXCEPTIONAL_SPREADS: Final = 6.0
"""A step is exceptional beyond this many median distances from the median (four standard deviations of a normal
distribution): a machine stalls now and then, and who is late otherwise is late all the same."""

STRAGGLER_STEPS: Final = 0.5
"""And stragglers are the late ones in this share of the steps: a few steps do not show how times are distributed."""

CAUSE_SHARE: Final = 0.5
"""The cause of a late rank is told where one category explains this share of how late it is."""

SAME_GPU_SHARE: Final = 0.5
"""A device is slow, and its work no larger, where nine tenths of its kernel time is slower by this share of the
whole slowdown at least; work that is uneven slows some kernels alone."""

SLOW_LINK_TIMES: Final = 1.25
"""A group's links are slow where it takes so many times as long as groups of its kind: below, placement within a switch
and other jobs' traffic do as much. Our judgement."""

RUN_RANKS_SHARE: Final = 0.5
"""The newest run of a folder is read with this share of the ranks of the fullest: fewer are the rest of one that
failed as it started. A judgement."""

POOL_BYTES: Final = 8 << 20
"""Ranks of fewer bytes together are read in this process: starting others takes a second each."""

DASK_AHEAD: Final = 4
"""Tasks that a Dask scheduler knows of for each thread of its workers: enough that none waits for the next."""

DASK_BATCH_BYTES: Final = (2 << 20, 8 << 20)
"""Smaller profiles are read together, so many bytes to a task at least, and at most where each thread of the workers
then has ``DASK_TASKS`` to read: of some half a second's work what a task costs the scheduler, its worker and this
process (20 ms measured) is little."""

DASK_TASKS: Final = 8
"""Tasks for each thread before they are made any larger: the last ones end at about the same time."""

DASK_LEAST: Final = 64
"""Tasks it knows of at least: workers that come later have some at once."""

DASK_WAIT_S: Final = 600
"""Seconds for which a scheduler may have no worker: batch queues take minutes to start some."""
