"""Thresholds of the diagnosis: each says where it comes from. What one rule alone has is on the rule."""

from __future__ import annotations

from typing import Final

# --- accounting ---------------------------------------------------------------------------------------------------

LATE_CORE_NS: Final = 10_000_000
"""A wait at a barrier outside of the steps is told: shorter ones are the usual start of a program."""

CHAINED_SHARE: Final = 0.9
"""Waits hide behind each other where what each saves alone adds up to less than this share of what all save."""

WAIT_SHARE: Final = 0.01
"""A finding names a wait from this share of its cost; what FINDING_SHARE is to a step."""

FREE_WAIT_SHARE: Final = 0.25
"""A wait that costs nothing is told of from this share of the step: who looks for what blocks the host sees it first in
a trace, and would take it out for nothing."""

# --- steps --------------------------------------------------------------------------------------------------------

NO_CORE_SHARE: Final = 0.05
"""Share of the steps in which their thread was ready to run and had no core, for that to be told."""

ASLEEP_SHARE: Final = 0.2
"""Of the work on a batch, the part in which workers wait themselves, for that to be told. Chosen."""

DOUBLE_SHARE: Final = 0.2
"""Of kernel time, or of a model's parameters, in float64. Chosen: statistics and losses may be."""

BESIDE_SHARE: Final = 0.1
BESIDE_SHOWN: Final = 3
"""A thread beside the steps is told from this share of a core on, and so many are. Chosen. One that paused
0.5 ms between 20,000 turns of a loop made steps of small ops 1.3 to 1.9 times as long (PyTorch 2.13)."""

# --- findings -----------------------------------------------------------------------------------------------------

HIDDEN_SHARE: Final = 0.05
"""A cause that fixes above only hide stands as a finding where its own fix gains this share of the step: those above
may be harder to make, or gain less than predicted."""

PLAN_SHARE: Final = 0.1
"""What gains less than this share of what gains most is worked on last. Chosen."""

DISTORTED: Final = 8
"""Steps that take so many times as long recorded tell little. Measured: 1.4 to 3.6, of nothing but dispatch."""

LITTLE_TIME_NS: Final = 1_000_000
"""Used steps of less than this together are too little to judge: single launches, and what the clock and the recording
add to each call, decide what is seen in them."""

OWN_CODE_OPS_SHARE: Final = 0.1
"""Code with less of its time in ops computes in Python. Chosen: what makes tensors takes an op or two."""

SEEN_ONCE_SHARE: Final = 0.05
"""A stall seen in one step, or in few, is a finding from this share of those steps: smaller ones come and go, and
nothing shows that this one comes back."""

REPEATED_COPIES: Final = 8
"""Copies of one size from one place are many from so many per step: a batch has a few tensors."""

EAGER_PROGRAMS: Final = 10
"""A step of JAX runs op by op where it starts so many programs of one or two ops each: a jitted step starts one to
three, and a few more for keys and metrics."""

HOST_LEFT_FASTER: Final = 0.5
"""What is left on the host runs faster by up to this once most of a step is gone: caches and the processor's clock are
its own then. Measured with PyTorch 2.13 on two virtual cores, in jobs that lost 65 to 98 % of the step: by 3, 7, 19,
25, 41 and 45 % of what had been left, and by 67 % behind a process that was started in each step. With TensorFlow 2.21
behind a tf.data pipeline that sleeps by 1 to 3 %, behind one that computes on the same cores by two thirds: which of
them it was is not in a profile."""

HOST_GONE_ERROR: Final = 0.02
"""How much more than a cause is told to cost may go with it: where nearly all of a host's step goes, little of that is
much of what is left. The worst error of a planted cost is 1.3 % (docs/truth.md). Measured with PyTorch 2.13: of a step
of 176 ms that compiled anew 0.6 ms were left, and of one of 41 ms that started a process 1.1 ms."""

HOST_LEFT_LEAST: Final = 0.05
"""And so much of what is told to be left is left in any case: no step takes nothing. Measured (docs/truth.md): 7 %."""

WITHIN_SHARE: Final = 0.9
"""Host time is said to pass in one range from this share on; of ranges within each other the innermost with as much."""

LAUNCH_SHARE: Final = 0.05
"""Waiting for launches is a finding from this share of the step. XProf says moderate from 3 %, high from 15 %."""

MIXED_SHARE: Final = 0.5
"""Mixed precision is on where this share of the time of matrix work is in 16 bits or fewer."""

SMALL_GRIDS_SHARE: Final = 0.5
"""A larger batch is worth a word where a kernel of fewer blocks than multiprocessors runs alone for this share of the
step: the real traces lie under 40 %."""

PRECISION_KNOWN: Final = 0.95
"""Shares of the kernel time of known precision are called shares of all."""

PRECISION_UNKNOWN: Final = 0.05
"""Where it is known of less than this, it is not determined: one small kernel would speak for all."""

BOTTLENECK_SHARE: Final = 0.10
"""A cause bounds the step from this share of it; below, the device's own work does."""

WARM_UP_FACTOR: Final = 2.0
"""A first step this many times the median of the others is warm-up."""

METER_BUSY: Final = 0.60
METER_APART: Final = 0.15
"""A utilisation meter misleads where it shows the first or more, and the device computes less by the second."""

START_UP_SHARE: Final = 0.20
"""One runtime call that launches nothing and takes this share of the used steps is set-up."""

AHEAD_SHARE: Final = 0.10
"""The host ran ahead where the device works this share of a step after the last launch of the steps."""

HOST_SHARE: Final = 0.05
"""That recording slows the host is said where devices wait for the host for this share of the step."""

PYTHON_IN_MAP_SHARE: Final = 0.5
"""A function of a pipeline calls Python where that runs in this share of the time it holds up."""

LINE_LOOKS: Final = 20
"""Lines of the job are told from so many looks at its thread: one look then stands for no more than 5 % of them."""

LINE_SHARE: Final = 0.05
"""A line is told from this share of the looks on it."""

PROFILER_SHARE: Final = 0.02
"""The profiler's own overhead is worth a notice from this share of the steps."""

# --- memory -------------------------------------------------------------------------------------------------------

FULL_WITHIN_STEPS: Final = 100_000
"""Growth is worth a notice where the device is full within so many steps: a day of steps of a second."""

GROWTH_BYTES: Final = 1 << 20
"""Growth per step that is worth a notice, the size of the memory not recorded."""

FRAGMENTED_SHARE: Final = 0.25
"""Memory the allocator holds unused at the peak is worth a notice from this share of what it holds, where it also took
more from the device or the device is nearly full. TraceML warns where held is twice the used, full or not."""

MEMORY_FULL_SHARE: Final = 0.92
"""The device is nearly full where its allocator holds this much of it (TraceML warns from 92 %)."""

HEADROOM_TIMES: Final = 2.0
"""Room for a larger batch is told from twice the batch on: batches are doubled."""

# --- watching a run -----------------------------------------------------------------------------------------------

STEP_DRIFT_SHARE: Final = 0.1
"""A run has drifted where a step takes this share more or less: below, a machine's clocks and neighbours do as much."""

STEP_DRIFT_CHANCE: Final = 0.01
"""And where chance orders the parts of two periods in a row so rarely, each."""

STEP_DRIFT_PERIODS: Final = 4
"""Periods of eight parts each that later ones are compared with: a busy moment in one of them hides nothing then."""

CATEGORY_DRIFT_CHANCE: Final = 0.001
"""A category has drifted where chance orders windows so rarely; many categories are tried."""

STEP_DRIFT_WINDOWS: Final = 8
"""Recorded windows on either side from which categories are compared: fewer cannot be as sure."""

DRIFT_EXPLAINED_SHARE: Final = 0.1
"""Categories named as a drift's cause explain this share of it each."""

# --- many ranks ---------------------------------------------------------------------------------------------------

UNDIVIDED_SHARE: Final = 0.05
"""That clocks are too uncertain to divide collectives is said where they take this share of the step."""

# --- many devices of one process ----------------------------------------------------------------------------------

TOGETHER_SHARE: Final = 0.10
"""Devices compute one after another where this share of the least busy one's compute lies beside another's, at
most."""

HALVED_SHARE: Final = 0.5
"""Sending in 16 bits is advised where so much of what is sent is in 32 bits: of less it halves a small part."""

FEW_GRADIENT_BYTES: Final = 50 * 1024 * 1024
"""Up to so many bytes gradients fill a bucket or two of DistributedDataParallel's, of 25 MB: larger ones would
only start later."""
