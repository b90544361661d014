"""Compiled programs that call Python: what the device waits for is the function, not compute and not launching."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

MS = 10**9
"""Picoseconds."""
STEPS, COMPUTES, CALLS = 8, 2, 10


def _frames(at: float, call: float, function: str) -> list[Ev]:
    """JAX's wrapper with the user's function in it; a thread of a loader has frames of its own."""
    return [
        Ev("$callback.py:815 _wrapped_callback", int((at + 0.1) * MS), int((call - 0.2) * MS)),
        Ev("$callback.py:224 _callback", int((at + 0.2) * MS), int((call - 0.4) * MS)),
        Ev(f"$train.py:24 {function}", int((at + 0.3) * MS), int((call - 0.6) * MS)),
    ]


def on_processor(
    op: str = "pure_callback.1", call: float = CALLS, *, frames: bool = True, around: str | None = None
) -> Facts:
    """A step on XLA:CPU: an op, a call of Python (inside of one of control flow), another op."""
    events = []
    for step in range(STEPS):
        at = step * (2 * COMPUTES + call + 1.0)
        told = {"hlo_module": "jit_step", "program_id": 3, "run_id": 100 + step, "device_ordinal": 0}
        run = int((2 * COMPUTES + call + 0.2) * MS)
        events += [
            Ev("train", int(at * MS), run + MS // 2, {"_r": 1, "step_num": step}),
            Ev("PjitFunction(step)", int((at + 0.1) * MS), run),
            Ev("CommonPjRtLoadedExecutable::Execute (jit_step)", int((at + 0.2) * MS), run - MS // 10,
               {"run_id": 100 + step}),
            Ev("dot.1", int((at + 0.2) * MS), COMPUTES * MS, told | {"hlo_op": "dot.1"}),
            *(
                Ev(each, int((at + 0.2 + COMPUTES) * MS), int(call * MS), told | {"hlo_op": each})
                for each in (around, op)
                if each
            ),
            Ev("dot.2", int((at + 0.2 + COMPUTES + call) * MS), COMPUTES * MS, told | {"hlo_op": "dot.2"}),
        ]  # fmt: skip
        events += _frames(at + 0.2 + COMPUTES, call, "slow_lookup") if frames else []
    return analyse(read(space(Plane("/host:CPU", (line("python", *events, id=1),)))))


def on_gpu(op: str = "io_callback.3") -> Facts:
    """The same on a GPU: the thread that runs the program launches a kernel, calls Python, launches another one."""
    host, stream = [], []
    for step in range(STEPS):
        at = step * (2 * COMPUTES + CALLS + 1.0)
        run = int((COMPUTES + CALLS + 0.6) * MS)
        host += [
            Ev("train", int(at * MS), int((2 * COMPUTES + CALLS + 0.9) * MS), {"_r": 1, "step_num": step}),
            Ev("PjitFunction(step)", int((at + 0.1) * MS), run),
            Ev("GpuExecutable::ExecuteThunks", int((at + 0.2) * MS), run - MS // 5),
            Ev(op, int((at + 0.3 + COMPUTES) * MS), CALLS * MS),
            *_frames(at + 0.3 + COMPUTES, CALLS, "write_metrics"),
        ]
        for number, (launched, begun) in enumerate(((0.25, 0.26), (0.35 + CALLS + COMPUTES, 0.36 + CALLS + COMPUTES))):
            id = {"correlation_id": Unsigned(10 * step + number + 1)}
            host.append(Ev("cuLaunchKernel", int((at + launched) * MS), MS // 100, id))
            stream.append(Ev(f"fusion_{number}", int((at + begun) * MS), COMPUTES * MS, id))
    host.sort(key=lambda event: (event.start, -event.dur))
    gpu = Plane("/device:GPU:0", (line("Stream #7(Kernel)", *stream, id=7),), {"device_vendor": "Nvidia"})
    return analyse(read(space(gpu, Plane("/host:CPU", (line("python", *host, id=1),)))))


def finding(diagnosis: Diagnosis) -> Finding:
    (found,) = (found for found in diagnosis.findings if found.rule == "host_callback")
    return found


@pytest.mark.parametrize("op", ["pure_callback.1", "io_callback", "debug_callback.12"])
def test_the_device_waits_for_the_function_that_its_program_calls(op: str) -> None:
    facts = on_processor(op)
    parts = mean_parts(facts)
    assert parts["python"] == CALLS * 1_000_000
    assert parts["compute"] == 2 * COMPUTES * 1_000_000
    diagnosis = diagnose(facts)
    found = finding(diagnosis)
    assert [one.rule for one in diagnosis.findings] == ["host_callback"]
    assert found.cost_ns_per_step == CALLS * 1_000_000
    assert found.saving_ns_per_step == pytest.approx(CALLS * 1_000_000, rel=0.02)
    assert (found.where[0].file, found.where[0].function) == ("train.py", "slow_lookup")
    assert f"`{op.split('.')[0]}` 10.0 ms (1 call per step, of `slow_lookup`)" in found.why
    assert diagnosis.whatif.replay_error is not None
    assert diagnosis.whatif.replay_error < 0.01


def test_a_call_inside_of_control_flow_is_no_compute() -> None:
    """Where a program runs on several devices, one of them calls for all."""
    parts = mean_parts(on_processor(around="conditional"))
    assert (parts["python"], parts["compute"]) == (CALLS * 1_000_000, 2 * COMPUTES * 1_000_000)


def test_without_frames_the_function_is_not_told() -> None:
    found = finding(diagnose(on_processor(frames=False)))
    assert found.why.endswith("Which functions these are was not recorded.")
    assert all(where.function is None for where in found.where)


def test_what_is_printed_names_no_function_and_gets_advice_of_its_own() -> None:
    found = finding(diagnose(on_processor("debug_print.2")))
    assert "slow_lookup" not in found.why
    assert "jax.debug.print" in found.fix
    assert "jax.numpy" not in found.fix


def test_on_a_gpu_the_thread_that_runs_the_program_tells() -> None:
    facts = on_gpu()
    assert mean_parts(facts)["python"] == pytest.approx(CALLS * 1_000_000, rel=0.02)
    found = finding(diagnose(facts))
    assert found.saving_ns_per_step == pytest.approx(CALLS * 1_000_000, rel=0.03)
    assert found.where[0].function == "write_metrics"


def test_an_op_of_a_similar_name_computes() -> None:
    facts = on_processor("callback_fusion.1", frames=False)
    assert mean_parts(facts)["compute"] == (2 * COMPUTES + CALLS) * 1_000_000
    assert "host_callback" not in {found.rule for found in diagnose(facts).findings}


def test_a_short_callback_is_no_finding() -> None:
    assert "host_callback" not in {found.rule for found in diagnose(on_processor(call=0.02, frames=False)).findings}
