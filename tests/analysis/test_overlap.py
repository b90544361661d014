"""How much of collectives and copies is hidden, and what the first launch does not tell."""

from __future__ import annotations

from stepscope.analysis.overlap import overlaps
from tests.diagnosis.loops import CALL, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream

US = 1_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def test_what_kernels_hide_is_told_apart_and_instants_count_once():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        calls = [drawing.launch(start + CALL * i, CALL) for i in range(3)]
        begin = start + 3 * CALL
        drawing.kernel(calls[0], "k", begin, 600)
        # From 400 to 1,000 one of two collectives runs, 200 of it beside the kernel.
        drawing.kernel(calls[1], ALL_REDUCE, begin + 400, 500, Stream(0, 20))
        drawing.kernel(calls[2], ALL_REDUCE, begin + 700, 300, Stream(0, 21))

    facts = facts_with(loop(1_000 + 3 * CALL, step))
    (found,) = overlaps(facts)
    assert (found.what, facts.per_step(found.ns), facts.per_step(found.hidden_ns)) == (
        "collectives",
        600 * US,
        200 * US,
    )
    assert found.hidden_share == 1 / 3


def test_the_first_launch_is_no_measure_of_latency():
    """What its op waited for may have been launched before anything recorded."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        late = 5_000 if number == 0 else 0
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL + late, 100)

    facts = facts_with(loop(10_000, step))
    (delay,) = facts.delays
    assert (delay.median_ns, delay.p95_ns) == (CALL * US, CALL * US)
