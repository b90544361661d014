"""Time per annotation: host, device and idle, each nanosecond in one annotation alone (one column is 10 µs)."""

from __future__ import annotations

import pytest
from hypothesis import given

import stepscope
from stepscope.analysis import summary
from stepscope.analysis.analyse import analyse
from stepscope.analysis.annotations import Annotations, UsedStepTimes, annotation_times
from stepscope.analysis.categories import BUSY
from stepscope.analysis.facts import Facts
from stepscope.trace import tables as t
from tests.formats.xplane.xplane_files import US as PS
from tests.formats.xplane.xplane_files import read
from tests.kit import xla
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.planted import CASES
from tests.kit.random_traces import random_traces
from tests.kit.some import some
from tests.kit.traces import KINETO_TRACES
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space
from tests.support import facts_of, facts_of_drawing, planted_facts, real_facts, real_profile

US = 1_000


def found(facts: Facts) -> Annotations:
    """The annotations, after checking that what is their own and what is in none sum to what was booked."""
    made = annotation_times(facts)
    assert made is not None
    check(facts, made)
    return made


def check(facts: Facts, made: Annotations) -> None:
    parts = summary.total_parts(facts)
    busy = sum(ns for category, ns in parts.items() if category in BUSY)
    own = [use.own for use in made.uses]
    if facts.activities:
        assert sum(one.idle_ns or 0 for one in own) + (made.outside.idle_ns or 0) == sum(parts.values()) - busy
    if made.outside.device_ns is not None:
        assert sum(one.device_ns or 0 for one in own) + made.outside.device_ns == busy
    for use in made.uses:
        pairs = ((use.whole.device_ns, use.own.device_ns), (use.whole.idle_ns, use.own.idle_ns))
        assert all(whole is None or own is None or whole >= own >= 0 for whole, own in pairs)


def us(times: UsedStepTimes) -> tuple[float | None, ...]:
    values = (times.host_ns, times.device_ns, times.idle_ns)
    return tuple(None if ns is None else ns / US for ns in values)


def told(made: Annotations) -> dict[str, tuple[tuple[float | None, ...], tuple[float | None, ...]]]:
    """Per name all of it and its own, in µs: host, device, idle."""
    return {use.name: (us(use.whole), us(use.own)) for use in made.uses}


NESTED = """
    main  |[S                                     ]
    main  |[fwd          ]  [opt              ]
    main  | a [atn  ]        [load    ]  d
    main  |     b   c
    gpu0/7|  [a][b]  [c ]                 [d    ]
    S = step 1
    fwd = ann forward
    atn = ann attention
    opt = ann optimizer
    load = ann load
"""


def test_host_device_and_idle_of_nested_annotations_and_nothing_twice():
    made = found(facts_of_drawing(NESTED))
    assert told(made) == {
        "optimizer": ((190, 70, 10 + 100 + 30), (90, 70, 10 + 30)),
        "forward": ((150, 30 + 70, 20 + 20 + 10), (80, 30, 20 + 10)),
        "load": ((100, 0, 100), (100, 0, 100)),
        "attention": ((70, 70, 20), (70, 70, 20)),
    }
    assert us(made.outside) == (400 - 150 - 190, 0, 20)
    assert [use.name for use in made.uses] == ["optimizer", "forward", "load", "attention"]


def test_an_annotation_inside_one_of_its_name_counts_once():
    made = found(
        facts_of_drawing("""
        main  |[S                   ]
        main  |[x            ]
        main  |  [y       ]
        main  |   a [z  ]
        main  |      b
        gpu0/7|     [a ] [b  ]
        S = step 1
        x = ann block
        y = ann other
        z = ann block
    """)
    )
    assert told(made) == {
        "block": ((150, 40 + 50, 20 + 20 + 10 + 10), (50 + 50, 50, 20 + 10)),
        "other": ((100, 40 + 50, 20 + 10 + 10), (50, 40, 20 + 10)),
    }
    assert {use.name: use.count for use in made.uses} == {"block": 2, "other": 1}


def test_a_gap_behind_a_queued_launch_goes_with_the_op_and_not_with_where_the_host_has_got_to():
    """The host is far ahead, in another annotation, when the device waits for nothing but itself."""
    made = found(
        facts_of_drawing("""
        main  |[S                        ]
        main  |[first ][second           ]
        main  | a b
        gpu0/7|   [a     ]    [b        ]
        S = step 1
        first = ann first
        second = ann second
    """)
    )
    assert told(made)["first"] == ((80, 80 + 110, 30 + 40), (80, 80 + 110, 30 + 40))
    assert told(made)["second"] == ((190, 0, 0), (190, 0, 0))


AUTOGRAD = """
    main    |[S                              ]
    main    |[fwd  ] [bwd               ]
    main    | a
    autograd|           [e      ]   [e2 ]
    autograd|            [own]  c
    autograd|             b
    gpu0/7  |    [a  ]     [b ]   [c     ]
    S = step 1
    fwd = ann forward
    bwd = ann backward
    own = ann hook
    e = op {engine}: A
    e2 = op {engine}: B
"""


def test_what_autograds_thread_launches_belongs_to_the_annotation_the_main_thread_is_in():
    made = found(facts_of_drawing(AUTOGRAD.format(engine="autograd::engine::evaluate_function")))
    assert told(made)["backward"][0][1] == 40 + 80
    assert told(made)["backward"][1][1] == 80
    assert told(made)["hook"] == ((50, 40, 20), (50, 40, 20))
    assert made.outside.device_ns == 0
    assert told(made)["backward"][0][0] == 200


def loader(main_launches: bool) -> TraceDrawing:
    """A thread that copies batches ahead, while the main thread is in an annotation."""
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.annotation("compute", 0, 900)
    for at in range(0, 800, 100):
        if main_launches:
            drawing.host("aten::mm", at, 95)
            drawing.kernel(drawing.launch(at + 80, 10), "gemm", at + 95, 20)
        copied = drawing.call("cudaMemcpyAsync", at + 20, 5, "prefetch")
        drawing.copy(copied, "HtoD", at + 30, 40, stream=Stream(0, 9))
    return drawing


def test_another_threads_launches_are_not_the_annotations_that_the_main_thread_works_in():
    made = found(facts_of(loader(main_launches=True).events()))
    assert told(made)["compute"][0][1] == 8 * 20
    assert us(made.outside)[1] == 8 * 40


def test_threads_that_launch_while_the_main_one_only_waits_work_for_it():
    made = found(facts_of(loader(main_launches=False).events()))
    assert told(made)["compute"][0][1] == 8 * 40
    assert us(made.outside)[1] == 0


def test_work_that_no_launch_was_recorded_of_is_in_no_annotation():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.annotation("compute", 0, 900)
    drawing.kernel(drawing.launch(10, 5), "a", 20, 100)
    drawing.kernel(None, "b", 200, 300)
    drawing.kernel(drawing.launch(30, 5), "c", 600, 10)
    made = found(facts_of(drawing.events()))
    assert told(made)["compute"][0][1] == 100 + 10
    assert us(made.outside)[1] == 300


def test_ranges_of_steps_that_do_not_mark_the_steps_have_one_name():
    drawing = TraceDrawing()
    for step in range(3):
        at = 1000 * step
        drawing.step(step, at, 990)
        drawing.annotation(f"train {step}", at + 10, 500)
        drawing.annotation(f"layer {step}", at + 20, 100)
        drawing.kernel(drawing.launch(at + 30, 5), "a", at + 40, 100)
    made = found(facts_of(drawing.events()))
    assert {use.name: use.count for use in made.uses} == {"train": 3, "layer 0": 1, "layer 1": 1, "layer 2": 1}
    assert told(made)["train"][0][1] == 300


def test_a_profile_without_a_device_has_times_of_its_threads():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.annotation("load", 100, 400)
    drawing.host("aten::stack", 150, 300)
    made = found(facts_of(drawing.events()))
    assert told(made) == {"load": ((400, None, None), (400, None, None))}
    assert us(made.outside) == (600, None, None)


def test_without_annotations_there_is_nothing_to_tell():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.kernel(drawing.launch(10, 5), "a", 20, 100)
    assert annotation_times(facts_of(drawing.events())) is None


def test_ranges_of_torch_xla_whose_program_runs_on_a_tpu():
    """``xp.Trace`` around building and around executing a graph: the chip works for the second and waits for the
    first."""
    host = []
    for step in range(3):
        at = 1000 * step
        host += [
            xla.HostRange("train", at, 990, t.Kind.STEP, step=step),
            xla.HostRange("build", at, 600),
            xla.HostRange("run", at + 600, 300),
            xla.HostRange("TpuLoadedExecutable::Execute", at + 610, 20, t.Kind.RUNTIME_CALL),
        ]
    calls = [at for at, one in enumerate(host) if one.kind == t.Kind.RUNTIME_CALL]
    ops = [xla.Op("fusion.1", 1000 * step + 640, 250, execute=call) for step, call in enumerate(calls)]
    facts = analyse(xla.build(xla.Job(host, ops, framework="PyTorch/XLA")))
    times, steps = told(found(facts)), len(facts.used)
    assert steps >= 2
    assert times["run"][0][1] == steps * 250
    assert times["build"][0] == (steps * 600, 0, steps * 600)
    assert "train" not in times


def handed(linked: bool) -> bytes:
    """``tf.profiler.experimental.Trace`` on the main thread; the kernels are launched by executors, which take over
    what ``FunctionRun`` handed on (``_p``, ``_c``), as TensorFlow's TraceMeProducer and TraceMeConsumer write it."""
    out = {"_pt": 3, "_p": Unsigned(7)} if linked else {}
    into = {"_ct": 3, "_c": Unsigned(7)} if linked else {}
    host = Plane("/host:CPU", (
        line("python", Ev("train", 0, 1000 * PS, {"_r": 1, "step_num": 1}), Ev("evaluate", 100 * PS, 500 * PS),
             Ev("EagerLocalExecute: __inference_f_1", 110 * PS, 400 * PS), Ev("FunctionRun", 120 * PS, 380 * PS, out),
             Ev("cuStreamSynchronize", 900 * PS, 20 * PS, {"correlation_id": Unsigned(90)}), id=1),
        line("tf_Compute/12", Ev("ExecutorState::Process", 700 * PS, 100 * PS, into),
             Ev("cuLaunchKernel", 710 * PS, 5 * PS, {"correlation_id": Unsigned(11)}), id=2),
    ))  # fmt: skip
    kernel = "regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:256,1,1 occ_pct:50"
    gpu = Plane("/device:GPU:0", (
        line("Stream #13(Kernel)", Ev("gemm", 720 * PS, 90 * PS, {
            "correlation_id": Unsigned(11), "kernel_details": kernel}), id=13),
    ))  # fmt: skip
    return space(gpu, host)


def test_work_that_was_handed_to_an_executor_belongs_where_it_was_handed_over():
    assert told(found(analyse(read(handed(linked=True)))))["evaluate"][0][:2] == (500, 90)


def test_work_that_nothing_links_is_in_the_annotation_of_its_time_or_in_none():
    made = found(analyse(read(handed(linked=False))))
    assert told(made)["evaluate"][0][1] == 0
    assert us(made.outside)[1] == 90


@given(random_traces())
def test_own_times_and_the_rest_sum_to_the_steps(events):  # type: ignore[no-untyped-def]
    facts = facts_of(events)
    made = annotation_times(facts)
    if made is not None:
        check(facts, made)


@pytest.mark.parametrize("case", some(CASES, 7))
def test_planted_jobs_have_their_time_in_annotations_once(case: str):
    facts = planted_facts(case)
    made = annotation_times(facts)
    if made is not None:
        check(facts, made)


@pytest.mark.real
@pytest.mark.parametrize("name", KINETO_TRACES)
def test_real_profiles_have_their_time_in_annotations_once(name: str):
    facts = real_facts(name)
    made = annotation_times(facts)
    if made is not None:
        check(facts, made)


@pytest.mark.real
def test_a_real_jobs_phases():
    """Rank 0 of 128: its trainer names its phases, and its backward kernels are launched by autograd's thread."""
    profile = real_profile("kineto/a100_rank0_of_128.json.gz")
    assert isinstance(profile, stepscope.Profile)
    times = told(found(profile.facts))
    assert times["## backward ##"][0][1] == 206_692
    assert times["## forward ##"][0] == (279_273, 186_965, 99_326)


@pytest.mark.real
@pytest.mark.parametrize("name", some(["mi300_jax_attention", "tpu_v6e_4_chips", "v100_many_processes"], 2))
def test_what_a_runtime_does_on_a_python_thread_is_no_annotation(name: str):
    profile = real_profile(f"xplane/{name}.xplane.pb")
    assert isinstance(profile, stepscope.Profile)
    assert annotation_times(profile.facts) is None
