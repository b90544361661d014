"""Iterations of servers: what they take by what they work on, and what limits their tokens (times in µs)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.serving import Serving, serving
from stepscope.names.serving import ServingPhase
from tests.formats.xplane.xplane_files import read
from tests.kit.builder import TraceDrawing
from tests.kit.xplanes import Ev, Plane, line, space
from tests.support import facts_of, real_facts

US = 1_000
DECODE = "execute_context_0(0)_generation_32(32)"
PREFILL = "execute_context_2(512)_generation_0(0)"


def served(*iterations: tuple[str, int, int], steps: bool = False) -> Serving | None:
    """Iterations of a name, a length and a kernel's length each; the kernel ends with its iteration."""
    drawing, at = TraceDrawing(), 0
    for number, (name, dur, kernel) in enumerate(iterations):
        if steps:
            drawing.step(number, at, dur)
        drawing.annotation(name, at + 1, dur - 2)
        launch = drawing.launch(at + dur - kernel - 10)
        drawing.kernel(launch, "gemm", at + dur - kernel, kernel)
        at += dur
    return serving(facts_of(drawing.events()))


def found(made: Serving | None) -> Serving:
    assert made is not None
    return made


def test_prompts_and_answers_apart():
    made = found(served(*[(PREFILL, 5_000, 4_900)] * 3, *[(DECODE, 1_000, 900)] * 12))
    assert (made.server, made.basis, made.recorded) == ("vLLM", "step", 15)
    prompts, answers = sorted(made.uses, key=lambda use: use.count)
    # The first and the last are cut off.
    assert (prompts.phase, prompts.count, prompts.requests, prompts.prefill_tokens) == ("prefill", 2, 2, 512)
    assert (answers.phase, answers.count, answers.requests, answers.decode_tokens) == ("decode", 11, 32, 32)
    assert (answers.latency.p50, answers.latency.p90, answers.latency.p99) == (1_000 * US, 1_000 * US, None)
    assert (prompts.latency.p50, prompts.latency.p90) == (5_000 * US, None)
    assert prompts.prefill_tokens_per_s == pytest.approx(512 / 5e-3)
    assert prompts.decode_tokens_per_s is None
    assert answers.decode_tokens_per_s == pytest.approx(32 / 1e-3)
    assert answers.ns_per_token == 1_000 * US
    assert made.decode_tokens_per_s == pytest.approx(11 * 32 / 21e-3)
    assert made.exact


def test_what_limits_them():
    (busy,) = found(served(*[(DECODE, 1_000, 900)] * 6)).uses
    (waiting,) = found(served(*[(DECODE, 1_000, 100)] * 6)).uses
    assert busy.busy_share == pytest.approx(0.9)
    assert busy.limit == (Category.COMPUTE, pytest.approx(0.9))
    assert waiting.busy_share == pytest.approx(0.1)
    assert waiting.limit is not None
    assert waiting.limit[0] is not Category.COMPUTE


def test_a_hundred_iterations_have_a_p99():
    slow = [(DECODE, 2_000, 900)] * 2
    (use,) = found(served(*[(DECODE, 1_000, 900)] * 100, *slow, *[(DECODE, 1_000, 900)] * 2)).uses
    assert use.count == 102
    assert (use.latency.p90, use.latency.p99) == (1_000 * US, 2_000 * US)


def test_tokens_that_may_be_several_at_once_are_a_bound():
    guesses = found(served(*[("execute_context_0(0)_generation_32(128)", 1_000, 900)] * 6))
    unsaid = found(served(*[("[Executor] _forward_step 3: 0 ctx reqs, 32 gen reqs", 1_000, 900)] * 6))
    for made in (guesses, unsaid):
        assert not made.exact
        assert made.uses[0].decode_tokens_per_s == pytest.approx(32 / 1e-3)


def test_iterations_within_steps_that_the_profiler_marked():
    made = found(served(*[(DECODE, 1_000, 900)] * 6, steps=True))
    assert (made.basis, made.uses[0].latency.p50) == ("step", 1_000 * US)


def test_several_iterations_of_a_step_are_as_long_as_their_ranges():
    drawing = TraceDrawing()
    for step in range(6):
        drawing.step(step, 1_000 * step, 1_000)
        for part in range(2):
            drawing.annotation("step[DECODE bs=4]", 1_000 * step + 500 * part + 10, 400)
        drawing.kernel(drawing.launch(1_000 * step + 20), "gemm", 1_000 * step + 30, 900)
    made = found(serving(facts_of(drawing.events())))
    assert (made.server, made.basis, made.recorded) == ("SGLang", "host range", 12)
    (use,) = made.uses
    assert (use.count, use.latency.p50, use.parts, use.limit, use.busy_share) == (12, 400 * US, {}, None, None)


def test_requests_that_are_not_told_of_are_not_counted():
    made = found(served(*[("execute_new_1_cached_3", 1_000, 900)] * 6))
    (use,) = made.uses
    assert (use.phase, use.requests, use.decode_requests) == (ServingPhase.UNKNOWN, 4, None)
    assert made.decode_tokens_per_s is None


def test_other_programs_serve_nothing():
    assert served(*[("my range", 1_000, 900)] * 6) is None


def modules(*names: str) -> Serving | None:
    events = [Ev(name, at * 10_000_000, 1_000_000 * (1 + at % 2)) for at, name in enumerate(names)]
    ops = [Ev("fusion.1", at * 10_000_000, 900_000) for at, _ in enumerate(names)]
    plane = Plane("/device:TPU:0", (line("XLA Modules", *events), line("XLA Ops", *ops, id=2)))
    return serving(analyse(read(space(plane))))


def test_modules_of_both_phases_are_a_servers():
    made = found(modules("jit__prefill_jit(1)", "jit__generate_jit(2)", *["jit__generate_jit(2)"] * 4))
    assert (made.server, made.basis) == ("MaxText", "module")
    told = {use.phase: (use.count, use.latency.p50, use.requests, use.decode_tokens_per_s) for use in made.uses}
    assert told == {"prefill": (1, 1_000, None, None), "decode": (5, 2_000, None, None)}
    assert modules(*["jit_generate(2)"] * 4) is None


def batches(name: str, framework: str) -> Serving | None:
    """TensorFlow's threads take batches side by side, of 2 to 5 ms."""
    ms = 1_000_000_000  # of picoseconds
    ran = [Ev(name, at * 6 * ms, (2 + at % 4) * ms) for at in range(60)]
    threads = [line(f"batch_threads/{thread}", *ran, id=thread) for thread in (1, 2)]
    launcher = line("python", Ev("MatMul", 0, ms), id=3)
    trace = read(space(Plane("/host:CPU", (*threads, launcher))))
    return serving(analyse(replace(trace, info=replace(trace.info, framework=framework))))


def test_batches_of_tensorflow_serving_are_its_iterations():
    made = found(batches("ProcessBatch", "TensorFlow"))
    assert (made.server, made.basis, made.recorded) == ("TensorFlow Serving", "host range", 120)
    (use,) = made.uses
    assert (use.phase, use.requests, use.decode_tokens_per_s) == (ServingPhase.BATCH, None, None)
    assert (use.latency.p50, use.latency.p90) == (3_500 * US, 5_000 * US)
    assert batches("ProcessBatch:32", "TensorFlow") == made  # As earlier servers call it.
    assert batches("ProcessBatch", "JAX") is None
    assert batches("process_batch", "TensorFlow") is None


@pytest.mark.real
@pytest.mark.parametrize(("name", "phase", "requests", "prompt", "answers", "ms"), [
    ("mi300_vllm_decode", "decode", 32, 0, 32, 10.74),
    ("mi300_vllm_prefilldecode", "mixed", 46, 8155, 37, 156.47),
    ("b200_eager_rank0_of_8", "prefill", 1, 888, 0, 87.13),
])  # fmt: skip
def test_real_iterations(name, phase, requests, prompt, answers, ms):
    made = found(serving(facts_of_file(f"kineto/{name}.json.gz")))
    (use,) = made.uses
    assert made.server == "vLLM"
    assert (use.phase, use.requests, use.prefill_tokens, use.decode_tokens) == (phase, requests, prompt, answers)
    assert use.latency.p50 / 1e6 == pytest.approx(ms, abs=0.01)


def facts_of_file(name: str) -> Facts:
    return real_facts(name)
