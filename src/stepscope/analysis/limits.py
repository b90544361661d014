"""Thresholds of the analyses: each says where it comes from."""

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

BARRIER_APART_NS: Final = 2_000_000
"""Waits at one barrier end together: on real chips within 3 µs, plus what clocks are apart, a millisecond each."""

UNRECORDED_NS: Final = 1_000_000
"""A device that shows nothing for so long, with work launched or a host blocked in a wait for it, works on what was not
recorded. Shorter silences of queued work are the device's own (uploading a graph, switching contexts)."""

AHEAD_OF_DEVICE: Final = 0.5
"""A host whose steps take less than this share of what a device works in one does not wait for it. Chosen: on a CPU
recording may make that work longer, too."""

LONGEST_STEPS: Final = 2
"""A step that lasted this many times the longest recorded stretch of training held something else: validation, saving.
Chosen: without recording steps are shorter, but machines may be busier then."""

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

UNMATCHED_SHARE: Final = 0.05
"""More ops without launch, or launches without op, than this inside the profile: it was sampled or filtered, or does
not record the launches of some ops."""

CORRELATION_HOLE: Final = 64
"""Neighbouring correlation ids further apart than this have calls taken out between them: in the eight
unfiltered CUDA traces at hand Kineto's own omissions leave at most 57, but for one-time initialisation."""

CORRELATION_HOLE_SHARE: Final = 0.05
"""More holes than this between the calls, and calls were filtered out of the profile."""

FEWEST_CALLS: Final = 100
"""With fewer calls than this the spacing of their ids says nothing."""

# --- layers -------------------------------------------------------------------------------------------------------

LAYER_DEPTH: Final = 64
"""Modules further inside than this count as part of the one around them: real models nest some ten."""

# --- findings -----------------------------------------------------------------------------------------------------

FINDING_SHARE: Final = 0.01
FINDING_NS: Final = 50_000
"""The fix of a finding gains at least both of these per step (of a range, its upper end), also once the findings above
it are fixed; where that is not known its cause costs as much. Less is shown under ``-v`` only."""

HOT_PYTHON_SHARE: Final = 0.02
"""A Python function that launches nothing, called between launches, is worth naming from this share of the step: twice
``FINDING_SHARE``, since recording frames makes the host's steps 1.6 to 2.3 times as long."""

HOST_OP_NS: Final = 100_000
"""An op that launches nothing and takes at least so long computes on the host: dispatching one takes 5-100 µs."""

CONTENTION_THREADS: Final = 2
CONTENTION_FACTOR: Final = 2.0
CONTENTION_OPS: Final = 5
"""Contention for the host's cores is seen where one op takes this many times its usual time while at least so many
loader threads work, and at least so many of its calls were recorded with and without them. A profile does not say how
many cores there are; two threads beside the launching one already hold up a machine of two."""

UNTOLD_SHARE: Final = 0.05
"""Idle time of one kind that no finding tells of is a notice from this share of the step: ``LAUNCH_SHARE``."""

PLACES_SHARE: Final = 0.8
PLACES_SHOWN: Final = 8
"""Places are named until they hold this share of a finding's time, so many at most, and then how many more there are:
who mends one place must know how much of it that is."""

TOLD_SHARE: Final = 0.5
"""Host time is called Python code where frames, or annotations around nothing else, show it for this share."""

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

BRANCH_SHARE: Final = 0.10
"""Share of a device's compute that each of two branches has where it is said that neither needs the other."""

BRANCH_OPS: Final = 5
"""Ops of each: the gradient of a weight, what it is clipped by and its update are a chain of fewer beside the rest."""

FEW_STEPS: Final = 3
"""Fewer used steps than this cannot show what varies from step to step."""

LINE_NEAR_NS: Final = 2_000_000
"""A look in another stretch between the same two calls tells the line of an instant that was by less than this as far
from the stretch's beginning, or from its end: a loop's body repeats, and its lines take about as long each time."""
LINE_CONTESTED: Final = 1.5
"""It tells nothing where a look at another line is less than so many times as far."""
LINE_OTHERS: Final = 4
"""How many times as near such a look must be as one in the very stretch that is asked for."""
LINE_AGREED: Final = 0.9
"""Where a thread was not looked at in a stretch of a function, looks in other stretches between the same two calls tell
its line if this share of them was at one line: a loop's body repeats, and a look that comes as a line ends is met now
and then."""

RECURS_SHARE: Final = 0.5
"""A copy or sync belongs to every step if it occurs in at least this share of them."""

# --- memory -------------------------------------------------------------------------------------------------------

GROWTH_STEPS: Final = 3
"""Memory grows where it rises from each step to the next this often: of steps that only vary, one profile in 24 has
four in rising order, and few of those keep blocks."""

GROWTH_BLOCKS_SHARE: Final = 0.5
"""Blocks that outlive the step after their own must make up this much of what memory rises by."""

# --- many ranks ---------------------------------------------------------------------------------------------------

COLLECTIVES_KEPT: Final = 4_096
"""Collectives kept of one rank, in whole steps from the first: what is kept of a rank must stay a few hundred kB."""

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
