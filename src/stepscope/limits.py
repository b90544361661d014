"""Every threshold of stepscope, in one frozen place apart from the code that applies them.

Times are ns, shares are fractions of one. Each says where it comes from.
"""

from __future__ import annotations

from typing import Final

# --- accounting ---------------------------------------------------------------------------------------------------

DISPATCH_GAP_NS: Final = 1_000_000
"""Launches, ops, syncs and input ranges at most this far apart are one stretch of dispatching; a longer stretch is
Python's. Chosen on twenty real traces: dispatch between two launches takes 5-100 µs, callbacks and logging take ms."""

BATCH_BYTES: Final = 1024
"""A copy to the device of fewer bytes sends no batch: learning rates, scales and flags have a few each, and the tokens
of one short sequence fill this."""

BATCH_NS: Final = 100_000
"""Python code before such a copy that takes less makes no batch worth a thread of its own: to hand a batch over between
threads takes as long."""

TURN_OVERLAP: Final = 0.02
"""A thread launches in turn with the main one where at most this share of what it does lies beside what others do: one
that is handed work is seen to begin before the handing over has quite returned."""

TURNS_SHARE: Final = 0.9
"""And the others go on within ``DISPATCH_GAP_NS`` of its being done for this share of its time: threads that nobody
waits for end at any moment."""

FIRST_COMPUTE_WITHIN_NS: Final = 1_000_000
"""A copy, memset or collective that ends a gap hands the cause on to a compute op that starts this soon after it."""

CACHE_LOOKUP_NS: Final = 500_000
"""Functions of Python that trace or compile a program and return sooner found it in a cache: seen, such calls take 7 to
100 µs, and tracing the smallest function takes 1 ms. Ranges of the framework's own in them count whatever they take."""

LATENCY_CAP_NS: Final = 100_000
"""No more of a gap than this is latency, whatever the trace's own figures: real launches take 2-20 µs to start."""

LATENCY_QUANTILE: Final = 0.95
"""Below the cap, latency is limited to this quantile of the trace's own uncontended launch-to-start delays."""

LATENCY_LEAST: Final = 0.05
LATENCY_SPREAD: Final = 3.0
"""A queued op that began within so many times what the quickest twentieth of launches take to an idle device began when
its launch arrived: in the real traces the slowest twentieth takes 1.5 to 3 times as long as the quickest."""

TOLD_BY_TIME_NS: Final = 1_000_000
"""Where no launch was recorded, what the host did in a gap so long tells what the device waited for: the clocks of host
and TPU agree to some ten microseconds, and programs are started within less than a millisecond."""

CLOCK_DRIFT_NS: Final = 1_000_000
"""A TPU's clock stays within this of a constant distance to the host's for minutes (14 parts in a million in the real
profile): times of its ops that run further off are estimates gone wrong, or a clock that drifts."""

CLOCK_AGREES_NS: Final = 100_000
"""Estimates of the distance of two clocks that lie within this agree: sound ones of one second lie within 20 µs."""

CLOCK_PAUSE_NS: Final = 10_000_000
"""Behind a pause of a device so long, the distance of its clock to the host's may be taken anew: what that adds to the
pause, less than ``CLOCK_DRIFT_NS`` as a rule, is a small part of it."""

BARRIER_APART_NS: Final = 2_000_000
"""Waits at one barrier end together: on real chips within 3 µs, plus what clocks are apart, a millisecond each."""

LATE_CORE_NS: Final = 10_000_000
"""A wait at a barrier outside of the steps that is told of: shorter ones are the usual start of a program."""

UNRECORDED_NS: Final = 1_000_000
"""A device that shows nothing for so long, with work launched or a host blocked in a wait for it, works on what was not
recorded. Shorter silences of queued work are the device's own (uploading a graph, switching contexts)."""

QUEUE_LEAST: Final = 64
"""A device's queue of launches holds more than so many: about 1,000 on NVIDIA's GPUs, 16,384 packets on AMD's."""

QUEUE_NEAR_SHARE: Final = 0.8
"""Calls that find so much of the most launches ever under way find the queue full: what a launch takes of it depends on
its arguments, and room is made in pieces."""

QUEUE_BLOCKED_TIMES: Final = 3.0
QUEUE_BLOCKED_CALLS: Final = 8
QUEUE_AGREES_SHARE: Final = 0.8
"""A call that takes so many times the usual was blocked; that it was the queue, so many of them have to show, and so
much of the time of all calls that took long."""

ROUNDED_NS: Final = 10_000
"""Step markers that follow each other overlap by no more: what rounding times to microseconds, writing them as doubles
and measuring them on two clocks shift them by."""

STAGING_BYTES_PER_S: Final = 1_000_000_000
"""The host stages pageable data at least so fast: a tenth of what one core copies, so that no staging is taken for
something else."""

INFERRED_WAIT_NS: Final = 50_000
"""An op that nothing recorded held up, and that began this soon after the end of another stream's op, waited for that:
the replay takes it so where profiles record no waits (1-7 µs on GPUs, 31-32 µs on MTIA, in the real ones)."""

SHORT_WAIT_NS: Final = 20_000
"""A wait in which the device worked less than this blocked nobody; it is listed only if it cost something."""

WAIT_COST_NS: Final = 1_000
"""What costs less than this per step cost nothing: the clock's own reading takes some 100 ns."""

CHAINED_SHARE: Final = 0.9
"""Waits hide behind each other where what each saves alone adds up to less than this share of what all save."""

WAIT_SHARE: Final = 0.01
"""A finding names a wait from this share of its cost on; what FINDING_SHARE is to a step."""

FREE_WAIT_SHARE: Final = 0.25
"""A wait that costs nothing is told of from this share of the step: who looks for what blocks the host sees it first in
a trace, and would take it out for nothing."""

# --- steps --------------------------------------------------------------------------------------------------------

CYCLE_GAP_STEPS: Final = 1.0
"""Markers whose numbers jump, this many median steps or more apart, lie in different profiler cycles."""

LOOP_PHASE_SHARE: Final = 0.2
"""Validation, sampling or saving that takes less than this share of a step moves no step's bounds: what it changes is
less than steps differ by themselves."""

SHORT_LAST_STEP: Final = 0.5
"""A last step with less than this share of the median launches or host time was cut off by the profile's end. Of two
steps the one with less than this share of the other's ops and of their time is not one."""

EMPTY_STEP_SHARE: Final = 0.05
EMPTY_STEP_OPS: Final = 10
"""A step holds nothing where it has fewer ops than this, and at most this share of what the others have and of what
theirs take: a call of ``prof.step()`` too many leaves a marker with a wait or a copy in it at most."""

PERIOD_MATCH: Final = 0.95
"""Share of launches that must repeat one period later for the period to be called a step."""

CALLS_REPEATED: Final = 3
CALLS_OCCASIONAL: Final = 8
"""Calls of one compiled function begin steps where there are so many of them, and no other is called so many times as
often: two may be set-up and first step, and what is called once in eight is a validation. As ``stepscope run``."""

SLOW_STEP_SHARE: Final = 0.5
"""A step with this much of the median step more of a rare cause (compiling, a checkpoint, Python code that launches
nothing) is set apart: the mean would tell of a step that never was."""

NO_CORE_SHARE: Final = 0.05
"""From this share of the steps on it is told that their thread was ready to run and had no core."""

P95_STEPS: Final = 20
"""Fewer steps than this have no p95: it would be the maximum in disguise."""

LATENCY_TAIL: Final = 1
"""Iterations of a server that have to lie beyond a percentile of their times for it to be told: 10 for p90, 100 for
p99."""

# --- one-time work -----------------------------------------------------------------------------------------------

FIRST_LAUNCH_NS: Final = 500_000
FIRST_LAUNCH_TIMES: Final = 10
"""The first launch of a kernel loads its code where it takes this long and so many times as long as later launches in
the median: launches take 3-20 µs, 50 where a profiler slows them."""

SET_UP_NS: Final = 10_000_000
"""A call of the runtime that launches, copies, waits and allocates nothing, and takes this long while devices stand
still, sets something up: in the real traces such calls otherwise take 6 ms at most (``cudaGetDeviceProperties``)."""

FIRST_ALLOCATION_NS: Final = 100_000_000
"""So does the first call of its kind that takes memory, and one that gives it back, from here on where a device has
worked before: mapping tens of GB takes some ten ms."""

CAPTURE_SHARE: Final = 0.25
"""Where a profile has one launch that is captured for each three ops that run, or more, it is a recording of graph
capture: programs run a step one to three times before they capture it (PyTorch's make_graphed_callables three)."""

START_UP_LEADS: Final = 0.5
"""A window's beginning belongs to start-up, and to no step, where start-up takes this share of it or more."""

# --- completeness -------------------------------------------------------------------------------------------------

FAR_NS: Final = 86_400_000_000_000
"""Events a day away from the median of the file carry no usable time (zeroed or overflowed stamps, mixed epochs)."""

UNMATCHED_SHARE: Final = 0.05
"""More ops without launch, or launches without op, than this inside the profile: it was sampled or filtered, or does
not record the launches of some ops."""

RUN_SHARED_NODES: Final = 0.5
"""Runs of a session that share so much of their nodes are runs of one kind: one that also writes a summary is a step
too, one that fills a queue is none."""

CORRELATION_HOLE: Final = 64
"""Neighbouring correlation ids further apart than this have calls taken out between them: in the eight
unfiltered CUDA traces at hand Kineto's own omissions leave at most 57, but for one-time initialisation."""

CORRELATION_HOLE_SHARE: Final = 0.05
"""More holes than this between the calls, and calls were filtered out of the profile."""

FEWEST_CALLS: Final = 100
"""With fewer calls than this the spacing of their ids says nothing."""

NAMES_LOST_SHARE: Final = 0.10
"""Where more events than this lost their names with the end of a cut file, no cause is told from the rest."""

# --- layers -------------------------------------------------------------------------------------------------------

LAYER_DEPTH: Final = 64
"""Modules further inside than this count as part of the one around them: real models nest some ten."""

# --- what-if ------------------------------------------------------------------------------------------------------

MATCHED_LAUNCHES_SHARE: Final = 0.95
"""With fewer of the device's ops traced to their launch than this a replay would keep what it should predict."""

REPLAY_ERROR: Final = 0.05
"""A replay further off the measured step time than this predicts nothing. On the real traces the median is under 0.1 %
and the worst 1.3 %."""

REPLAY_RESIDUAL_SHARE: Final = 0.10
"""Nor does one that keeps more of the step time than this as measured, because nothing recorded explains it."""

# --- findings -----------------------------------------------------------------------------------------------------

FINDING_SHARE: Final = 0.01
FINDING_NS: Final = 50_000
"""The fix of a finding gains at least both of these per step, also once the findings above it are fixed; where that is
not known its cause costs as much. Less is shown under ``-v`` only."""

HIDDEN_SHARE: Final = 0.05
"""A cause that the fixes above only hide, as the host then runs ahead, stands as a finding where its own fix gains this
share of the step: those above may be harder to make, or gain less than predicted."""

LITTLE_TIME_NS: Final = 1_000_000
"""Used steps of less than this together are too little to judge: single launches, and what the clock and the recording
add to each call, decide what is seen in them."""

SEEN_ONCE_SHARE: Final = 0.05
"""A stall seen in one step, or in few, is a finding from this share of the steps it is in: smaller ones come and go,
and nothing shows that this one comes back."""

HOT_PYTHON_SHARE: Final = 0.02
"""A Python function that launches nothing, called between launches, is worth naming from this share of the step: twice
``FINDING_SHARE``, since recording frames makes the host's steps 1.6 to 2.3 times as long."""

HOST_OP_NS: Final = 100_000
"""An op that launches nothing and takes at least so long computes on the host: dispatching one takes 5-100 µs."""

REPEATED_COPIES: Final = 8
"""Copies of one size from one place are many from so many per step: a batch has a few tensors."""

CONTENTION_THREADS: Final = 2
CONTENTION_FACTOR: Final = 2.0
CONTENTION_OPS: Final = 5
"""Contention for the host's cores is seen where one op takes this many times its usual time while at least so many
loader threads work, and at least so many of its calls were recorded with and without them. A profile does not say how
many cores there are; two threads beside the launching one already hold up a machine of two."""

EAGER_PROGRAMS: Final = 10
"""A step of JAX that starts at least so many programs of one or two ops runs op by op: a jitted step starts one to
three, and a few more for keys and metrics."""

LOADER_SLOWER: Final = 0.5
"""A worker takes up to this much longer for what the loop's process did: caches, memory and the machine's clock are
shared, and what a virtual machine calls two cores may be two threads of one. Measured with PyTorch 2.13 on two virtual
cores: 9 to 15 % with one worker, 18 to 47 % with two, by the hour."""

HOST_LEFT_FASTER: Final = 0.5
"""What is left on the host runs faster by up to this share once most of a step is gone: caches and the processor's
clock are its own then. Measured with PyTorch 2.13 on two virtual cores, in jobs that lost 65 to 98 % of the step: by 3,
7, 19, 25, 41 and 45 % of what had been left, and by 67 % behind a process that was started in each step. With
TensorFlow 2.21 behind a tf.data pipeline that sleeps by 1 to 3 %, behind one that computes on the same cores by two
thirds: which of them it was is not in a profile."""

LOADER_HANDOVER_NS: Final = 500_000
LOADER_SEND_NS: Final = 1_500_000
"""What taking a batch of two tensors from a worker takes the loop's process, and what sending it takes the worker.
Measured with PyTorch 2.13: 0.25 ms for each tensor in the loop, 0.4 to 0.7 ms and 0.5 ms per MB in the worker."""

LOADER_START_NS: Final = 50_000_000
LOADER_STEPS: Final = 1_000
"""What starting a worker takes (30 ms measured for one that is forked), over the steps that it is taken to last for: of
a job of fewer nobody counts milliseconds."""

MOST_WORKERS: Final = 16
"""More workers are never advised: what so many do not hide is too much work."""
UNKNOWN_CORES: Final = 8
"""Nor more than this where nothing says how many cores there are: machines with GPUs have so many for each."""

UNTOLD_SHARE: Final = 0.05
"""Idle time of one kind that no finding tells of is a notice from this share of the step: ``LAUNCH_SHARE``."""

PLACES_SHARE: Final = 0.8
PLACES_SHOWN: Final = 8
"""Places are named until they hold this share of a finding's time, so many at most, and then how many more there are:
who mends one place must know how much of it that is."""

TOLD_SHARE: Final = 0.5
"""Host time is called Python code where frames, or annotations around nothing else, show it for this share."""

WITHIN_SHARE: Final = 0.9
"""Host time is said to pass in one range from this share on; of ranges within each other the innermost with as much."""

LAUNCH_SHARE: Final = 0.05
"""Waiting for launches is a finding from this share of the step. XProf says moderate from 3 %, high from 15 %."""

LAUNCH_GAP_NS: Final = 1_000_000
"""A gap longer than this is not launch-bound work but one long call (initialisation, a host op)."""

GRAPH_PAUSE_NS: Final = 1_000
"""Pause between the kernels of one graph where the profile shows no queued kernels: 1.0-2.0 µs in the real NVIDIA
traces; on AMD the stamps of queued kernels touch."""

ROOF_NEAR_SHARE: Final = 0.5
"""Work within this share of a roof is bounded by it; below both, by overhead (XProf: latency-bound under 50 %)."""

FUSED_BANDWIDTH_SHARE: Final = 0.9
"""Of the memory's bandwidth a fused kernel is taken to reach this much: elementwise kernels that stream reach 87-92 %
in the real traces of V100 and H100."""

LEAST_RUN: Final = 3
"""Memory-bound kernels in a row that are worth one, where their sizes are not known: two (a bias and its activation)
are in any network, and the kernel before often takes them in."""

FULL_RATE_SHARE: Final = 0.8
"""A product of odd sizes runs at full rate from this share of what products that fit reach: kernels of one library and
size differ by as much. What NVIDIA's guide shows of sizes that do not fit lies at half the rate or lower."""

ATTENTION_REACH: Final = 16
"""Ops on either side of a softmax among which the products of its attention are looked for: scaling, masks, casts and
dropout take up to ten in the models we know."""

UTILISATION_COUNTED_SHARE: Final = 0.9
"""With the operations of less kernel time than this counted, a utilisation would tell of what was recorded."""

MIXED_SHARE: Final = 0.5
"""Mixed precision is on where this share of the time of matrix work is in 16 bits or fewer."""

BRANCH_SHARE: Final = 0.10
"""Share of a device's compute that each of two branches has where it is said that neither needs the other."""

BRANCH_OPS: Final = 5
"""Ops of each: the gradient of a weight, what it is clipped by and its update are a chain of fewer beside the rest."""

SMALL_GRIDS_SHARE: Final = 0.5
"""From this share of step time in which a kernel of fewer blocks than multiprocessors runs alone a larger batch is
worth a word: the real traces lie under 40 %."""

PRECISION_KNOWN: Final = 0.95
"""Where the precision of this share of kernel time is known, shares of the known are called shares of all."""

PRECISION_UNKNOWN: Final = 0.05
"""Where it is known of less than this, it is not determined: one small kernel would speak for all."""

BOTTLENECK_SHARE: Final = 0.10
"""A cause is called what bounds the step from this share of it; below, the device's own work does."""

WARM_UP_FACTOR: Final = 2.0
"""A first step this many times the median of the others is warm-up."""

METER_BUSY: Final = 0.60
METER_APART: Final = 0.15
"""A utilisation meter misleads where it shows the first or more and the device computes less by the second or more."""

START_UP_SHARE: Final = 0.20
"""One runtime call that takes this share of the used steps, and launches nothing, is the device being set up."""

FEW_STEPS: Final = 3
"""Fewer used steps than this cannot show what varies from step to step."""

AHEAD_SHARE: Final = 0.10
"""The host ran ahead where the device still works this share of a step after the last launch of the steps."""

HOST_SHARE: Final = 0.05
"""That recording slows the host is said where devices wait for the host at least this share of the step."""

PYTHON_IN_MAP_SHARE: Final = 0.5
"""A function of a pipeline is told to call Python where that runs in at least this share of the time it holds up."""

LINE_LOOKS: Final = 20
"""Lines of the job are told from so many looks at its thread on: one look then stands for no more than 5 % of them."""

LINE_AGREED: Final = 0.9
"""Where a thread was not looked at in a stretch of a function, looks in other stretches between the same two calls tell
its line if this share of them was at one line: a loop's body repeats, and a look that comes as a line ends is met now
and then."""

LINE_SHARE: Final = 0.05
"""A line is told where at least this share of the looks found the thread there."""

PROFILER_SHARE: Final = 0.02
"""The profiler's own overhead is worth a notice from this share of the steps."""

RECURS_SHARE: Final = 0.5
"""A copy or sync belongs to every step if it occurs in at least this share of them."""

# --- memory -------------------------------------------------------------------------------------------------------

GROWTH_STEPS: Final = 3
"""Memory grows where it rises from each step to the next this often: of steps that only vary, one profile in 24 has
four in rising order, and few of those keep blocks."""

GROWTH_BLOCKS_SHARE: Final = 0.5
"""Blocks that outlive the step after their own must make up this much of what memory rises by."""

FULL_WITHIN_STEPS: Final = 100_000
"""Growth is worth a notice where the device is full within so many steps: a day of steps of a second."""

GROWTH_BYTES: Final = 1 << 20
"""Where the size of the memory was not recorded, growth is worth a notice from so much per step."""

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

# --- comparing runs -----------------------------------------------------------------------------------------------

COMPARED_STEPS: Final = 3
"""With fewer steps of a run its noise is not known: two steps give an interval 13 times their spread."""

COMPARED_RUNS: Final = 4
"""Runs of both sides together from which on their own spread is their noise: two degrees of freedom, t = 4.3 (with one
it would be 12.7)."""

STEPS_FOLLOW: Final = 0.3
"""How much each step resembles the one before where too few steps tell it. Our judgement: loaders, allocators and
clocks change more slowly than a step lasts."""

STEPS_FOLLOW_SEEN: Final = 10
"""The steps that this guess counts for beside those that were recorded: chosen so that simulated runs of the same code
whose steps follow each other by 0.7 are seldom called different (docs/decisions/0010)."""

APART_STEPS: Final = 5
"""With fewer steps one of them is no rare one."""

APART_STEPS_SHARE: Final = 0.2
"""Of a run's steps at most so many are left out of a comparison as far slower; more of them are what the run is like.
What trimmed means leave out at either end (Yuen, Biometrika 61, 1974)."""

APART_SPREADS: Final = 5.0
"""A step that is left out lies so many standard deviations above the median (estimated from the median absolute
deviation): steps without bad moments reach that in one of three million (normal distribution)."""

RUN_TO_RUN_SHARE: Final = 0.02
"""Standard deviation of the mean step of runs of the same code, for what the steps of one run do not show: clocks,
temperature, neighbours, where memory lies. Between the 0.56 % of dedicated machines and the 2.66 % of hosted ones that
CodSpeed measured over 100 runs ("Benchmarks in CI: Escaping the Cloud Chaos", 2025). Several runs of each side replace
it by what they measure."""

UNCHANGED_SHARE: Final = 0.10
"""A step time is called unchanged where the interval leaves out every change of this share of it; else it cannot be
told. One quiet run of each side leaves out 5.5 % (1.96 √2 ``RUN_TO_RUN_SHARE``). Our judgement."""

COMPARED_ITEM_SHARE: Final = 0.005
"""A kernel, op, layer or cause is listed where its time changed by this share of a step and by more than noise."""

# --- capturing from running jobs ----------------------------------------------------------------------------------

CAPTURE_BYTES: Final = 1 << 30
"""A profile of more bytes is not received: it is held in memory once, and gRPC itself ends at 2 GiB. Two seconds of
eight busy devices take some 100 MB."""

CAPTURE_LONGEST_S: Final = 3600.0
"""No capture is longer: profiles grow by tens of MB a second."""

CAPTURE_WAIT_S: Final = 60.0
"""A profile is waited for so long once its recording is over, as TensorFlow's own client does."""

PAGE_CAPTURE_LONGEST_S: Final = 600.0
"""No capture that is started from the page is longer: its reader waits for it, and cannot end it."""

PAGE_CAPTURES: Final = 100
"""The page starts no more captures than this into one folder: of a usual one's 10 to 100 MB that is at most 10 GB."""

# --- machine code -------------------------------------------------------------------------------------------------

PLAIN_S: Final = 0.5
"""CPU time that a process spends on loops in Python before it loads machine code that is kept: what that takes, too."""

PLAIN_UNCOMPILED_S: Final = 6.0
"""The same where machine code would have to be made first, which takes 25 s and more."""

PLAIN_BYTES: Final = 4 << 20
PLAIN_UNCOMPILED_BYTES: Final = 32 << 20
"""The same of JSON, of which Python reads some 15 MB a second."""

PLAIN_LARGEST: Final = 4 << 20
"""Elements of an array that Python does not begin on: several seconds in one call."""

KERNELS_KEPT_S: Final = 30 * 86_400
"""Machine code of another version is removed when no process has asked for it for so long: a version takes a few MB,
and compiling it again less than a minute."""

# --- many ranks ---------------------------------------------------------------------------------------------------

COLLECTIVES_KEPT: Final = 4_096
"""Collectives kept of one rank, in whole steps from the first: what is kept of a rank must stay a few hundred kB."""

LINKED_COLLECTIVES: Final = 1 << 20
"""Collectives of all ranks together that a job's pages join across traces: a choice, some 4 MB."""

ROWS_KEPT: Final = 512
"""Rows of the accounting kept of one rank, for the same reason."""

EXPOSED_KEPT: Final = 2_048
"""Stretches of exposed collective time kept of one rank, the longest; the rest stays undivided."""

KERNEL_NAMES_KEPT: Final = 24
"""Kernels compared between ranks: those that take most of the time."""

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

UNDIVIDED_SHARE: Final = 0.05
"""That clocks are too uncertain to divide collectives is said where undivided ones take this share of the step."""

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

SHARD_BYTES: Final = 64 << 30
"""A larger file of an object store is not fetched: temporary folders of workers are hardly larger."""

ANNOTATIONS_LISTED: Final = 500
"""Annotations a report lists: a choice; programs that name a range after its batch or request have thousands."""

ROWS_SHOWN: Final = 20_000
"""Rows of the accounting a job's report lists; of more ranks the late ones and the first have theirs listed."""

RANK_PAGES: Final = 8
"""Ranks of a job whose own pages stand beside it in one file: a choice, as many as one host often has."""

RANK_PAGES_BYTES: Final = 128 << 20
"""Bytes of their traces beyond which no further rank's pages are added: a choice, of a file that can still be sent; a
trace is a third larger as text."""

VIEW_SLICES: Final = 8_000_000
"""Slices the trace viewer holds at most, of larger traces those of the first steps: measured in Chromium, 5 million
take 430 MB of the page's memory and 1.3 s of its processor's time until the first frame."""

NOTEBOOK_PACK_BYTES: Final = 16 << 20
"""A trace of more bytes is left out below a notebook's cell: the notebook keeps all of it, as text, a third larger."""

# --- devices by their figures ---------------------------------------------------------------------------------------

MEMORY_FITS_FROM: Final = 0.9
"""A device has at least this share of its product's nominal memory: error correction and the driver take up to 8 % (a
T4 reports 14.8 of 16 GiB), and the next product has a sixth more or less."""

BANDWIDTH_FITS_WITHIN: Final = 0.02
"""Memory bandwidth by clock and bus is that of the data sheet but for rounding: 898 for 900 GB/s. Products of equal
multiprocessors and memory differ by 5 % at least (an A100 of 80 GB: 1,935 and 2,039 GB/s)."""

# --- many devices of one process ----------------------------------------------------------------------------------

TOGETHER_SHARE: Final = 0.10
"""Devices compute one after another where at most this share of the least busy one's compute lies beside another's."""

HALVED_SHARE: Final = 0.5
"""Sending in 16 bits is advised where so much of what is sent has 32: of less it halves a small part."""

FEW_GRADIENT_BYTES: Final = 50 * 1024 * 1024
"""Gradients of at most so many bytes fill a bucket or two of DistributedDataParallel's default of 25 MB: larger buckets
would only start later."""

# --- memory of compiled programs ----------------------------------------------------------------------------------

PROGRAM_BUFFER_BYTES: Final = 16 * 1024
"""Smaller buffers of a compiled program are not listed one by one (XProf's memory viewer has the same bound)."""

KEPT_BESIDE: Final = 2
"""A value that a compiled program computes is kept where at least so many others take memory before it goes: one that
the next op takes is used at once, and nothing is gained by computing it again."""

# --- queries ------------------------------------------------------------------------------------------------------

QUERY_S: Final = 120.0
"""A query that takes longer is ended: grouping ten million rows takes polars a second, and what takes minutes is a
product of tables that nobody meant."""

QUERY_BYTES: Final = 4 << 30
"""Memory that a query may take beside its tables (and half of what the machine has free, where that is less): joining
ten million rows by a key takes about 1 GB."""

QUERY_CHARACTERS: Final = 50_000
"""A query of more characters is not looked at: parsing takes time with the length, and people write a thousand."""

QUERY_DEPTH: Final = 40
"""Parentheses within each other: the engine itself gives up at 50."""

QUERY_STEPS: Final = 20
"""Steps of the parser per word or mark of a query: what people write takes one or two, and what it tries in several
ways at each depth takes twice as many with each."""

# --- the server of the pages --------------------------------------------------------------------------------------

SERVER_CLIENTS: Final = 64
"""Requests that are served at once: a browser has six connections to a server, and a few pages may be open."""

SERVER_ASKS_S: Final = 20.0
"""A request arrives within this time of its connection, or is not answered; browsers also connect without asking."""

SERVER_ANSWERS_S: Final = 900.0
"""An answer is taken within this time: the largest, 300 MB of a trace, through a tunnel of 3 Mbit/s."""

# --- profiles that contradict themselves ----------------------------------------------------------------------------

CLOCK_APART_NS: Final = 100_000
"""Clocks of host and device differ by more than this where they are not one clock's: profilers bring them to within
tens of microseconds."""

CONTRADICTED_SHARE: Final = 0.01
"""Ops that begin before their launch, waits that return too soon and ops that are there twice: of real profiles at
hand none has any; of so many of them no single mistaken event is the reason."""

OVERLAP_NS: Final = 1_000
"""Ops of one stream overlap where the one begins more than this before the other ends."""
OVERLAPPING_SHARE: Final = 0.50
"""Such ops, of all: real profiles have up to 1 % of them, of programmatic launches, whose kernels begin before the one
before has ended."""

SHARED_NUMBERS_SHARE: Final = 0.5
"""Launching calls whose number another one has: two ranks in one file share most of theirs. Our judgement."""

ELSEWHERE_TIMES: Final = 300
"""A device works on after the host's last event, for so many times what the host was recorded for at most: one launch
of a graph is all that some profiles hold. Nanoseconds read as microseconds are a thousand times."""

LATE_LEAST: Final = 4
LATE_AGREE: Final = 0.9
"""A device that was free for its work and began it late this often, nine tenths of that time by times that lie on one
line within ``CLOCK_APART_NS``: of real profiles at hand whose devices idle with work queued, at most 70 % do. Our
judgement."""

CLOCK_DRIFT: Final = 0.1
"""Clocks drift against each other by no more; delays of a queue that fills grow faster."""

MARKED_INSIDE_LEAST: Final = 2
MARKED_INSIDE_SHARE: Final = 0.1
"""Instants at which steps begin or end inside an op, or outside the profiler while it was seen to run: of real
profiles at hand none has any, and one op that was stamped wrong is no sign of markers that were."""
