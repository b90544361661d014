"""Programs that XLA runs on the threads of a CPU: a step takes what the one before it made."""

from __future__ import annotations

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, line, space

US = 10**6
"""Picoseconds."""
STEP, STEPS = 10_000, 8


def reading_each_step() -> bytes:
    """Each step starts a program, whose first half one thread runs and the second another, and reads its result."""
    python, pools = [], ([], [])
    for step in range(STEPS):
        at, flow = step * STEP, 2 * step + 1
        python += [
            Ev("train", at * US, (STEP - 10) * US, {"_r": 1, "step_num": step}),
            Ev("PjitFunction(f)", (at + 20) * US, 100 * US),
            Ev("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", (at + 30) * US, 80 * US),
            Ev("ThreadpoolListener::Record", (at + 40) * US, 0, {"_pt": 15, "_p": flow}),
            Ev("ThreadpoolListener::Record", (at + 41) * US, 0, {"_pt": 15, "_p": flow + 1}),
            Ev("np.asarray(jax.Array)", (at + 130) * US, (STEP - 200) * US),
        ]
        op = {"hlo_op": "dot", "hlo_module": "jit_f", "run_id": step, "device_ordinal": 0}
        for half, pool in enumerate(pools):
            begun = at + 100 + half * 4_850
            pool += [
                Ev("ThreadpoolListener::StartRegion", (begun - 5) * US, 0, {"_ct": 15, "_c": flow + half}),
                Ev("dot", begun * US, 4_800 * US, op),
                Ev("ThreadpoolListener::StopRegion", (begun + 4_810) * US),
            ]
    lines = (line("python", *python, id=1), *(line(f"tf_pool/{n}", *pool, id=n) for n, pool in enumerate(pools, 2)))
    return space(Plane("/host:CPU", lines))


def test_no_step_begins_before_the_one_ended_whose_result_it_takes():
    """That a thread of the pool is free would let it: half of each step seemed to be saved."""
    facts = analyse(read(reading_each_step()))
    diagnosis = diagnose(facts)
    assert not isinstance(diagnosis.replayed, str), diagnosis.replayed
    computing = 9_600_000
    found = {each.rule: each for each in (*diagnosis.findings, *diagnosis.minor)}
    assert "sync_bound" in found, found
    assert all(each.best_step_ns is None or each.best_step_ns >= computing for each in found.values())
    assert all(each.predicted_step_ns is None or each.predicted_step_ns >= computing for each in found.values())
