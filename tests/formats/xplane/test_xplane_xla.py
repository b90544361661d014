"""XPlane profiles of compiled modules: TPUs, XLA on the CPU, and what modules in the file tell of their ops."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.trace.tables import Kind, LaunchBasis, TrackKind
from stepscope.trace.trace import Trace
from tests.formats.xplane.xplane_files import US, host, kinds, processor, read, rows, tpu
from tests.kit.wire import message
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

# --- TPUs -------------------------------------------------------------------------------------------------------------


def test_a_tpu() -> None:
    trace = read(tpu())
    assert [(d.id, d.name, d.kind) for d in trace.info.devices] == [
        (0, "TPU v4", "tpu"), (1, "TPU:0 SparseCore 1", "sparse_core"),
    ]  # fmt: skip
    found = kinds(trace)
    assert found["fusion.3"] is Kind.KERNEL
    assert found["all-reduce.1"] is Kind.COLLECTIVE
    assert found["infeed.1"] is Kind.DEVICE_WAIT
    assert found["copy-start.1"] is found["dot_general"] is Kind.DEVICE_ANNOTATION
    assert rows(trace, "slice", "device", table="device_waits") == [("infeed.1", 0)] * 2
    assert rows(trace, "slice", "device", "launch", table="device_ops") == [
        *[("fusion.3", 0, "DoEnqueueProgram"), ("all-reduce.1", 0, "DoEnqueueProgram")] * 2,
        ("gather.1", 1, None),
    ]
    assert set(trace.launches.basis.tolist()) == {LaunchBasis.EXECUTION}
    columns = ("slice", "module", "program", "run", "op", "category", "scope", "flops", "bytes_accessed", "source")
    assert rows(trace, *columns, table="xla_ops")[1] == (
        "fusion.3", "jit_step", 123, 77, "fusion.3", "convolution fusion", "jit(step)/dot_general", 1024, 512,
        "train.py:12",
    )  # fmt: skip
    assert rows(trace, "slice", "run", "category", table="xla_ops")[:2][0] == ("infeed.1", 77, "infeed")


def test_the_steps_of_a_tpu() -> None:
    trace = read(tpu())
    assert rows(trace, "slice", "source", "number", table="step_marks") == [
        ("77", "steps_line", 77), ("78", "steps_line", 78),
        ("jit_step(123)", "modules_line", None), ("jit_step(123)", "modules_line", None),
    ]  # fmt: skip


def test_a_module_that_ran_once_marks_no_step() -> None:
    chip = Plane("/device:TPU:0", (line("XLA Modules", Ev("once(1)", 0, 9 * US), Ev("twice(2)", 10 * US, 2 * US),
                                        Ev("twice(2)", 20 * US, 2 * US), id=1),))  # fmt: skip
    assert rows(read(space(chip)), "slice", table="step_marks") == []


def test_the_launch_of_a_run_that_no_id_names_is_its_module_s_call_in_order() -> None:
    def profile(*calls: Ev) -> Plane:
        return Plane("/host:CPU", (line("python", *calls, id=1),))

    chip = Plane("/device:TPU:3", (
        line("XLA Modules", Ev("jit_f(1)", 100 * US, 50 * US), Ev("jit_f(1)", 200 * US, 50 * US), id=1),
        line("XLA Ops", Ev("a", 100 * US, 20 * US), Ev("b", 130 * US, 20 * US), Ev("a", 200 * US, 20 * US), id=2),
    ))  # fmt: skip
    calls = [Ev("PjRtExecutable::Execute (jit_f)", at * US, 5 * US) for at in (50, 160)]
    trace = read(space(chip, profile(*calls)))
    starts = trace.slices.start_ns
    assert [int(starts[call]) for call in trace.device_ops.launch] == [0, 0, 110_000]
    assert not len(read(space(chip, profile(calls[0]))).launches), "one call and two runs"
    third = Ev(calls[0].name, 70 * US, US)
    assert not len(read(space(chip, profile(*calls, third))).launches), "three calls and two runs"
    assert not len(read(space(chip, profile(calls[0], Ev(calls[1].name, 300 * US, US)))).launches), "called too late"


# --- XLA on the CPU ---------------------------------------------------------------------------------------------------


def test_ops_of_xla_on_the_cpu_are_ops_of_the_device_they_name() -> None:
    trace = read(processor())
    assert [(d.id, d.kind) for d in trace.info.devices] == [(0, "cpu"), (1, "cpu")]
    execute, on_one = "CommonPjRtLoadedExecutable::Execute (jit_f)", "[1] CommonPjRtLoadedExecutable::Execute (jit_f)"
    assert rows(trace, "slice", "device", "stream", "launch", table="device_ops") == [
        ("dot.1", 0, 1, execute),
        ("copy.2", 0, 0, "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"),
        ("dot.1", 1, 0, on_one),
        ("all-reduce.4", 1, 0, on_one),
    ]
    found = kinds(trace)
    assert found["all-reduce.4"] is Kind.COLLECTIVE
    assert found["Rendezvous"] is found["end: dot.1"] is found["Handle inputs"] is Kind.HOST_OP
    assert found[execute] is Kind.RUNTIME_CALL
    assert found["load"] is Kind.ANNOTATION
    hosts = {name for name, track in rows(trace, "name", "track") if trace.tracks.kind[track] == TrackKind.HOST_THREAD}
    assert "dot.1" not in hosts


def of_program(name: str, id: int, **more: int) -> dict[str, int | str]:
    """Statistics of an op of device 0's program, which hands over to the event that ends it."""
    return {"hlo_op": name, "hlo_module": "jit_f", "program_id": 3, "device_ordinal": 0, "run_id": 1, "_pt": 0,
            "_p": id} | more  # fmt: skip


def of_device(trace: Trace) -> dict[str, tuple[int, int]]:
    """Start and end of each op on a device, in ns."""
    start, dur = trace.slices.start_ns[trace.device_ops.slice], trace.slices.dur_ns[trace.device_ops.slice]
    names = [name for (name,) in rows(trace, "slice", table="device_ops")]
    return dict(zip(names, zip(start.tolist(), (start + dur).tolist(), strict=True), strict=True))


def test_an_asynchronous_op_lasts_until_it_is_said_to_be_done() -> None:
    """The dot returned at 40 µs and was done by another thread at 201; the all-reduce was inside its own event."""
    trace = read(space(Plane("/host:CPU", (
        line("tf_XLAPjRtCpuClient/7", Ev("dot.1", 30 * US, 10 * US, of_program("dot.1", 81)),
             Ev("all-reduce.4", 50 * US, 100 * US, of_program("all-reduce.4", 82)),
             Ev("end: all-reduce.4", 149 * US, 1 * US, {"_ct": 0, "_c": 82}), id=1),
        line("tf_XLAEigen/8", Ev("end: dot.1", 200 * US, 1 * US, {"_ct": 0, "_c": 81}), id=2),
    ))))  # fmt: skip
    assert of_device(trace) == {"dot.1": (0, 171_000), "all-reduce.4": (20_000, 120_000)}


@pytest.mark.parametrize("resumes", [True, False], ids=["resumed executor", "next op"])
def test_an_asynchronous_op_was_done_when_what_waits_for_it_began(resumes: bool) -> None:
    """The thread that finishes an op runs what waits for it before it says that the op is done. What it had done
    before, in another task, has nothing to do with it; and a loop is done when it says so."""
    resumed = [Ev("ThunkExecutor::Execute", 59 * US, 120 * US)] if resumes else []
    trace = read(space(Plane("/host:CPU", (
        line("tf_XLAPjRtCpuClient/7", Ev("while.2", 10 * US, 30 * US, of_program("while.2", 80)),
             Ev("dot.1", 30 * US, 5 * US, of_program("dot.1", 81)), id=1),
        line("tf_XLAEigen/8",
             Ev("ThreadpoolListener::StartRegion", 40 * US), Ev("copy.3", 41 * US, 2 * US, of_program("copy.3", 85)),
             Ev("ThreadpoolListener::StopRegion", 44 * US), Ev("ThreadpoolListener::StartRegion", 50 * US), *resumed,
             Ev("all-reduce.4", 60 * US, 100 * US, of_program("all-reduce.4", 82)),
             Ev("end: all-reduce.4", 159 * US, 1 * US, {"_ct": 0, "_c": 82}),
             Ev("end: dot.1", 180 * US, 1 * US, {"_ct": 0, "_c": 81}),
             Ev("end: while.2", 190 * US, 1 * US, {"_ct": 0, "_c": 80}),
             Ev("ThreadpoolListener::StopRegion", 195 * US), id=2),
    ))))  # fmt: skip
    found = of_device(trace)
    assert found.pop("copy.3") == (31_000, 33_000)
    assert found == {"while.2": (0, 181_000), "dot.1": (20_000, 49_000 if resumes else 50_000),
                     "all-reduce.4": (50_000, 150_000)}  # fmt: skip
    (account,) = analyse(trace).accounts
    assert account.parts[:, Category.COLLECTIVE.code].sum() == 100_000


def test_a_wait_written_as_two_events_lasts_from_one_to_the_other() -> None:
    waits = [row for row in rows(read(processor()), "name", "start_ns", "dur_ns") if row[0].endswith("Await")]
    assert waits == [("CommonPjRtBuffer::Await", 60_000, 341_000), ("CommonPjRtBuffer::Await", 400_000, 1_000)]


@pytest.mark.parametrize(
    ("function", "runs", "last"),
    [("f", (2,), [20_000]), ("f", (3, 4), [None, None]), ("f", (0, 2), [None, 20_000]), ("g", (2,), [None])],
)
def test_ops_that_a_pool_s_thread_was_handed_belong_to_the_call_that_handed_them(
    function: str, runs: tuple[int, ...], last: list[int | None]
) -> None:
    """What was handed to nobody has the number of its call among those of its module: 0 came before the profile."""

    def op(run: int) -> dict[str, int | str]:
        return {"hlo_op": "dot", "hlo_module": "jit_f", "run_id": run, "device_ordinal": 0}

    call = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    python = line("python", Ev(f"PjitFunction({function})", 0, 11 * US), Ev(call, 0, 10 * US),
                  Ev("ThreadpoolListener::Record", 5 * US, 0, {"_pt": 15, "_p": 1}),
                  Ev(f"PjitFunction({function})", 19 * US, 12 * US), Ev(call, 20 * US, 10 * US), id=1)  # fmt: skip
    pool = line("tf_pool/2", Ev("ThreadpoolListener::StartRegion", 12 * US, 0, {"_ct": 15, "_c": 1}),
                Ev("ThunkExecutor::Execute", 13 * US, 20 * US), Ev("dot", 14 * US, US, op(1)),
                Ev("ThreadpoolListener::StopRegion", 34 * US),
                *(Ev("dot", (40 + run) * US, US, op(run)) for run in runs), id=2)  # fmt: skip
    other = line("tf_pool/3", Ev("dot", 16 * US, US, op(1)), id=3)
    trace = read(space(Plane("/host:CPU", (python, pool, other))))
    starts = [None if c < 0 else int(trace.slices.start_ns[c]) for c in trace.device_ops.launch]
    assert starts == [0, 0, *last], "the first run's other thread too"
    assert rows(trace, "source", "target", table="flows") == [(call, "ThunkExecutor::Execute")]


@pytest.mark.parametrize("inside", [True, False])
def test_a_task_handed_over_from_within_another_was_launched_by_its_call(inside: bool) -> None:
    """PyTorch/XLA numbers no runs: the call hands the run to a pool, whose threads hand parts of it to each other."""
    op = {"hlo_op": "dot", "hlo_module": "SyncTensorsGraph.9", "program_id": 1}

    def handed(by: int, *more: Ev) -> tuple[Ev, ...]:
        begun = Ev("ThreadpoolListener::StartRegion", by * 10 * US, 0, {"_ct": 15, "_c": by})
        return begun, *more, Ev("ThreadpoolListener::StopRegion", (by * 10 + 8) * US)

    def hands(at: int, to: int) -> Ev:
        return Ev("ThreadpoolListener::Record", at * US, 0, {"_pt": 15, "_p": to})

    call = Ev("PjRtCpuExecutable::ExecuteHelper", 0, 5 * US)
    pool = line("tf_XLAPjRtCpuClient/2", *handed(1, hands(12, 2)), *([] if inside else [hands(19, 4)]), id=2)
    more = line("tf_XLAEigen/3", *handed(2, hands(21, 3)), id=3)
    by = 3 if inside else 4
    last = line("tf_XLAEigen/4", *handed(by, Ev("dot", (by * 10 + 3) * US, US, op)), id=4)
    trace = read(space(Plane("/host:CPU", (line("python", call, hands(2, 1), id=1), pool, more, last))))
    assert rows(trace, "launch", table="device_ops") == [("PjRtCpuExecutable::ExecuteHelper" if inside else None,)]


def test_a_queued_run_that_the_task_of_the_one_before_begins_belongs_to_its_own_call() -> None:
    def op(run: int) -> dict[str, int | str]:
        return {"hlo_op": "dot", "hlo_module": "jit_f", "run_id": run, "device_ordinal": 0}

    call = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    python = line("python", Ev("PjitFunction(f)", 0, 11 * US), Ev(call, 0, 10 * US),
                  Ev("ThreadpoolListener::Record", 5 * US, 0, {"_pt": 15, "_p": 1}),
                  Ev("PjitFunction(f)", 19 * US, 12 * US), Ev(call, 20 * US, 10 * US), id=1)  # fmt: skip
    pool = line("tf_pool/2", Ev("ThreadpoolListener::StartRegion", 12 * US, 0, {"_ct": 15, "_c": 1}),
                Ev("dot", 14 * US, 10 * US, op(7)),
                Ev("ThreadpoolListener::Record", 30 * US, 0, {"_pt": 15, "_p": 2}),
                Ev("ThreadpoolListener::StopRegion", 34 * US),
                Ev("ThreadpoolListener::StartRegion", 40 * US, 0, {"_ct": 15, "_c": 2}),
                Ev("dot", 41 * US, 10 * US, op(8)), Ev("ThreadpoolListener::StopRegion", 60 * US), id=2)  # fmt: skip
    trace = read(space(Plane("/host:CPU", (python, pool))))
    assert [int(trace.slices.start_ns[c]) for c in trace.device_ops.launch] == [0, 20_000]


@pytest.mark.parametrize(("missing", "between"), [(None, [20_000, 40_000]), (40, [None, None])])
def test_runs_of_programs_of_one_name_between_known_ones_are_their_calls_in_order(
    missing: int | None, between: list[int | None]
) -> None:
    """As a step has that is compiled anew for each shape: each program numbers its runs from elsewhere on. What ran
    first was called before the profile."""

    def op(run: int) -> dict[str, int | str]:
        return {"hlo_op": "dot", "hlo_module": "jit_f", "run_id": run, "device_ordinal": 0}

    def hands(at: int, to: int) -> Ev:
        return Ev("ThreadpoolListener::Record", at * US, 0, {"_pt": 15, "_p": to})

    def handed(at: int, by: int, run: int) -> tuple[Ev, ...]:
        begun = Ev("ThreadpoolListener::StartRegion", at * US, 0, {"_ct": 15, "_c": by})
        return begun, Ev("dot", (at + 1) * US, US, op(run)), Ev("ThreadpoolListener::StopRegion", (at + 3) * US)

    call = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    first, last = Ev(call, 0, 10 * US), Ev(call, 60 * US, 10 * US)  # Compiled anew, in no function that is named.
    cached = [(Ev("PjitFunction(f)", at * US, 12 * US), Ev(call, at * US, 10 * US)) for at in (20, 40) if at != missing]
    python = line("python", first, hands(5, 1), *(each for both in cached for each in both), last, hands(65, 2), id=1)
    pool = line("tf_pool/2", Ev("dot", US, US, op(1_000_000)), *handed(72, 1, 5), Ev("dot", 76 * US, US, op(1_000_001)),
                Ev("dot", 78 * US, US, op(6)), *handed(80, 2, 2_000_000), id=2)  # fmt: skip
    trace = read(space(Plane("/host:CPU", (python, pool))))
    starts = [None if c < 0 else int(trace.slices.start_ns[c]) for c in trace.device_ops.launch]
    assert starts == [None, 0, *between, 60_000]


def test_ops_without_a_device_stay_on_their_thread() -> None:
    """TensorFlow writes -1 for device and run."""
    none = {"device_ordinal": -1, "run_id": -1}
    stats = {"hlo_op": "dot.2", "hlo_module": "f", "program_id": 1}
    trace = read(space(host(Ev("dot.2", 0, US, stats), Ev("dot.2", 2 * US, US, stats | none))))
    assert kinds(trace)["dot.2"] is Kind.HOST_OP
    assert rows(trace, "op", "program", "run", table="xla_ops") == [("dot.2", 1, None)] * 2
    assert trace.info.devices == ()


def test_an_op_that_took_no_time_is_an_op() -> None:
    trace = read(space(host(Ev("dot", 0, 0, {"hlo_op": "dot", "device_ordinal": 2}), Ev("a point", US, 0))))
    assert rows(trace, "slice", "device", table="device_ops") == [("dot", 2)]
    assert rows(trace, "name", table="instants") == [("a point",)]


def test_a_cpu_s_devices_leave_the_numbers_of_gpus_alone() -> None:
    op = {"hlo_op": "dot", "device_ordinal": 0}
    gpu = Plane("/device:GPU:0", (line("Stream #1(Kernel)", Ev("k", 0, US)),))
    custom = Plane("/device:CUSTOM:NPU:0", (line("queue", Ev("matmul", 0, US)),))
    trace = read(space(host(Ev("dot", 0, US, op)), custom, gpu))
    assert [(d.id, d.kind) for d in trace.info.devices] == [(0, "custom"), (1, "gpu"), (2, "cpu")]


def test_modules_in_the_file_tell_what_their_ops_are() -> None:
    source = message((1, "dot"), (2, "jit(f)/dot_general"), (3, "train.py"), (4, 12))
    groups = message((1, bytes([0, 1])))
    ops = [message((1, "dot.1"), (2, "dot"), (7, source)), message((1, "weird"), (2, "all-gather"), (49, groups))]
    module = message((1, message((1, "jit_f"), (3, message((1, "main"), *((2, op) for op in ops))), (5, 9))))
    metadata = Plane("/host:metadata", shared={"jit_f(9)": {"Hlo Proto": module}}, extra_names=("jit_f(9)",))
    stats = {"hlo_module": "jit_f", "program_id": 9, "device_ordinal": 0}
    events = [Ev(name, at * US, US, stats | {"hlo_op": name}) for at, name in ((0, "dot.1"), (2, "weird"), (4, "gone"))]
    trace = read(space(metadata, host(*events)))
    columns = ("op", "category", "scope", "source", "replica_groups")
    assert rows(trace, *columns, table="xla_ops") == [
        ("dot.1", "dot", "jit(f)/dot_general", "train.py:12", None), ("weird", "all-gather", None, None, "{{0,1}}"),
        ("gone", None, None, None, None),
    ]  # fmt: skip
    assert kinds(trace)["weird"] is Kind.COLLECTIVE
    assert rows(trace, "collective", "group_size", table="device_ops")[1] == ("all-gather", 2)
    assert rows(trace, "program", "module", table="programs") == [(9, "jit_f")]
    assert trace.hlo == (module,)


# --- calls that name the op they launch (ROCm's collector, JAX 0.8) ---------------------------------------------------


def _on_amd(call: str, *others: Ev, correlated: bool = True, thread: tuple[Ev, ...] | None = None) -> Trace:
    """A kernel of an AMD GPU, the call that launched it on a line of the collector's own, and a thread of TraceMe's."""
    told = {"hlo_op": "fusion.1", "hlo_module": "jit_f", "program_id": 3}
    kernel = Ev("loop_fusion.kd", 30 * US, 9 * US, {**told, "correlation_id": Unsigned(7)})
    launch = Ev(call, 12 * US, 3 * US, {**told, **({"correlation_id": Unsigned(7)} if correlated else {})})
    ranges = (
        Ev("PjitFunction(f)", 2 * US, 20 * US),
        Ev("GpuExecutable::ExecuteThunks", 5 * US, 15 * US),
        Ev("fusion.1", 11 * US, 6 * US),
    )
    gpu = Plane("/device:GPU:0", (line("Stream #16(Kernel)", kernel, id=16),), {"device_vendor": "AMD"})
    lines = (line("Host Threads/2356", launch, *others, id=2356), line("python", *(thread or ranges), id=1 << 40))
    return read(space(gpu, Plane("/host:CPU", lines)))


@pytest.mark.parametrize("call", ["hipModuleLaunchKernel", "ncclLaunchOfATimeToCome"])
def test_a_call_that_names_the_op_it_launches_is_no_op_of_a_device(call: str) -> None:
    trace = _on_amd(call)
    assert [(d.id, d.kind) for d in trace.info.devices] == [(0, "gpu")]
    assert rows(trace, "slice", "launch", table="device_ops") == [("loop_fusion.kd", call)]
    assert rows(trace, "slice", table="xla_ops") == [("loop_fusion.kd",)]


def test_a_launch_without_its_id_is_no_op_either() -> None:
    trace = _on_amd("hipExtModuleLaunchKernel", correlated=False)
    assert [(d.id, d.kind) for d in trace.info.devices] == [(0, "gpu")]
    assert rows(trace, "slice", "launch", table="device_ops") == [("loop_fusion.kd", None)]


def test_a_line_of_calls_is_the_thread_whose_ranges_hold_them_all() -> None:
    trace = _on_amd("hipModuleLaunchKernel")
    assert [trace.strings[code] for code in trace.tracks.label[trace.tracks.kind == TrackKind.HOST_THREAD]] == [
        "python"
    ]
    call = row_named(trace, "hipModuleLaunchKernel")
    assert trace.name_of(int(trace.slices.parent[call])) == "fusion.1"


def test_a_line_with_a_call_outside_of_those_ranges_is_another_thread() -> None:
    told = {"hlo_op": "fusion.1", "hlo_module": "jit_f", "correlation_id": Unsigned(8)}
    trace = _on_amd("hipModuleLaunchKernel", Ev("hipModuleLaunchKernel", 40 * US, 2 * US, told))
    assert int((trace.tracks.kind == TrackKind.HOST_THREAD).sum()) == 2


def row_named(trace: Trace, name: str) -> int:
    (row,) = (row for row, code in enumerate(trace.slices.name.tolist()) if trace.strings[code] == name)
    return row
