"""XLA: steps by marks, causes of idle time, duty cycle, compilations, overlap of graph building."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.inputs import InputRanges, input_ranges
from stepscope.analysis.summary import duty_cycle_share
from stepscope.diagnosis.engine import diagnose
from stepscope.report import document
from stepscope.report.sections import sections
from stepscope.trace.tables import Kind
from tests.kit.xla import US, HostRange, Job, Line, Op, build
from tests.report.documents import check

EXECUTE = "PjRtComputationClient::ExecuteComputation"
BUILD = "trace_to_jaxpr"
COMPILE = "backend_compile_and_load"
TRANSFER = "PjRtComputationClient::TransferToDevice"


def facts_of(job: Job) -> Facts:
    return analyse(build(job))


def lazy_loop(*, overlapped: bool = False, steps: int = 6) -> Job:
    """Per 1,000 µs: 300 building the graph, 100 sending data, 50 starting; the device works 500 from 460 on.

    Overlapped, the graph is built while the device works and the device waits for nothing but the transfer.
    """
    host: list[HostRange] = []
    ops: list[Op] = []
    for k in range(steps):
        at = 1_000 * k
        host.append(HostRange("train", at, 1_000, Kind.STEP, step=40 + k))
        host.append(HostRange(BUILD, at + (500 if overlapped else 0), 300))
        host.append(HostRange(TRANSFER, at + 300, 100))
        host.append(HostRange(EXECUTE, at + 400, 50, Kind.RUNTIME_CALL))
        ops.append(Op("fusion.1", at + 460, 200, execute=len(host) - 1, run=k))
        ops.append(Op("all-reduce.2", at + 700, 260, execute=len(host) - 1, run=k, kind=Kind.COLLECTIVE))
    return Job(host, ops)


def parts(facts: Facts) -> dict[Category, int]:
    account = facts.accounts[0]
    totals = account.parts[facts.used_rows(account)].sum(axis=0)
    return {c: int(totals[c.code]) // (US * len(facts.used)) for c in Category if totals[c.code]}


def test_the_idle_time_of_a_lazy_framework_is_told_apart():
    facts = facts_of(lazy_loop())
    assert parts(facts) == {
        Category.COMPUTE: 200,
        Category.COLLECTIVE: 260,
        Category.GRAPH_BUILD: 300,
        Category.TRANSFER: 100,
        Category.LAUNCH: 50 + 40,  # the execute call, and dispatching since the last one
        Category.LAUNCH_LATENCY: 10,
        Category.DEVICE_LATENCY: 40,  # between two ops of one execution the host has no part
    }


def test_a_collective_that_waits_for_its_participants_is_no_wait_of_the_host():
    """XLA on the CPU runs ops on host threads, where a collective's rendezvous is drawn as a range."""
    job = lazy_loop()
    alone = parts(facts_of(job))
    for k in range(6):
        job.host.append(HostRange("ThunkExecutor::Execute", 1_000 * k + 460, 500, Kind.RUNTIME_CALL))
        job.host.append(HostRange("Rendezvous", 1_000 * k + 700, 250, Kind.HOST_OP))
    assert Category.SYNC not in alone
    assert parts(facts_of(job)) == alone


def test_a_graph_that_takes_its_batch_on_another_thread_waits_for_input():
    """Keras: the main thread is inside one call, ``tf.data`` runs the user's function where the graph asks for it."""
    host: list[HostRange] = []
    for at in range(0, 4_000, 1_000):
        host.append(HostRange("Profiled batch", at, 950, Kind.STEP, step=at // 1_000))
        host.append(HostRange("EagerKernelExecute", at + 10, 900, Kind.HOST_OP))
        taking = "tf_data_iterator_get_next/1"
        host.append(HostRange("IteratorGetNextOp::DoCompute", at + 50, 700, Kind.HOST_OP, thread=taking))
        host.append(HostRange("InstantiatedCapturedFunction::Run", at + 60, 680, Kind.HOST_OP, thread=taking))
        host.append(HostRange("PyFunc:PyFunc", at + 70, 650, Kind.HOST_OP, thread="tf_data_private_threadpool/1"))
        host.append(HostRange("dense/MatMul:MatMul", at + 760, 100, Kind.HOST_OP, thread="tf_Compute/1"))
    facts = facts_of(Job(host, [], framework="TensorFlow"))
    found = parts(facts)
    assert (found[Category.INPUT], found[Category.HOST_COMPUTE]) == (700, 100)
    (finding,) = [finding for finding in diagnose(facts).findings if finding.rule == "input_bound"]
    assert finding.cost_ns_per_step == 700 * US
    assert "tf.data pipeline" in finding.why


def taking(*pipeline: tuple[str, int, int, str]) -> Facts:
    """Per 1,000 µs: 700 in which the step takes its batch, holding ranges of a pipeline; the rest computes."""
    host: list[HostRange] = []
    for at in range(0, 4_000, 1_000):
        host.append(HostRange("train", at, 950, Kind.STEP, step=at // 1_000))
        host.append(HostRange("EagerLocalExecute: IteratorGetNext", at + 50, 700, Kind.HOST_OP))
        host += [HostRange(name, at + start, dur, Kind.HOST_OP, thread=thread) for name, start, dur, thread in pipeline]
        host.append(HostRange("MatMul:MatMul", at + 760, 100, Kind.HOST_OP))
    return facts_of(Job(host, [], framework="TensorFlow"))


def stages(facts: Facts) -> InputRanges:
    found = input_ranges(facts.trace, facts.host, facts.markers, facts.used)
    assert found is not None
    return found


def test_iterators_of_tf_data_have_the_stages_of_other_loaders():
    facts = taking(
        ("Iterator::Root::BatchV2", 60, 680, "python"),
        ("Iterator::Root::BatchV2::Map", 70, 500, "python"),
        ("Iterator::Root::BatchV2::Map::Shuffle::FlatMap[0]::TFRecord", 80, 200, "python"),
        ("DecodeJpeg:DecodeJpeg", 300, 100, "python"),
    )
    per_step = {name: ns // (US * len(facts.used)) for name, ns in stages(facts).stages}
    assert per_step == {"read": 200, "transform": 200, "decode": 100, "collate": 180, "not recorded": 20}
    (finding,) = [f for f in diagnose(facts).findings if f.rule == "input_bound"]
    assert "read 200 µs" in finding.why


def test_a_wait_for_what_is_prefetched_is_told_with_what_the_prefetching_thread_does():
    ahead = "tf_data_prefetch/1"
    facts = taking(
        ("Iterator::Root::Prefetch", 60, 680, "python"),
        ("PrefetchProduce", 60, 670, ahead),
        ("Iterator::Root::Prefetch::ParallelMapV2", 70, 650, ahead),
        ("Iterator::Root::Prefetch::ParallelMapV2::TensorSlice", 80, 50, ahead),
        ("ParallelMapProduce", 100, 600, "tf_data_map/2"),
    )
    found = stages(facts)
    count = US * len(facts.used)
    assert [(name, ns // count) for name, ns in found.stages] == [("wait for workers", 680), ("not recorded", 20)]
    assert [(name, ns // count) for name, ns in found.ahead] == [("transform", 600), ("source", 50)]
    (finding,) = [f for f in diagnose(facts).findings if f.rule == "input_bound"]
    assert "prepare batches spend, all together, per step: transform 600 µs, " in finding.why


def test_a_device_that_waits_in_infeed_says_so_itself():
    """The op begins with the program and ends when the host has sent the batch; compute follows."""
    job = lazy_loop()
    ops = [op if op.name == "all-reduce.2" else Op(op.name, op.start + 100, 100, execute=op.execute, run=op.run)
           for op in job.ops]  # fmt: skip
    found = parts(facts_of(Job(job.host, ops, infeeds=[(1_000 * k + 455, 105) for k in range(6)])))
    assert found[Category.INFEED] == 105
    assert found[Category.COMPUTE] == 100
    assert found[Category.GRAPH_BUILD] == 300


def test_ops_inside_a_loop_count_and_the_loop_around_them_does_not():
    job = lazy_loop()
    loops = [Op("while.7", 1_000 * k + 690, 280, execute=4 * k + 3, run=k) for k in range(6)]
    found = parts(facts_of(Job(job.host, [*job.ops, *loops])))
    assert (found[Category.COMPUTE], found[Category.COLLECTIVE]) == (200, 260)
    alone = [op for op in job.ops if op.kind is not Kind.COLLECTIVE]
    assert parts(facts_of(Job(job.host, [*alone, *loops])))[Category.COMPUTE] == 200 + 280  # all that was recorded


@pytest.mark.parametrize(("kind", "words"), [("cpu", "start programs"), ("tpu", "start programs"), ("gpu", "kernels")])
def test_what_the_host_launches_is_called_by_what_the_device_runs(kind: str, words: str):
    job = lazy_loop()
    host = [r for r in job.host if r.name in ("train", EXECUTE)]
    place = {r.start // 1_000: at for at, r in enumerate(host) if r.name == EXECUTE}
    ops = [dataclasses.replace(op, execute=place[op.start // 1_000]) for op in job.ops]
    (finding,) = [f for f in diagnose(facts_of(Job(host, ops, kind=kind))).findings if f.rule == "launch_bound"]
    assert words in finding.title


def test_steps_keep_their_numbers():
    facts = facts_of(lazy_loop())
    assert facts.markers.numbers == tuple(range(40, 46))
    assert (facts.markers.source, facts.markers.inferred) == ("train", False)


def test_graph_building_that_the_device_works_through_is_no_cause():
    facts = facts_of(lazy_loop(overlapped=True))
    assert Category.GRAPH_BUILD not in parts(facts) or parts(facts)[Category.GRAPH_BUILD] <= 40
    assert facts.xla is not None
    building = facts.xla.building
    assert building is not None
    # It runs from 500 to 800 of each step; the ops from 460 to 660 and 700 to 960.
    assert building.overlapped_ns / building.ns == 260 / 300


def test_the_duty_cycle_counts_an_execution_whole():
    facts = facts_of(lazy_loop())
    assert facts.xla is not None
    (duty,) = facts.xla.duty
    assert (duty.executions, duty.window_ns) == (len(facts.used), 1_000 * US * len(facts.used))
    assert duty.executing_ns == 500 * US * len(facts.used)
    assert duty.collective_ns == 260 * US * len(facts.used)


def test_a_device_that_runs_no_module_has_no_duty_cycle():
    job = lazy_loop()
    trace = build(dataclasses.replace(job, ops=[*job.ops, *(dataclasses.replace(op, device=1) for op in job.ops)]))
    compiled, first = trace.xla_ops, trace.device_ops.slice[trace.device_ops.device == 0]
    rows = np.isin(compiled.slice, first)
    kept = {f.name: getattr(compiled, f.name)[rows] for f in dataclasses.fields(compiled)}
    facts = analyse(dataclasses.replace(trace, xla_ops=dataclasses.replace(compiled, **kept)))
    assert facts.xla is not None
    assert [duty.share for duty in facts.xla.duty] == [0.5, None]
    assert duty_cycle_share(facts) == 0.5
    profile = document.make(facts, diagnose(facts), [])
    assert [duty["share"] for duty in profile["analyses"]["xla"]["duty_cycle"]] == [0.5, None]
    (table,) = [section for section in sections(profile) if section.title == "Compiled modules (XLA)"]
    assert [row[3] for row in table.rows] == ["50.0 %", "unused"]


def test_executions_without_run_ids_are_told_apart_by_their_call():
    job = lazy_loop()
    ops = [Op(op.name, op.start, op.dur, execute=op.execute, kind=op.kind) for op in job.ops]
    facts = facts_of(Job(job.host, ops))
    assert facts.xla is not None
    assert facts.xla.duty[0].executing_ns == 500 * US * len(facts.used)


@pytest.mark.parametrize(("without", "said"), [(0, False), (2, True)])
def test_launches_that_no_id_tells_are_no_sampling(without: int, said: bool):
    """Two steps of six have ops whose call nothing names; nothing is missing, and costs per step stand."""
    job = lazy_loop()
    ops = [dataclasses.replace(op, execute=-1) if 4 <= at < 4 + 2 * without else op for at, op in enumerate(job.ops)]
    facts = facts_of(dataclasses.replace(job, ops=ops))
    assert not facts.sampling.sampled
    found = diagnose(facts)
    notices = {notice.code: notice.text for notice in found.notices}
    assert "profile_sampled" not in notices
    assert ("33.3 % of the device's ops" in notices.get("launches_not_recorded", "")) is said
    assert all(finding.not_determined is None for finding in found.findings)
    assert facts.step_ns.tolist() == [960 * US] + [1_000 * US] * 5


def test_executions_that_nothing_tells_apart_are_not_recorded():
    """Without run ids and execute calls all ops of one program might be one execution: there is no duty cycle."""
    job = lazy_loop()
    facts = facts_of(dataclasses.replace(job, ops=[dataclasses.replace(op, execute=-1, run=None) for op in job.ops]))
    assert facts.xla is not None
    (duty,) = facts.xla.duty
    assert (duty.executions, duty.executing_ns, duty.share) == (None, None, None)
    assert duty.collective_share == 0.26
    assert duty_cycle_share(facts) is None
    report = check(document.make(facts, diagnose(facts), [document.InputFile("profile", None, None)]))
    (table,) = [made for made in sections(report) if made.title == "Compiled modules (XLA)"]
    assert table.rows == [("not recorded", "26.0 %")]


def test_graph_building_of_a_step_set_apart_is_not_that_of_the_others():
    """One step of eight builds a graph for long; the others, which costs are told of, build none."""
    slow = 5
    host, ops = [], []
    for k in range(10):
        at = 1_000 * k + (20_000 if k > slow else 0)
        host.append(HostRange("train", at, 1_000 + (20_000 if k == slow else 0), Kind.STEP, step=k))
        if k == slow:
            host += [HostRange(BUILD, at, 9_000), HostRange(COMPILE, at + 9_000, 11_000, Kind.COMPILE)]
            at += 20_000
        host.append(HostRange(EXECUTE, at + 100, 50, Kind.RUNTIME_CALL))
        ops.append(Op("fusion.1", at + 160, 700, execute=len(host) - 1, run=k))
    facts = facts_of(Job(host, ops))
    assert [found.step for found in facts.slow] == [slow]
    assert facts.xla is not None
    assert facts.xla.building is None


def test_a_drawn_modules_line_tells_the_executions():
    job = lazy_loop()
    lines = [Line("XLA Modules", "jit_step(1)", 1_000 * k + 455, 510) for k in range(6)]
    facts = facts_of(Job(job.host, job.ops, lines))
    assert facts.xla is not None
    assert facts.xla.duty[0].executing_ns == 510 * US * len(facts.used)
    assert parts(facts)[Category.COMPUTE] == 200  # the line is drawn, not worked


def test_steps_of_a_device_line_are_the_devices_windows():
    job = lazy_loop()
    host = [r for r in job.host if r.step is None]
    shift = {id(r): at for at, r in enumerate(host)}
    ops = [
        Op(op.name, op.start, op.dur, execute=shift[id(job.host[op.execute])], kind=op.kind, run=op.run)
        for op in job.ops
    ]
    lines = [Line("Steps", str(7 + k), 1_000 * k + 450, 1_000, number=7 + k) for k in range(6)]
    facts = facts_of(Job(host, ops, lines))
    assert facts.markers.on_device
    assert facts.markers.numbers == tuple(range(7, 13))
    assert set(facts.step_ns[list(facts.used)].tolist()) == {1_000 * US}


def test_a_step_mark_on_the_host_comes_before_the_devices_steps_line():
    job = lazy_loop()
    facts = facts_of(Job(job.host, job.ops, [Line("Steps", "7", 450, 900, number=7), Line("Steps", "8", 1450, 900)]))
    assert facts.markers.numbers == tuple(range(40, 46))


def compiling(parameters: tuple[str, str] = ("f32[64,256]", "f32[128,256]")) -> Job:
    """Step 3 compiles the module again, for another shape, and runs the new program."""
    job = lazy_loop()
    host = [*job.host, HostRange(COMPILE, 3_050, 200), HostRange("CpuCompiler::RunBackend", 3_060, 100)]
    ops = [
        Op(op.name, op.start, op.dur, execute=op.execute, run=op.run, kind=op.kind, program=1 + (op.start >= 3_000))
        for op in job.ops
    ]
    return Job(host, ops, programs={1: ("jit_step", parameters[0]), 2: ("jit_step", parameters[1])})


def test_compiling_again_is_a_cause_with_its_step():
    facts = facts_of(compiling())
    account = facts.accounts[0]
    row = account.step_row(3)
    assert row is not None
    assert account.parts[row, Category.COMPILE.code] == 200 * US
    assert account.parts[row, Category.GRAPH_BUILD.code] == 100 * US
    assert facts.xla is not None
    (found,) = facts.xla.compilations
    assert (found.step, found.ns) == (3, 200 * US)
    assert facts.xla.building is not None
    assert facts.xla.building.ns == (300 * len(facts.used) - 200) * US  # compiling is no part of building


@pytest.mark.parametrize("modules", [("jit_step", "jit_step"), ("SyncTensorsGraph.80", "SyncTensorsGraph.81")])
def test_what_no_name_tells_was_compiled_is_the_new_program_that_runs_next(modules: tuple[str, str]):
    job = compiling()
    ops = [dataclasses.replace(op, module=modules[op.program - 1]) for op in job.ops]
    programs = {number: (modules[number - 1], shapes) for number, (_, shapes) in job.programs.items()}
    facts = facts_of(Job(job.host, ops, programs=programs))
    assert facts.xla is not None
    (found,) = facts.xla.compilations
    assert (found.module, found.again) == (modules[1], True)
    assert found.changed == "parameter 0: f32[64,256] → f32[128,256]"


def test_a_program_that_runs_only_after_the_next_compilation_is_not_said_to_come_of_the_first():
    job = compiling()
    facts = facts_of(Job([*job.host, HostRange(COMPILE, 3_260, 20)], job.ops, programs=job.programs))
    assert facts.xla is not None
    assert [found.module for found in facts.xla.compilations] == [None, "jit_step"]


def test_ranges_called_forward_measure_graph_building_in_a_lazy_framework():
    job = lazy_loop()
    host = [*job.host, HostRange("forward", 100, 50), HostRange("Backward pass", 1_100, 50)]
    for framework, expected in (("PyTorch/XLA", 2), ("JAX", None)):
        notices = {n.code: n.count for n in diagnose(facts_of(Job(host, job.ops, framework=framework))).notices}
        assert notices.get("lazy_phases") == expected


@pytest.mark.parametrize("framework", ["PyTorch/XLA", "JAX", "PyTorch"])
def test_the_python_of_forward_and_backward_builds_the_graph_of_a_lazy_framework(framework: str):
    """No name tells that Python builds the graph; what has a name inside the ranges keeps its own cause."""
    job = lazy_loop()
    host = [r if r.name != BUILD else HostRange("train.py(9): step", r.start, 300, Kind.PYTHON_FRAME)
            for r in job.host]  # fmt: skip
    for k in range(6):
        host.append(HostRange("Forward pass", 1_000 * k + 20, 200))
        host.append(HostRange("backward", 1_000 * k + 220, 160))  # 80 of them send data
    found = parts(facts_of(Job(host, job.ops, framework=framework)))
    lazy = framework == "PyTorch/XLA"
    assert found.get(Category.GRAPH_BUILD, 0) == (200 + 80 if lazy else 0)
    if framework != "PyTorch":
        assert found[Category.TRANSFER] == 100
    assert found.get(Category.PYTHON, 0) < (30 if lazy else 400)


def test_a_bare_file_of_the_framework_is_no_place():
    """An XPlane keeps no more of a frame's path than the file; of the user's own that is enough."""
    for file, told in (("pxla.py", None), ("train.py", "train.py")):
        job = lazy_loop()
        host = [*job.host, *(HostRange(f"{file}(374): __call__", 1_000 * k + 395, 60, Kind.PYTHON_FRAME)
                             for k in range(6))]  # fmt: skip
        facts = facts_of(Job(host, job.ops))
        call = next(s for s in range(len(facts.trace.slices)) if facts.trace.name_of(s) == EXECUTE)
        assert facts.locator.where(call).file == told


def test_missing_scopes_are_said_with_the_switch_that_records_them():
    job = lazy_loop()
    notices = diagnose(facts_of(Job(job.host, job.ops, framework="PyTorch/XLA"))).notices
    assert any("XLA_HLO_DEBUG=1" in n.text for n in notices)
    scoped = [Op("fusion.1", 460, 200, execute=3, scope="jit(f)/layer", source="model.py:12")]
    facts = facts_of(Job(job.host, scoped, framework="PyTorch/XLA"))
    assert not any(n.code == "profile_no_scopes" for n in diagnose(facts).notices)
    where = facts.locator.where(int(facts.activities[0].slice[0]))
    assert (where.file, where.line, where.module) == ("model.py", 12, "jit(f)/layer")
